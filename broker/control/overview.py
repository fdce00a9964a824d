"""The verb behind the console's start page."""

from collections.abc import AsyncIterator, Iterator

from broker.control.activity import STEP_MS, STEPS, Activity
from broker.control.coordinators import transaction_coordinators
from broker.control.faults import state_of
from broker.control.groups import read_all as read_groups
from broker.control.journal import topic_names
from broker.control.refusals import refusals_since
from broker.control.request import ControlRequest
from broker.control.verbs import answers
from control_api.answers.overview import Activity as Counted
from control_api.answers.overview import (
    ClientActivity,
    CountedError,
    LatestRefusal,
    Overview,
    OverviewGroup,
    OverviewTransaction,
)
from protocol.log_records.transaction import TransactionState

_MOST = 20
"""Rows of each list: the overview is one page of the console, and each list has a command of its own.

Ours, what fits on a screen with the other lists.
"""
_MOST_CLIENTS = 200  # one is a line here, and has no command of its own; arbitrary
_REFUSALS_MS = 15 * 60_000
"""As long as Kafka's longest transaction by default: a refusal explains what is open now."""
_DONE = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT,
                   TransactionState.DEAD})  # fmt: skip


@answers("overview")
async def overview(request: ControlRequest) -> Overview:
    """Return all data of the start page in one answer."""
    activity = request.activity
    now = await activity.look(request.source, topic_names(request))
    series, errors = activity.series(now)
    now_ms = request.cluster.clock.now_ms()
    return Overview(
        now_ms=now_ms,
        window_ms=STEPS * STEP_MS,
        step_ms=STEP_MS,
        requests=sum(series),
        errors=sum(errors),
        series=tuple(series),
        error_series=tuple(errors),
        skipped=activity.skipped(now),
        first_entry=activity.first_entry(now),
        apis=_counted(activity, "apis", now),
        topics=_counted(activity, "topics", now),
        clients=tuple(_clients(activity, now, now_ms)),
        counted_errors=tuple(_errors(activity)),
        groups=tuple([each async for each in _groups(request)]),
        transactions=tuple(_transactions(request)),
        refusals=tuple([each async for each in _refusals(request, now_ms)]),
        faults=tuple(map(state_of, request.source.faults.faults.values())),
        oddities=tuple(_oddities(request)),
    )


# --- requests --------------------------------------------------------------------------------------------------------


def _counted(activity: Activity, kind: str, now: int) -> tuple[Counted, ...]:
    items = [
        Counted(name=str(name), requests=sum(series), errors=errors, series=tuple(series))
        for name, (series, errors) in activity.by(kind, now).items()
    ]
    most = sorted(items, key=lambda each: -each.requests)[:_MOST]
    # A stable order, so that the list can be read while it updates.
    return tuple(sorted(most, key=lambda each: each.name))


def _errors(activity: Activity) -> Iterator[CountedError]:
    for (api, error, coded), count in activity.codes().most_common(_MOST):
        entry, client_id = activity.latest.get((api, error), (-1, ""))
        yield CountedError(api=api, error=error, outcome=not coded, count=count, entry=entry, client_id=client_id)


def _clients(activity: Activity, now: int, now_ms: int) -> Iterator[ClientActivity]:
    """Yield clients: connections with the same client id, software and host together."""
    clients: dict[tuple[str, str, str], list[int]] = {}
    for number, seen in activity.connections.items():
        connection = seen.connection
        named = connection is not None and connection.software_name != "unknown"
        software = f"{connection.software_name} {connection.software_version}" if named and connection else ""
        host = "" if connection is None else connection.client_host
        clients.setdefault((seen.client_id, software, host), []).append(number)
    counted = activity.by("connections", now)
    for (client_id, software, host), numbers in sorted(list(clients.items())[-_MOST_CLIENTS:]):
        series = [
            sum(column) for column in zip(*(counted[each][0] for each in numbers if each in counted), strict=True)
        ]
        apis = sorted({pair for each in numbers for pair in activity.connections[each].apis})
        connections = [activity.connections[each].connection for each in numbers]
        alive = [each for each in connections if each is not None and not each.lost]
        yield ClientActivity(
            client_id=client_id,
            software=software,
            host=host,
            connections=tuple(sorted(numbers)),
            open=len(alive),
            apis=tuple(f"{api} v{version}" for api, version in apis),
            requests=sum(series),
            errors=sum(counted[each][1] for each in numbers if each in counted),
            throttled_ms=max([0, *(each.throttled_until_ms - now_ms for each in alive)]),
            series=tuple(series) or (0,) * STEPS,
        )


# --- state -----------------------------------------------------------------------------------------------------------


async def _groups(request: ControlRequest) -> AsyncIterator[OverviewGroup]:
    """Yield the groups with the most lag, by name."""
    groups = sorted((await read_groups(request))["groups"], key=lambda each: -(each.lag or 0))
    for group in sorted(groups[:_MOST], key=lambda each: each.group_id):
        yield OverviewGroup(
            group_id=group.group_id, type=group.type, state=group.state, members=len(group.members), lag=group.lag
        )


def _transactions(request: ControlRequest) -> Iterator[OverviewTransaction]:
    holds = request.cluster.markers.holds
    for _, coordinator in transaction_coordinators(request.cluster):
        for record in list(coordinator.machine.transactions.values()):
            name = str(record.transactional_id)
            held = holds.held(name)
            if held is None and record.state in _DONE:
                continue
            ongoing = record.state is TransactionState.ONGOING
            yield OverviewTransaction(
                transactional_id=name,
                state=record.state.text,
                deadline_ms=record.start_ms + record.timeout_ms if ongoing else None,
                partitions=len(record.partitions or ()),
                held_at=None if held is None else held[0].value,
                stopped=held is not None and held[1],
            )


async def _refusals(request: ControlRequest, now_ms: int) -> AsyncIterator[LatestRefusal]:
    refusals = [each async for each in refusals_since(request, now_ms - _REFUSALS_MS)]
    refusals.sort(key=lambda each: each[1].at_ms or 0, reverse=True)
    for subject, last in refusals[:_MOST]:
        yield LatestRefusal(
            kind=subject.kind, name=subject.name, error=str(last.error), why=last.why, at_ms=last.at_ms or 0
        )


def _oddities(request: ControlRequest) -> Iterator[str]:
    """Yield deliberate disturbances that explain what clients see."""
    cluster = request.cluster
    if cluster.clock.frozen:
        yield "the clock is frozen"
    for node in cluster.nodes.values():
        if not node.up:
            yield f"broker {node.id} is down"
        elif node.silent:
            yield f"broker {node.id} is paused"
    for partition in cluster.partitions.values():
        if partition.held:
            yield f"{partition.name}: replicas on {', '.join(map(str, sorted(partition.held)))} do not replicate"
