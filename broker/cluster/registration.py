"""Brokers and the controller register with the metadata, and follow what it has of them."""

from functools import partial
from uuid import UUID

from broker.cluster.base import ClusterBase
from broker.cluster.data_directories import note_owner
from broker.cluster.emulation import supported_features
from broker.coordination.metadata.brokers import Registration
from broker.coordination.metadata.effects import MetadataOutcome
from broker.coordination.metadata.features import DIRECTORIES_LEVEL, METADATA_VERSION
from broker.coordination.metadata.image import INTERNAL_TOPICS, BrokerListener
from broker.coordination.metadata.machine import MetadataMachine
from broker.node import Node
from broker.quotas.quotas import BrokerQuotas


def join(cluster: ClusterBase, node: Node, *, same_life: bool = False) -> None:
    """A broker that is up joins the cluster: :func:`register`, then :func:`unfence`."""
    register(cluster, node, same_life=same_life)
    unfence(cluster, node)


def register(cluster: ClusterBase, node: Node, *, same_life: bool = False) -> None:
    """A broker that is up is known to the cluster, fenced: it leads nothing yet.

    ``same_life``: it was never away, as far as the cluster knows, and leads what it led.
    """
    machine, logs = cluster.metadata.machine, node.open_logs
    topics = cluster.image.topics
    node.internal_counts = {name: len(topics[name].partitions) for name in INTERNAL_TOPICS if name in topics}
    known = cluster.image.brokers.get(node.id)
    node.incarnation_id = known.incarnation_id if same_life and known is not None else cluster.new_uuid()
    note_owner(cluster, node)
    who = Registration(
        node.id,
        node.incarnation_id,
        {
            name: BrokerListener(endpoint.host_for_clients, endpoint.port_for_clients(port), endpoint.protocol)
            for name, (endpoint, port) in node.bound.items()
        },
        directories=() if logs.directory_id is None else (logs.directory_id,),
        rack=node.rack,
        features=supported_features(cluster.release),
        clean=logs.was_clean,
    )
    cluster.metadata.submit(lambda _now_ms: machine.register_broker(who))
    node.epoch = cluster.image.brokers[node.id].epoch
    cluster.metadata.submit(lambda _now_ms: machine.broker_reported(node.id))


def unfence(cluster: ClusterBase, node: Node) -> None:
    """A registered broker is ready to lead."""
    machine = cluster.metadata.machine
    cluster.metadata.submit(lambda _now_ms: machine.unfence_broker(node.id))
    node.meters = BrokerQuotas(node.settings)  # a restarted broker has measured no usage yet
    follow_quotas(cluster, node)


def register_controller(cluster: ClusterBase, *, same_life: bool = False) -> None:
    """The controller's process begins; metadata before 3.7 do not record that (``ControllerRegistrationManager``).

    ``same_life``: it has never ended, as far as the cluster knows.
    """
    quorum = cluster.quorum
    known = cluster.image.controllers.get(quorum.voter_id)
    if same_life and known is not None:
        quorum.incarnation_id = known.incarnation_id
    protocol = "PLAINTEXT" if cluster.controller_listener is None else cluster.controller_listener.protocol
    who = Registration(
        quorum.voter_id,
        quorum.incarnation_id,
        {quorum.listener: BrokerListener(*quorum.address, protocol)},
        features=supported_features(cluster.release),
    )
    cluster.metadata.submit(lambda _now_ms: cluster.metadata.machine.register_controller(who))


def _amended(machine: MetadataMachine, broker_id: int, directory_id: UUID, _now_ms: int) -> MetadataOutcome:
    return machine.amend_broker(broker_id, (directory_id,))


def upgraded(cluster: ClusterBase, before: int) -> None:
    """Nodes register what the metadata can keep now; ``before`` is the last level of ``metadata.version``."""
    register_controller(cluster)
    machine = cluster.metadata.machine
    if before < DIRECTORIES_LEVEL <= cluster.image.features.get(METADATA_VERSION, 0):
        for node in cluster.nodes.values():
            if node.up and node.id in cluster.image.brokers and node.open_logs.directory_id is not None:
                cluster.metadata.submit(partial(_amended, machine, node.id, node.open_logs.directory_id))


def fence_the_absent(cluster: ClusterBase) -> None:
    """Brokers that the metadata knows and that do not come are given up: theirs is an older cluster's directory."""
    machine = cluster.metadata.machine
    for broker_id in [each for each in cluster.image.brokers if each not in cluster.nodes]:
        cluster.metadata.submit(lambda _now_ms, absent=broker_id: machine.fence_broker(absent))  # type: ignore[misc]


def follow_quotas(cluster: ClusterBase, node: Node) -> None:
    """Apply the quotas of clients at a broker, as the metadata has them now."""
    quotas = cluster.image.quotas
    node.meters.follow(quotas)
    node.quotas = node.meters if quotas else None
