"""Reads a topic of a running cluster record by record, without those of aborted transactions, and creates a topic."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol

from pipeline.live.asking import LiveCluster
from pipeline.transfer.wire import EARLIEST, FETCH_BYTES, LATEST, WireError
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.records.batch import batches
from protocol.records.records import Record, read_records
from protocol.topic_names import complaint_of

__all__ = ["EARLIEST", "LATEST", "Member", "TopicReader", "no_broker", "read_committed", "records_of"]

_PARTITION_BYTES: Final = 1 << 20  # max.partition.fetch.bytes of Kafka's consumer
_WAIT_MS: Final = 250  # of all brokers together, so that a record is shown within half a second
_PAUSE_S: Final = 0.1  # retry.backoff.ms of Kafka's clients
_MOST_TRIES: Final = 30  # three seconds with these pauses: an election takes less
_READ_COMMITTED: Final = 1


class Member(Protocol):
    """A member of a group: it has the offsets to read from, and commits them."""

    positions: dict[int, int]

    def poll(self) -> None:
        """Stay in the group, take over a new assignment, and commit what was read."""


def no_broker(error: WireError) -> str:
    """Return the message of an error, with what to do if no broker answers."""
    if not str(error).startswith("no broker answers"):
        return str(error)
    return f"{error}; `understudy serve` starts a broker, and --bootstrap-server names another address"


class TopicReader(LiveCluster):
    """A cluster whose topics are read record by record."""

    def created(self, topic: str) -> int:
        """Return the number of partitions of a topic, which is created if the cluster allows it. Raises WireError."""
        if (complaint := complaint_of(topic)) is not None:
            raise WireError(f"the topic {complaint}")
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True)
        for _ in range(_MOST_TRIES):
            description = self.ask_any(ApiKey.METADATA, request).topics[0]
            if description.error_code is ErrorCode.NONE and all(each.leader_id >= 0 for each in description.partitions):
                self.refresh()
                return len(description.partitions)
            if description.error_code not in {
                ErrorCode.NONE,
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode.LEADER_NOT_AVAILABLE,
            }:
                raise WireError(f"the topic {topic}: {description.error_code.name}")
            time.sleep(_PAUSE_S)  # noqa: TID251 - a command waits in real time
        raise WireError(
            f"the topic {topic} does not exist, or has no leader, and the cluster does not create it "
            f"(auto.create.topics.enable); `understudy serve --topic {topic}` starts a broker that has it"
        )

    def poll(self, topic: str, positions: dict[int, int]) -> Iterator[tuple[int, Record]]:
        """Yield records with their partitions, from these offsets on, which move with each record. Raises WireError."""
        nodes = list(self._by_leader([(topic, partition) for partition in positions]))
        if sum(len(numbers) for _, topics in nodes for numbers in topics.values()) < len(positions):
            time.sleep(_PAUSE_S)  # noqa: TID251 - a command waits in real time
            self.refresh()
        for node, topics in nodes:
            wanted = [
                FetchPartition(each, fetch_offset=positions[each], partition_max_bytes=_PARTITION_BYTES)
                for each in topics[topic]
            ]
            request = FetchRequest(
                replica_id=-1, max_wait_ms=_WAIT_MS // len(nodes), min_bytes=1, max_bytes=FETCH_BYTES,
                isolation_level=_READ_COMMITTED, session_id=0, session_epoch=-1, topics=[FetchTopic(topic, wanted)],
            )  # fmt: skip
            try:
                answer = self.ask_node(node, ApiKey.FETCH, request)
            except OSError:
                time.sleep(_PAUSE_S)  # noqa: TID251 - a command waits in real time
                self.refresh()
                continue
            for each in [each for fetched in answer.responses for each in fetched.partitions]:
                number = each.partition_index
                if each.error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
                    positions[number] = self.offset(topic, number, EARLIEST)
                elif each.error_code is not ErrorCode.NONE:
                    self._refresh_or_end(topic, number, each.error_code)
                else:
                    aborted = [(one.first_offset, one.producer_id) for one in each.aborted_transactions or ()]
                    raw = each.records or b""
                    piece = b"".join(raw) if isinstance(raw, list | tuple) else bytes(raw)
                    records, next_offset = read_committed(piece, positions[number], aborted)
                    for record in records:
                        positions[number] = record.offset + 1
                        yield number, record
                    positions[number] = next_offset

    def _refresh_or_end(self, topic: str, partition: int, code: ErrorCode) -> None:
        if code not in {
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.FENCED_LEADER_EPOCH,
            ErrorCode.OFFSET_NOT_AVAILABLE,
        }:
            raise WireError(f"{topic}-{partition}: {code.name}")
        time.sleep(_PAUSE_S)  # noqa: TID251 - a command waits in real time
        self.refresh()


def read_committed(piece: bytes, start: int, aborted: Sequence[tuple[int, int]]) -> tuple[Sequence[Record], int]:
    """Return the committed records of a fetched piece from an offset on, and the offset after its last whole batch.

    ``aborted``: first offset and producer id of the aborted transactions that the response lists.
    """
    waiting, aborting = sorted(aborted), set[int]()
    records: list[Record] = []
    next_offset = start
    for batch in batches(piece):
        while waiting and waiting[0][0] <= batch.last_offset:
            aborting.add(waiting.pop(0)[1])
        if batch.is_control:
            aborting.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborting):
            records += [record for record in read_records(batch) if record.offset >= start]
        next_offset = max(next_offset, batch.next_offset)
    return records, next_offset


def records_of(
    cluster: TopicReader, topic: str, start: int, *, follow: bool, member: Member | None
) -> Iterator[tuple[int, Record | None]]:
    """Yield the records of a topic with their partitions; None where the reader waits for further ones.

    ``start``: EARLIEST or LATEST. Without ``follow``, it ends at what was committed at the start. Raises WireError.
    """
    places = [(topic, partition) for partition in cluster.topics[topic].leaders]
    ends = (
        {} if follow else {number: end for (_, number), end in cluster.bounds(places, LATEST, committed=True).items()}
    )
    if member is None:
        positions = {number: offset for (_, number), offset in cluster.bounds(places, start).items()}
    else:
        positions = member.positions
    while follow or _unfinished(positions, ends):
        unfinished = positions if follow else _unfinished(positions, ends)
        for number, record in cluster.poll(topic, unfinished):
            positions[number] = record.offset + 1
            yield number, record
        positions.update(unfinished)
        yield -1, None
        if member is not None:
            member.poll()


def _unfinished(positions: Mapping[int, int], ends: Mapping[int, int]) -> dict[int, int]:
    return {number: offset for number, offset in positions.items() if offset < ends.get(number, 0)}
