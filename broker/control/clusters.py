"""Verbs about the clusters of the process."""

import re

from broker.access.tls.context import TlsError
from broker.control.hosting import Clusters, Hosted, addresses
from broker.control.problems import conflict, unprocessable
from broker.control.request import ControlRequest
from broker.control.verbs import answers
from broker.options import OptionError, ServeOptions, parse
from broker.settings.endpoints import PortTaken
from control_api.answers.clusters import Clusters as ClustersAnswer
from control_api.answers.clusters import RunningCluster
from control_api.clusters import ClusterDeleted, ClusterMade, NewCluster
from control_api.plugins import references

_FIELDS = {"set": "settings", "topic": "topics"}
"""Option of `serve` -> the field of the body from which it is made, where the names differ."""


@answers("clusters list")
async def read_all(request: ControlRequest) -> ClustersAnswer:
    """List the running clusters, in the order in which they were made."""
    return {"clusters": [_described(request, hosted) for hosted in _clusters(request).running.values()]}


@answers("clusters create")
async def create(request: ControlRequest, body: NewCluster) -> ClusterMade:
    """Make a cluster, and return where it is reached."""
    options = options_of(body, request.cluster.options)
    clusters = _clusters(request)
    try:
        created = await clusters.create(
            options,
            body.get("name"),
            body.get("lease_seconds"),
            owner=body.get("owner", ""),
            schema_registry=body.get("schema_registry", False),
        )
    except OptionError as error:
        raise unprocessable(_in_json(error), "schema_registry") from error
    except (PortTaken, TlsError, OSError) as error:
        raise conflict(f"the cluster cannot start: {error}") from error
    if request.given_up is not None and await request.given_up():
        await clusters.end(created, "its client left before the response")
    answer: ClusterMade = {
        "id": created.id,
        "name": created.name,
        "bootstrap_servers": addresses(created.source),
        "control_url": _url(request, created),
    }
    registry_url = {} if created.source.own is None else created.source.own.beside.addresses
    return {**answer, **registry_url}  # type: ignore[typeddict-item]  # its key is schema_registry_url


@answers("clusters delete")
async def delete(request: ControlRequest) -> ClusterDeleted:
    """End a cluster: close its clients' connections and its listeners."""
    clusters, id = _clusters(request), request.names["id"]
    hosted = clusters.of(id)
    if hosted.ended:
        raise hosted.gone()
    await clusters.end(hosted, "it was deleted")
    return {"id": id, "status": "ok"}


def options_of(body: NewCluster, first: ServeOptions) -> ServeOptions:
    """Return the options of a new cluster; its listeners are on the addresses of the first cluster's, on free ports.

    Raises:
        Problem: 422, a broker would not start with them.
    """
    for name, _ in references(body.get("settings", {})):
        sentence = f"{name} names Python code, which is loaded for the first cluster of a server only"
        raise unprocessable(sentence, "settings")
    main = first.listeners[0][0]
    arguments = {
        "brokers": [str(body.get("brokers", 1))],
        "controllers": [str(body.get("controllers", 1))],
        "host": [main.host],
        "port": ["0"],
        "advertise": [] if main.advertised_host is None else [main.advertised_host],
        "topic": [f"{name}:{partitions}" for name, partitions in body.get("topics", {}).items()],
        "set": [f"{name}={value}" for name, value in body.get("settings", {}).items()],
        "as-version": [body["as_version"]] if "as_version" in body else [],
        "seed": [str(body["seed"])] if "seed" in body else [],
        **({"for-tests": ["true"]} if body.get("for_tests", True) else {}),
    }
    try:
        return parse({name: values for name, values in arguments.items() if values})
    except OptionError as error:
        raise unprocessable(_in_json(error)) from error


def _in_json(error: OptionError) -> str:
    """Return the sentence with the fields of the body in place of the options of `serve`."""
    return re.sub(r"--([a-z-]+)", lambda option: _FIELDS.get(option[1], option[1].replace("-", "_")), str(error))


def _clusters(request: ControlRequest) -> Clusters:
    """Return the clusters. Raises Problem 409 for a proxy, which has none."""
    request.cluster  # noqa: B018
    assert request.clusters is not None, "the application sets it"
    return request.clusters


def _described(request: ControlRequest, hosted: Hosted) -> RunningCluster:
    cluster = hosted.source.own
    return RunningCluster(
        id=hosted.id,
        name=hosted.name,
        bootstrap_servers=addresses(hosted.source),
        control_url=_url(request, hosted),
        brokers=0 if cluster is None else len(cluster.nodes),
        topics=0 if cluster is None else len(cluster.image.topics),
        owner=hosted.owner,
        lease_seconds=hosted.lease_seconds,
    )


def _url(request: ControlRequest, hosted: Hosted) -> str:
    """Return the URL of a cluster's control plane, at the address that the caller used."""
    clusters = _clusters(request)
    return request.base_url if hosted is clusters.first else f"{request.base_url}/clusters/{hosted.id}"
