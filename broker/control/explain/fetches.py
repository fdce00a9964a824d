"""Why fetches return no records: hints of the report, from the latest requests and the present state of the logs.

Each consumer's latest Fetch of a partition counts. A hint names the client, the partition, the cause with its time, and
when it ends.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.control.coordinators import transaction_coordinators
from broker.replication.partition import ReplicatedPartition
from broker.request.fetch_sessions import replica_of
from broker.steering.journal.entries import Decoded, TopicName
from broker.steering.journal.mentioned import few
from control_api.times import local_time
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest, FetchResponse
from protocol.messages.offset_fetch import OffsetFetchResponse
from protocol.types import uuid_text

if TYPE_CHECKING:
    from broker.cluster.cluster import Cluster
    from broker.steering.journal.ring import Entry

Place = tuple[str, int]
_MEANING = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "no ACL allows its principal to read the topic",
    ErrorCode.KAFKA_STORAGE_ERROR: "the log directory of the broker is offline",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "the broker is not the leader; the client looks for it",
    ErrorCode.FENCED_LEADER_EPOCH: "the client knows an older leader epoch; it asks for metadata again",
    ErrorCode.UNKNOWN_LEADER_EPOCH: "the client knows a newer leader epoch than the broker",
    ErrorCode.CORRUPT_MESSAGE: "the log has a batch that cannot be read",
    ErrorCode.INCONSISTENT_TOPIC_ID: "the topic was deleted and created again; the session has the old id",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "the client cannot read zstd",
}


class _Fetch(NamedTuple):
    """The latest Fetch of one client for one partition; the offset is -1 if the request does not list it."""

    client: str
    offset: int
    answer: Any
    at_ms: int
    fault: str | None


class _Seen:
    """What the requests show: by client and partition the latest Fetch, the committed offset, whether records came."""

    def __init__(self, name_of: TopicName) -> None:
        self._name_of = name_of
        self._offsets: dict[tuple[int, Place], int] = {}
        self.latest: dict[tuple[str, Place], _Fetch] = {}
        self.committed: dict[tuple[str, Place], tuple[str, int]] = {}
        self.fed: set[tuple[str, Place]] = set()
        self.aborted: dict[tuple[str, Place], tuple[int, int]] = {}
        self.throttled: dict[str, tuple[int, int]] = {}

    def add(self, entry: "Entry", decoded: Decoded) -> None:
        """Add a request, the older ones first."""
        client = "-" if decoded.header is None else decoded.header.client_id or "-"
        if isinstance(decoded.response, OffsetFetchResponse):
            self.committed |= dict(_committed(decoded, client, self._name_of))
        if not isinstance(decoded.request, FetchRequest) or replica_of(decoded.request) >= 0:
            return
        for topic in decoded.request.topics:
            for fetch_partition in topic.partitions:
                self._offsets[entry.connection, (_name(topic, self._name_of), fetch_partition.partition)] = (
                    fetch_partition.fetch_offset
                )
        if not isinstance(decoded.response, FetchResponse):
            return
        for answered in decoded.response.responses:
            for part in answered.partitions:
                self._add_partition(client, (_name(answered, self._name_of), part.partition_index), part, entry)
        if decoded.response.throttle_time_ms and not decoded.response.responses:
            self.throttled[client] = entry.at_ms, decoded.response.throttle_time_ms

    def _add_partition(self, client: str, place: Place, part: Any, entry: "Entry") -> None:
        offset = self._offsets.get((entry.connection, place), -1)
        if part.aborted_transactions:
            last = part.aborted_transactions[-1]
            self.aborted[client, place] = last.first_offset, last.producer_id
        if part.records:
            self.fed.add((client, place))
        self.latest[client, place] = _Fetch(client, offset, part, entry.at_ms, entry.fault)


def fetch_hints(cluster: "Cluster", requests: Iterable[tuple["Entry", Decoded]], name_of: TopicName) -> Iterator[str]:
    """Yield the hints. ``requests`` are the newest journal entries, oldest first."""
    seen = _Seen(name_of)
    for entry, decoded in requests:
        seen.add(entry, decoded)
    for client, (at_ms, quota_ms) in seen.throttled.items():
        yield f"client {client} got no records at {local_time(at_ms)}: its quota delays it by {quota_ms} ms"
    yield from _at_the_end(cluster, seen)
    for (client, place), (first, producer_id) in seen.aborted.items():
        name = _transactional_id(cluster, producer_id)
        yield (
            f"client {client} skips records of {place[0]}-{place[1]} from offset {first} on, as it reads committed "
            f"records only, and {name} has aborted the transaction"
        )
    for (_, place), fetch in seen.latest.items():
        yield from _of_fetch(cluster, place, fetch)
    yield from _not_replicated(cluster, seen.latest)


def _transactional_id(cluster: "Cluster", producer_id: int) -> str:
    names = (
        record.transactional_id
        for _, coordinator in transaction_coordinators(cluster)
        for record in coordinator.machine.transactions.values()
        if record.producer_id == producer_id
    )
    return f"transactional id {next(names, '') or f'of producer {producer_id}'}"


def _committed(
    decoded: Decoded, client: str, name_of: TopicName
) -> Iterator[tuple[tuple[str, Place], tuple[str, int]]]:
    """Yield client and partition with the group and the committed offset that OffsetFetch has answered."""
    response: Any = decoded.response
    for group in response.groups:
        for topic in group.topics:
            name = topic.name or (name_of(uuid_text(topic.topic_id)) if topic.topic_id is not None else "") or ""
            for part in topic.partitions:
                if part.committed_offset >= 0:
                    yield (client, (name, part.partition_index)), (group_in(decoded, group), part.committed_offset)


def group_in(decoded: Decoded, answered: Any) -> str:
    """Return the group id of an entry of an OffsetFetch response; before version 8 only the request names it."""
    request: Any = decoded.request
    return str(answered.group_id or next((each.group_id for each in getattr(request, "groups", ())), ""))


def _at_the_end(cluster: "Cluster", seen: _Seen) -> Iterator[str]:
    """Yield clients that got no record at all: their partitions are empty, or their group has read everything."""
    unfed = {each: seen.committed.get(each) for each in seen.latest if each not in seen.fed}
    fed = {client for client, _ in seen.fed}
    by_client: dict[str, list[tuple[Place, tuple[str, int] | None]]] = {}
    for (client, place), start in unfed.items():
        by_client.setdefault(client, []).append((place, start))
    for client in by_client.keys() - fed:
        ends = {place: _end_of(cluster, place) for place, _ in by_client[client]}
        if not any(ends.values()):
            others = [f"{topic}-{index}" for topic, index in sorted(cluster.partitions)
                      if topic in {name for name, _ in ends} and _end_of(cluster, (topic, index))]  # fmt: skip
            elsewhere = f"; records are in {few(others)}" if others else ": no client has written any"
            places = few([f"{topic}-{index}" for topic, index in ends])
            yield f"client {client} reads {places}, without records{elsewhere}"
        for place, start in by_client[client]:
            if start is not None and start[1] == ends[place]:
                group, offset = start
                by = _commit_of(cluster.group_timelines.last_commit(group, *place))
                yield (
                    f"client {client} started {place[0]}-{place[1]} at offset {offset}, the log end, which group "
                    f"{group} has committed{by}: the group has read all records"
                )


def _commit_of(commit: tuple[int, str | None] | None) -> str:
    """Write when and by whom an offset was committed; empty if that is not known."""
    if commit is None:
        return ""
    at_ms, client = commit
    return f" at {local_time(at_ms)} by " + ("the control plane" if client is None else f"client {client}")


def _end_of(cluster: "Cluster", place: Place) -> int:
    partition = cluster.partitions.get(place)
    log = None if partition is None else partition.logs.get(partition.state.leader)
    return 0 if log is None else log.log_end_offset


def _name(topic: Any, name_of: TopicName) -> str:
    named = topic.topic
    return str(named or (name_of(uuid_text(topic.topic_id)) if topic.topic_id is not None else "") or "")


def _of_fetch(cluster: "Cluster", place: Place, fetch: _Fetch) -> Iterator[str]:
    code = fetch.answer.error_code
    name, when = f"{place[0]}-{place[1]}", f"at {local_time(fetch.at_ms)}"
    if code is ErrorCode.NONE or fetch.fault:
        return
    if code is ErrorCode.OFFSET_OUT_OF_RANGE:
        why = out_of_range(cluster, place, fetch.offset)
        yield f"client {fetch.client} asked for offset {fetch.offset} of {name} {when}, which {why}"
    elif code in _MEANING:
        yield f"client {fetch.client} got no records of {name} {when}, but {code.name}: {_MEANING[code]}"


def out_of_range(cluster: "Cluster", place: Place, offset: int) -> str:
    """Write why a partition does not have an offset, as the end of a sentence."""
    partition = cluster.partitions.get(place)
    log = None if partition is None else partition.logs.get(partition.state.leader)
    deleted = cluster.deleted_partitions.of(*place)
    if partition is None or log is None:
        return "is not there: the partition has no leader, or its topic was deleted"
    has = f"the log has {log.log_start_offset} to {log.high_watermark} now"
    for move in reversed(partition.moves):
        if move.is_start and move.before <= offset < move.after:
            start = f"which moved the log start from {move.before} to {move.after}"
            return f"was removed at {local_time(move.at_ms)} by {move.why}, {start}; {has}"
        if not move.is_start and move.after < offset <= move.before:
            end = f"the log end went from {move.before} to {move.after}"
            return f"was lost at {local_time(move.at_ms)} with the election of {move.why}: {end}; {has}"
    if deleted is not None and deleted.topic_id != partition.topic_id and offset <= deleted.end_offset:
        return f"was an offset of the topic that was deleted at {local_time(deleted.at_ms)} and created again; {has}"
    if offset < log.log_start_offset:
        return f"is below the log start, which moved before this server started; {has}"
    return f"this log has never had; {has}"


def _not_replicated(cluster: "Cluster", latest: Iterable[tuple[str, Place]]) -> Iterator[str]:
    """Yield partitions with records beyond the high watermark: consumers get them when the replicas have them."""
    for place in dict.fromkeys(place for _, place in latest):
        partition = cluster.partitions.get(place)
        log = None if partition is None else partition.logs.get(partition.state.leader)
        if partition is None or log is None or log.high_watermark >= log.log_end_offset:
            continue
        behind = [each for each in partition.state.isr if _end(partition, each) < log.log_end_offset]
        names = few([f"broker {each}{_why(cluster, partition, each)}" for each in behind]) or "an in-sync replica"
        yield (
            f"consumers do not get {partition.name} from offset {log.high_watermark} on until its in-sync replicas "
            f"have it: {names}"
        )


def _end(partition: ReplicatedPartition, broker_id: int) -> int:
    log = partition.logs.get(broker_id)
    return -1 if log is None else log.log_end_offset


def _why(cluster: "Cluster", partition: ReplicatedPartition, broker_id: int) -> str:
    node = cluster.nodes.get(broker_id)
    if broker_id in partition.held:
        return " is kept from replicating by the control plane"
    if node is None or not node.up:
        return " is down, until it is fenced after broker.session.timeout.ms"
    return " is paused" if node.server.paused else " is behind"
