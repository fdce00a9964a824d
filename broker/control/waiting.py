"""Hints of the report: why a client may be waiting for a response, or gets no records."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from broker.control.coordinators import group_coordinators, transaction_coordinators
from broker.control.explain.fetches import fetch_hints, group_in
from broker.control.explain.group_state import GroupState, happened
from broker.control.request import ControlRequest
from broker.control.share_groups import share_partitions
from broker.coordination.group.group import Group
from broker.partitions.share_partition.settings import LATEST, offset_reset, share_settings
from broker.request.connection import Connection
from broker.settings import BrokerSettings
from broker.steering.journal.entries import Decoded, TopicName
from broker.steering.journal.mentioned import answered, place, requested
from broker.steering.journal.ring import Entry
from control_api.spelling import plain
from control_api.times import local_time
from protocol.errors import ErrorCode
from protocol.items import Item
from protocol.messages.fetch import FetchRequest
from protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from protocol.messages.offset_fetch import OffsetFetchResponse
from protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from protocol.paths import errors
from protocol.types import uuid_text

if TYPE_CHECKING:
    from broker.cluster.cluster import Cluster

_MOST_NAMED, _MOST_PLACES = 4, 3  # members and partitions in one sentence; the rest is counted; ours, for one line
_LATEST, _NOTHING_COMMITTED = -1, -1
_READ_COMMITTED = 1


def hints_of(
    request: ControlRequest, requests: Iterable[tuple[Entry, Decoded]], name_of: TopicName, since_ms: int
) -> Iterator[str]:
    """Yield hints, one sentence each. ``requests`` are the newest journal entries, oldest first."""
    cluster, calls = request.cluster, list(requests)
    decoded = [each for _, each in calls]
    returned = set(_returned(cluster, calls))
    if cluster.clock.frozen:
        yield "the clock is frozen: no timeout, session or long poll ends until you advance it"
    yield from map(plain, _of_groups(request, since_ms, returned))
    yield from map(plain, _of_closed_connections(cluster, since_ms))
    yield from map(plain, fetch_hints(cluster, calls, name_of))
    yield from map(plain, _of_ends(cluster, decoded, name_of))
    for _, transactions in transaction_coordinators(cluster):
        for record in transactions.machine.transactions.values():
            held = cluster.markers.holds.held(record.transactional_id)
            if held is not None and held[1]:
                yield plain(f"transactional id {record.transactional_id} is held at {held[0].value} until released")
    yield from map(plain, _of_open_transactions(cluster, decoded, name_of))
    yield from map(plain, _of_share_starts(cluster, decoded))
    yield from map(plain, _of_last_deliveries(cluster, request.source.settings, decoded, name_of))


# --- groups ----------------------------------------------------------------------------------------------------------


def _of_groups(request: ControlRequest, since_ms: int, returned: set[int]) -> Iterator[str]:
    """Yield what has happened to groups, and what their members wait for."""
    cluster = request.cluster
    for name in cluster.group_timelines.ids():  # also of groups that have expired meanwhile
        for sentence in happened(request.source, name, since_ms):
            if sentence.hint:
                yield sentence.text
    for _, coordinator in group_coordinators(cluster):
        for group in coordinator.machine.groups.values():
            for sentence in GroupState(request, group, coordinator).sentences():
                if sentence.hint:
                    yield sentence.text
            yield from _of_earlier_members(cluster, group, since_ms, returned)


def _returned(cluster: "Cluster", requests: Iterable[tuple[Entry, Decoded]]) -> Iterator[int]:
    """Yield connections of members that the last reset disconnected: no group has issued their member ids since."""
    if not cluster.journal.era:
        return
    for entry, decoded in requests:
        member = getattr(decoded.request, "member_id", "")
        if not member or next(errors(decoded.response), None) is not ErrorCode.UNKNOWN_MEMBER_ID:
            continue
        history = cluster.group_timelines.of(str(getattr(decoded.request, "group_id", ""))).events
        if not any(event.member_id == member and not event.error and event.at_ms < entry.at_ms for event in history):
            yield entry.connection


def _of_earlier_members(cluster: "Cluster", group: Group, since_ms: int, returned: set[int]) -> Iterator[str]:
    """Yield a hint about group members that connected before the last reset, or before the test, if others came later.

    ``returned``: the connections of members that the reset disconnected and that reconnected.
    """
    members: Any = getattr(group, "members", {})
    if len(members) < 2:
        return  # the only member belongs to the test itself
    wanted = {str(member.member_id) for member in members.values()}
    numbers: dict[str, int] = {}
    for event in cluster.group_timelines.of(str(group.group_id)).events:
        if event.member_id in wanted and event.connection is not None:
            numbers[event.member_id] = event.connection
    by_name = {name: cluster.journal.connection(number) for name, number in numbers.items()}
    connections = [each for each in by_name.values() if each is not None]
    before_reset = [each for each in connections if each.era < cluster.journal.era or each.number in returned]
    before = before_reset or [each for each in connections if each.first_at_ms < since_ms]
    if not before or len(before) == len(members):
        return
    clients = {number: member.client_id for member in members.values() if (number := numbers.get(member.member_id))}
    when = "the last reset" if before_reset else "this test began"
    if before_reset and all(each.era == cluster.journal.era for each in before):
        when += " and reconnected"
    named = ", ".join(_client(each, clients) for each in before[:_MOST_NAMED])
    verb = "connected" if len(before) > 1 else "which connected"
    yield f"a consumer of an earlier test is still in group {group.group_id}: {named}, {verb} before {when}"


def _client(connection: Connection, clients: dict[int, str]) -> str:
    return f"client {clients.get(connection.number) or '-'} (connection {connection.number})"


def _of_closed_connections(cluster: "Cluster", since_ms: int) -> Iterator[str]:
    """Yield the connections that a broker closed because of what they sent, such as TLS to a listener without it."""
    for node, server in cluster.servers.items():
        for at_ms, peer, reason in list(server.refusals.closed)[-_MOST_NAMED:]:
            if at_ms >= since_ms:
                yield f"broker {node.id} closed the connection of {peer} at {local_time(at_ms)}: {reason}"


# --- records that a consumer does not get ----------------------------------------------------------------------------


def _of_ends(cluster: "Cluster", requests: Iterable[Decoded], name_of: TopicName) -> Iterator[str]:
    """Yield a hint about each consumer without a committed offset that started at the end of a non-empty log."""
    groups: dict[tuple[str, str], str] = {}
    starts: dict[str, list[str]] = defaultdict(list)
    for decoded in requests:
        client = "" if decoded.header is None else decoded.header.client_id or ""
        for name in _begun(decoded, name_of):  # later, it may list the end offset for another reason
            groups.pop((client, name), None)
        if isinstance(decoded.response, OffsetFetchResponse):
            for item in _uncommitted(decoded, decoded.response):
                groups[client, place(item, name_of)] = str(item.group)
        elif isinstance(decoded.request, ListOffsetsRequest) and isinstance(decoded.response, ListOffsetsResponse):
            for name, topic, index in _at_the_end(decoded.request):
                partition = cluster.partitions.get((topic, index))
                log = None if partition is None else partition.logs.get(partition.state.leader)
                end = _answered_offset(decoded.response, topic, index)
                group = groups.pop((client, name), None)
                if group is not None and log is not None and end > log.log_start_offset:
                    starts[f"group {group} had no committed offset, so client {client} started"].append(
                        f"{name} at offset {end}"
                    )
    for begin, ends in starts.items():
        more = f" and {len(ends) - _MOST_PLACES} more" if len(ends) > _MOST_PLACES else ""
        places = ", ".join(ends[:_MOST_PLACES])
        yield f"{begin} {places}{more}, the log end, and skips the records before it: auto.offset.reset is latest"


def _begun(decoded: Decoded, name_of: TopicName) -> Iterator[str]:
    """Yield partitions whose consumer did not start at the log end, according to this request."""
    if isinstance(decoded.request, FetchRequest):
        yield from (place(item, name_of) for item in requested(decoded))
    elif isinstance(decoded.request, ListOffsetsRequest):
        for topic in decoded.request.topics:
            for partition in topic.partitions:
                if partition.timestamp != _LATEST:
                    yield f"{topic.name}-{partition.partition_index}"


def _uncommitted(decoded: Decoded, response: OffsetFetchResponse) -> Iterator[Item]:
    for group in response.groups:
        for topic in group.topics:
            for partition in topic.partitions:
                if partition.committed_offset == _NOTHING_COMMITTED:
                    name = topic.name or topic.topic_id
                    yield Item(topic=name, partition=partition.partition_index, group=group_in(decoded, group))


def _at_the_end(request: ListOffsetsRequest) -> Iterator[tuple[str, str, int]]:
    for topic in request.topics:
        for partition in topic.partitions:
            if partition.timestamp == _LATEST:
                yield f"{topic.name}-{partition.partition_index}", topic.name, partition.partition_index


def _answered_offset(response: ListOffsetsResponse, name: str, index: int) -> int:
    partitions = (partition for topic in response.topics if topic.name == name for partition in topic.partitions)
    return next((partition.offset for partition in partitions if partition.partition_index == index), -1)


def _of_open_transactions(cluster: "Cluster", requests: Iterable[Decoded], name_of: TopicName) -> Iterator[str]:
    """Yield a hint about each open transaction that holds back read_committed consumers (last stable offset)."""
    read: dict[str, None] = {}
    for decoded in requests:
        if isinstance(decoded.request, FetchRequest) and decoded.request.isolation_level == _READ_COMMITTED:
            for item in (*requested(decoded), *answered(decoded)):
                read[place(item, name_of)] = None
    open_in = _open_in(cluster)
    waiting: dict[str, list[str]] = defaultdict(list)
    for partition in cluster.partitions.values():
        log = partition.logs.get(partition.state.leader) if partition.name in read else None
        if log is not None and log.last_stable_offset < log.high_watermark:
            owner = open_in.get(partition.name, "a producer that no coordinator knows")
            waiting[owner].append(f"{partition.name} from offset {log.last_stable_offset} on")
    for owner, places in waiting.items():
        named = ", ".join(places[:_MOST_PLACES])
        yield f"read_committed consumers do not get {named} until the transaction of {owner} ends"


def _of_share_starts(cluster: "Cluster", requests: Iterable[Decoded]) -> Iterator[str]:
    """Yield a hint about each share group that started at the end of a log, and has got no record since."""
    fetching: dict[str, bool] = {}
    for decoded in requests:
        if isinstance(decoded.request, ShareFetchRequest) and isinstance(decoded.response, ShareFetchResponse):
            parts = (part for topic in decoded.response.responses for part in topic.partitions)
            group = decoded.request.group_id or ""
            fetching[group] = any(part.acquired_records for part in parts) or fetching.get(group, False)
    for group in [name for name, fed in fetching.items() if not fed and offset_reset(cluster, name)[0] == LATEST]:
        for share in share_partitions(cluster, group):
            partition = cluster.partitions.get((share.topic, share.partition))
            log = None if partition is None else partition.logs.get(partition.state.leader)
            if log is not None and log.log_start_offset < share.start_offset == share.next_offset:
                yield (
                    f"share group {group} got no records: it started {share.topic}-{share.partition} at offset "
                    f"{share.start_offset}, the log end, and skips the records before it: "
                    "share.auto.offset.reset is latest"
                )


def _of_last_deliveries(
    cluster: "Cluster", settings: BrokerSettings, requests: Iterable[Decoded], name_of: TopicName
) -> Iterator[str]:
    """Yield a hint about the records that members of a share group got as often as the group allows."""
    last: dict[tuple[str, str, int], dict[str, None]] = defaultdict(dict)
    for decoded in requests:
        if not isinstance(decoded.request, ShareFetchRequest) or not isinstance(decoded.response, ShareFetchResponse):
            continue
        group = decoded.request.group_id or ""
        limit = share_settings(cluster, settings, group).max_delivery_count
        for topic in decoded.response.responses:
            topic_id = "" if topic.topic_id is None else uuid_text(topic.topic_id)
            name = name_of(topic_id) or topic_id
            for part in topic.partitions:
                for each in part.acquired_records:
                    if each.delivery_count >= limit:
                        to = "" if each.first_offset == each.last_offset else f" to {each.last_offset}"
                        last[group, f"{name}-{part.partition_index}", limit][f"{each.first_offset}{to}"] = None
    for (group, name, limit), offsets in last.items():
        shown = ", ".join(list(offsets)[:_MOST_PLACES]) + (" and others" if len(offsets) > _MOST_PLACES else "")
        yield (
            f"share group {group} got offset {shown} of {name} {limit} times, as often as share.delivery.count.limit "
            "allows: unless accepted, a record is archived then, not delivered again"
        )


def _open_in(cluster: "Cluster") -> dict[str, str]:
    """Return partition name -> a transactional id with an open transaction there."""
    return {
        f"{topic}-{index}": str(record.transactional_id)
        for _, coordinator in transaction_coordinators(cluster)
        for record in coordinator.machine.transactions.values()
        for topic, index in record.partitions or ()
    }
