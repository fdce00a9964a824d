"""Why fetches return no records: hints of the report, from the latest requests and the present state of the logs.

Each consumer's latest Fetch of a partition counts. A hint names the client, the partition, the cause with its time, and
when it ends.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.replication.partition import ReplicatedPartition
from broker.request.fetch_sessions import replica_of
from broker.steering.journal.entries import Decoded, TopicName
from broker.steering.journal.mentioned import few
from control_api.times import local_time
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest, FetchResponse
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


def fetch_hints(cluster: "Cluster", requests: Iterable[tuple["Entry", Decoded]], name_of: TopicName) -> Iterator[str]:
    """Yield the hints. ``requests`` are the newest journal entries, oldest first."""
    latest: dict[tuple[str, Place], _Fetch] = {}
    offsets: dict[tuple[int, Place], int] = {}
    for entry, decoded in requests:
        if not isinstance(decoded.request, FetchRequest) or replica_of(decoded.request) >= 0:
            continue
        client = "-" if decoded.header is None else decoded.header.client_id or "-"
        for topic in decoded.request.topics:
            for asked in topic.partitions:
                offsets[entry.connection, (_name(topic, name_of), asked.partition)] = asked.fetch_offset
        if not isinstance(decoded.response, FetchResponse):
            continue
        for answered in decoded.response.responses:
            for part in answered.partitions:
                place = _name(answered, name_of), part.partition_index
                latest[client, place] = _Fetch(
                    client, offsets.get((entry.connection, place), -1), part, entry.at_ms, entry.fault
                )
        if decoded.response.throttle_time_ms and not decoded.response.responses:
            quota = decoded.response.throttle_time_ms
            yield f"client {client} got no records at {local_time(entry.at_ms)}: its quota delays it by {quota} ms"
    for (_, place), fetch in latest.items():
        yield from _of_fetch(cluster, place, fetch)
    yield from _not_replicated(cluster, latest)


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
