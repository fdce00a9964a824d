"""Verbs about the cluster as a whole."""

from broker.cluster.data_directories import ResetRefused
from broker.cluster.lifecycle import WrongState
from broker.cluster.reset import reset as reset_cluster
from broker.control.brokers import broker_of, controller_of
from broker.control.problems import conflict
from broker.control.request import ControlRequest
from broker.control.verbs import answers
from broker.settings.endpoints import PortTaken
from control_api.answers.cluster import ClusterInfo, Health
from control_api.cluster import CompactionRun, Reset, ResetDone, RetentionRun
from control_api.spelling import host_and_port


@answers("health")
async def health(request: ControlRequest) -> Health:  # noqa: ARG001
    """Respond that the server is alive."""
    return Health()


@answers("cluster")
async def describe(request: ControlRequest) -> ClusterInfo:
    """Describe the cluster: brokers, controller, features, emulated release, seed.

    A broker that is being added, or moves its listeners in a reset, is listed once it is reachable.
    """
    cluster, quorum = request.cluster, request.cluster.quorum
    return ClusterInfo(
        cluster_id=cluster.cluster_id,
        controller=quorum.leader_id,
        brokers=tuple(broker_of(cluster, node) for node in cluster.nodes.values() if node.bound),
        controllers=tuple(controller_of(cluster, each) for each in quorum.controllers),
        features=quorum.levels(cluster.image.features),
        as_version=cluster.release.name,
        seed=cluster.seed,
        topics=len(cluster.image.topics),
    )


@answers("reset")
async def reset(request: ControlRequest, body: Reset) -> ResetDone:
    """Reset the cluster to its state after the start, with only the topics of the command line."""
    try:
        await reset_cluster(request.cluster, frozenset(body.get("keep", ())), disconnect=body.get("disconnect", False))
    except (ResetRefused, PortTaken, WrongState) as error:
        raise conflict(str(error)) from error
    if not body.get("disconnect"):
        return {"status": "ok"}
    return {"status": "ok", "bootstrap_servers": [host_and_port(*each) for each in request.cluster.bootstrap]}


@answers("retention run")
async def run_retention(request: ControlRequest) -> RetentionRun:
    """Run retention now: delete segments by time, size and log start offset."""
    request.cluster.maintenance.run_tiers()
    return {"segments_deleted": request.cluster.maintenance.run_retention()}


@answers("compaction run")
async def run_compaction(request: ControlRequest) -> CompactionRun:
    """Run the log cleaner now on all logs that can be compacted."""
    return {"logs_cleaned": await request.cluster.maintenance.run_cleaner(force=True)}
