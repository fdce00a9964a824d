"""The proxy's verbs about the cluster, transactions and groups, which know only what was forwarded."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from broker.control.explain.transaction import timeline_of, unused
from broker.control.groups import no_group
from broker.control.request import ControlRequest
from broker.control.verbs import Function
from broker.settings.specification import cite
from control_api.answers import groups as of_groups
from control_api.answers import transactions as of_transactions
from control_api.answers.cluster import Broker, ClockState, ClusterInfo, Listener, Snapshots, Versions
from control_api.cluster import Reset, ResetDone
from control_api.encoding import copied
from control_api.spelling import host_and_port
from protocol.log_records.transaction import TransactionState

if TYPE_CHECKING:
    from proxy.proxy import Proxy


def _proxy(request: ControlRequest) -> "Proxy":
    return cast("Proxy", request.source)


# --- the cluster -----------------------------------------------------------------------------------------------------


async def describe(request: ControlRequest) -> ClusterInfo:
    """Return the known brokers, with the addresses that the proxy gives to clients."""
    proxy = _proxy(request)
    brokers = []
    for each in proxy.upstreams:
        host, port = each.advertised
        endpoint, bound = next(iter(each.bound.values()))
        listener = Listener(endpoint.name, endpoint.protocol, host, port, endpoint.host, bound)
        brokers.append(Broker(id=each.id, host=host, port=port, listeners=(listener,)))
    return ClusterInfo(
        cluster_id=proxy.cluster_id,
        controller=proxy.controller_id,
        brokers=tuple(brokers),
        seed=proxy.seed,
        topics=len(proxy.image.topics),
    )


async def reset(request: ControlRequest, body: Reset) -> ResetDone:
    """Remove faults, journal and timelines; the upstream cluster stays as it is."""
    proxy = _proxy(request)
    proxy.faults.clear(reset=True)
    proxy.journal.clear()
    proxy.journal.era += 1
    proxy.views.clear()
    for each in proxy.upstreams:
        each.server.end_silence()
        if body.get("disconnect"):
            each.server.connections.close()
    if not body.get("disconnect"):
        return {"status": "ok"}
    return {"status": "ok", "bootstrap_servers": [host_and_port(*each) for each in proxy.bootstrap]}


async def clock(request: ControlRequest) -> ClockState:
    """Return the machine's time: a proxy has no clock of its own."""
    return ClockState(_proxy(request).clock.now_ms())


async def versions(request: ControlRequest) -> Versions:  # noqa: ARG001
    """Return nothing: the upstream brokers determine the versions that they serve."""
    return {"as_version": "", "releases": [], "apis": {}}


async def snapshots(request: ControlRequest) -> Snapshots:  # noqa: ARG001
    """Return no snapshots: the state is that of the upstream brokers."""
    return {"snapshots": []}


# --- transactions ----------------------------------------------------------------------------------------------------


async def transactions(request: ControlRequest) -> of_transactions.Transactions:
    """Return the transactional ids that were used, by name."""
    return {"transactions": [_transaction(request, name, detail=False) for name in sorted(_seen(request))]}


async def transaction(request: ControlRequest) -> of_transactions.Transaction:
    """Return the state of one transactional id, as concluded from its requests and responses."""
    name = request.names["transactional_id"]
    if name not in _seen(request):
        raise unused(request, name)
    return _transaction(request, name, detail=True)


def _seen(request: ControlRequest) -> Mapping[str, object]:
    return _proxy(request).views.seen_transactions


def _transaction(request: ControlRequest, name: str, *, detail: bool) -> of_transactions.Transaction:
    views = _proxy(request).views
    record, broker = views.seen_transactions[name]
    history = views.transactions.of(name)
    ongoing = record.state is TransactionState.ONGOING
    return of_transactions.Transaction(
        transactional_id=name,
        state=record.state.text,
        producer_id=record.producer_id,
        producer_epoch=record.producer_epoch,
        timeout_ms=record.timeout_ms,
        deadline_ms=record.start_ms + record.timeout_ms if ongoing and record.timeout_ms >= 0 else None,
        coordinator=broker,
        partitions=tuple(f"{topic}-{index}" for topic, index in sorted(record.partitions or ())) if ongoing else (),
        timeline=timeline_of(history) if detail else (),
        forgotten=history.forgotten,
    )


# --- groups ----------------------------------------------------------------------------------------------------------


async def groups(request: ControlRequest) -> of_groups.Groups:
    """Return the groups of the members that were seen, by name."""
    return {"groups": [_group(request, name) for name in sorted(_proxy(request).views.seen_groups)]}


async def group(request: ControlRequest) -> of_groups.Group:
    """Return the generation and the timeline of one group."""
    name = request.names["group"]
    if name not in _proxy(request).views.seen_groups:
        raise no_group(request, name)
    return _group(request, name)


def _group(request: ControlRequest, name: str) -> of_groups.Group:
    views = _proxy(request).views
    state, epoch, broker = views.seen_groups[name]
    history = views.groups.of(name)
    events = (copied(of_groups.GroupEvent, each, citation=cite(each.rule, each.source)) for each in history.events)
    return of_groups.Group(
        group_id=name,
        state=state,
        epoch=epoch,
        coordinator=broker,
        timeline=tuple(events),
        forgotten=history.forgotten,
    )


VERBS: Mapping[str, Function] = {
    "cluster": describe,
    "reset": reset,
    "clock show": clock,
    "versions show": versions,
    "snapshots list": snapshots,
    "transactions list": transactions,
    "transactions show": transaction,
    "groups list": groups,
    "groups show": group,
}
"""Verb -> the proxy's function for it, in place of that for a cluster of Understudy's."""
