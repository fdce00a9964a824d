"""In-flight records of share groups, by member and time, for the answers about groups."""

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from broker.partitions.share_partition.machine.states import InFlightState, LastDelivery, RecordState
from broker.partitions.share_partition.partition import SharePartition
from broker.partitions.share_partition.partitions import led_by
from control_api.answers import groups as answer

if TYPE_CHECKING:
    from broker.cluster.cluster import Cluster


def share_partitions(cluster: "Cluster", group_id: str) -> Iterator[answer.SharePartition]:
    """Yield a group's share partitions that are loaded at their leaders, by topic and partition."""
    shares = [(share, node.id) for node in cluster.nodes.values() for share in led_by(node).of_group(group_id)]
    shares.sort(key=lambda each: (each[0].partition.topic, each[0].key.partition))
    for share, leader in shares:
        yield answer.SharePartition(
            topic=share.partition.topic,
            partition=share.key.partition,
            leader=leader,
            start_offset=share.inflight.start_offset,
            next_offset=share.inflight.next_fetch_offset(),
            records=tuple(_records(share)),
        )


def _records(share: SharePartition) -> Iterator[answer.ShareRecords]:
    """Yield runs of offsets in the same state; equal neighbours are merged."""
    start = share.inflight.start_offset
    runs = (run for run in share.inflight.runs() if run[1] >= start)
    for _, group in groupby(runs, key=lambda run: _alike(run[2])):
        offsets = list(group)
        state = offsets[0][2]
        held = state.state is RecordState.ACQUIRED
        yield answer.ShareRecords(
            first_offset=max(offsets[0][0], start),
            last_offset=offsets[-1][1],
            state=state.state.name.lower(),
            delivery_count=state.delivery_count,
            member_id=state.member or None,
            since_ms=state.since_ms if held else None,
            lock_until_ms=state.lock_until_ms if held else None,
            last_member_id=None if state.last is None else state.last.member,
            last_since_ms=None if state.last is None else state.last.since_ms,
            last_ended_ms=None if state.last is None else state.last.ended_ms,
            last_end=None if state.last is None else state.last.why,
        )


def _alike(state: InFlightState) -> tuple[RecordState, int, str, int | None, int | None, LastDelivery | None]:
    held = state.state is RecordState.ACQUIRED
    since_ms, until_ms = (state.since_ms, state.lock_until_ms) if held else (None, None)
    return state.state, state.delivery_count, state.member, since_ms, until_ms, state.last
