"""Verbs that read and write records without a Kafka client."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain, count
from typing import cast

from broker.control.decoded import decoded
from broker.control.problems import conflict, unprocessable
from broker.control.request import ControlRequest
from broker.control.topics import log_of, partition_of, topic_of
from broker.control.verbs import answers
from broker.replication.partition import ReplicatedPartition
from broker.time.clock import Slices
from control_api.answers import topics as answer
from control_api.topics import NewRecord, NewRecords, RecordsQuery
from protocol.errors import KafkaError
from protocol.partitioner import partition_for
from protocol.records.batch import NO_LEADER_EPOCH, RecordBatch
from protocol.records.errors import DecompressedTooLargeError
from protocol.records.records import Record, frame_batch, parse_marker, read_records, write_record
from storage.log.partition_log import PartitionLog

_COMMITTED = "read_committed"
_MOST_RECORDS = 10_000  # in one result, which is built in memory; a caller reads on from the last offset; ours
_MOST_IN_BATCH = 5_000  # so that a batch of small records stays far below max.message.bytes
_MOST_DELTA = 2**31 - 1  # an offset delta is an int32
_STEP = 64  # records between two pauses; few, so that clients do not wait


@answers("records read")
async def read(request: ControlRequest, query: RecordsQuery) -> answer.Records:
    """Read records of a partition; control records too, unless the isolation is read_committed."""
    partition = partition_of(request)
    committed, limit = query["isolation"] == _COMMITTED, min(query["limit"], _MOST_RECORDS)
    log = log_of(partition)
    if log is None:
        raise conflict(f"no broker that holds {partition.name} is running")
    bound = log.last_stable_offset if committed else log.high_watermark
    start, text = _start(query, log, bound), query.get("text", "").encode()
    records: list[answer.Record] = []
    aborted = _aborted(log) if committed else {}
    slices = Slices()
    for batch in log.reader.replay_from(start) if start < bound else ():
        await slices.pause()
        if batch.base_offset >= bound or len(records) >= limit:
            break
        if text and not batch.codec and text not in bytes(batch.records_view):
            continue
        for record in _records(partition, batch, start, bound, aborted, committed=committed):
            if text and not _has_text(record, text):
                continue
            records.append(record)
            if len(records) >= limit:
                break
            if not len(records) % _STEP:
                await slices.pause()
    if query["decode"]:
        records = await decoded(request, partition.topic, records)
    return {"records": records, "high_watermark": log.high_watermark, "log_start_offset": log.log_start_offset}


def _start(query: RecordsQuery, log: PartitionLog, bound: int) -> int:
    """Return the first offset to read; ``bound`` if no record has that timestamp or a later one."""
    if "timestamp_ms" in query:
        if "offset" in query:
            raise unprocessable("give either 'offset' or 'timestamp_ms'", "timestamp_ms")
        first = log.reader.offset_for_timestamp(query["timestamp_ms"], bound)
        return bound if first is None else first.offset
    offset = query.get("offset", log.log_start_offset)
    return max(bound + offset if offset < 0 else offset, log.log_start_offset)


def _has_text(record: answer.Record, text: bytes) -> bool:
    """Return whether a text is in a record's key, value or headers."""
    parts = [record.key, record.value]
    for header in record.headers:
        parts += [header.key.encode(), header.value]
    return any(part is not None and text in part for part in parts)


def _aborted(log: PartitionLog) -> dict[int, list[tuple[int, int]]]:
    """Return producer id -> offset ranges of its aborted transactions."""
    spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for segment in log.segments:
        for transaction in segment.txn_index.entries:
            spans[transaction.producer_id].append((transaction.first_offset, transaction.last_offset))
    return spans


def has_readable(partition: ReplicatedPartition, offset: int) -> bool:
    """Return whether a reader of committed records gets one from this offset on; control records are none."""
    if (log := log_of(partition)) is None:
        return False
    aborted, bound = _aborted(log), log.last_stable_offset
    batches = log.reader.replay_from(offset) if offset < bound else ()
    return any(
        batch.base_offset < bound and not batch.is_control and not _is_aborted(batch, aborted) for batch in batches
    )


def _held(partition: ReplicatedPartition, batch: RecordBatch) -> Iterator[Record]:
    try:
        yield from read_records(batch)
    except DecompressedTooLargeError as error:
        raise conflict(f"{partition.name} at offset {batch.base_offset}: {error}, too large to show") from error


def _records(
    partition: ReplicatedPartition,
    batch: RecordBatch,
    start: int,
    bound: int,
    aborted: Mapping[int, list[tuple[int, int]]],
    *,
    committed: bool,
) -> Iterator[answer.Record]:
    if committed and (batch.is_control or _is_aborted(batch, aborted)):
        return
    marker = parse_marker(batch) if batch.is_control else None
    for record in _held(partition, batch):
        if start <= record.offset < bound:
            yield answer.Record(
                offset=record.offset,
                partition=partition.index,
                timestamp_ms=record.timestamp_ms,
                key=record.key,
                value=record.value,
                headers=tuple(answer.Header(key=key, value=value) for key, value in record.headers),
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                sequence=-1 if batch.base_sequence < 0 else batch.base_sequence + record.offset - batch.base_offset,
                transactional=batch.is_transactional,
                control=None if marker is None else "commit" if marker.committed else "abort",
                key_decoded=None,
                value_decoded=None,
            )


def _is_aborted(batch: RecordBatch, aborted: Mapping[int, list[tuple[int, int]]]) -> bool:
    ranges = aborted.get(batch.producer_id, ()) if batch.is_transactional else ()
    return any(first <= batch.base_offset <= last for first, last in ranges)


@answers("records write")
async def write(request: ControlRequest, body: NewRecords) -> answer.RecordsWritten:
    """Append records, each to its partition. Nothing is written if one of them is invalid.

    Records are appended in batches, with pauses in between: if a leader refuses a later batch (409), earlier ones stay.
    """
    topic = topic_of(request)
    now_ms, turn, slices = request.cluster.clock.now_ms(), count(), Slices()
    places: list[tuple[_Batch, int]] = []
    batches: dict[int, list[_Batch]] = {}
    for at, row in enumerate(body["records"]):
        record, partition = _record(row, now_ms), row.get("partition")
        if partition is None:
            partition = partition_for(record.key, len(topic.partitions), turn)
        if partition not in topic.partitions:
            last = len(topic.partitions) - 1
            raise unprocessable(f"{topic.name!r} has partitions 0 to {last}", f"records.{at}.partition")
        of_partition = batches.setdefault(partition, [])
        if not of_partition or of_partition[-1].full:
            end = of_partition[-1].end if of_partition else _log_end(request, topic.name, partition)
            of_partition.append(_Batch(f"{topic.name}-{partition}", partition, end, record.timestamp_ms))
        places.append((of_partition[-1], of_partition[-1].add(record, row.get("offset"), at)))
        if not at % _STEP:
            await slices.pause()
    for batch in chain.from_iterable(batches.values()):
        if topic_of(request).id != topic.id:
            raise conflict(f"topic {topic.name!r} was deleted and created again")
        _append(request, topic.name, batch, now_ms)
        await slices.pause()
    written = (answer.Written(partition=batch.partition, offset=batch.base_offset + at) for batch, at in places)
    return {"written": cast("list[answer.Written]", written)}


def _log_end(request: ControlRequest, topic: str, partition: int) -> int:
    """Return the leader's log end offset; 0 without a leader, which :func:`_append` refuses."""
    hosted = request.cluster.partitions.get((topic, partition))
    log = None if hosted is None else hosted.logs.get(hosted.state.leader)
    return 0 if log is None else log.log_end_offset


def _append(request: ControlRequest, topic: str, batch: "_Batch", now_ms: int) -> None:
    """Append a batch at its leader. Raises Problem 409."""
    hosted = request.cluster.partitions.get((topic, batch.partition))
    if hosted is None:
        raise conflict(f"{topic}-{batch.partition} is still being created")
    try:
        if batch.has_offsets:
            hosted.append_at(hosted.state.leader, batch.framed(hosted.state.leader_epoch), now_ms)
            batch.base_offset = batch.base
            return
        info = hosted.append(hosted.state.leader, batch.framed(NO_LEADER_EPOCH), now_ms, all_in_sync=True)
    except KafkaError as error:
        raise conflict(
            f"{hosted.name} refused the records: {error.code.name}, {error.message or 'without a message'}"
        ) from error
    batch.base_offset = info.base_offset


class _Batch:
    """A batch of a partition to which records are added one by one. ``end``: the end offset of the log before it."""

    def __init__(self, name: str, partition: int, end: int, base_timestamp_ms: int) -> None:
        self._name, self.partition, self.base_offset = name, partition, -1
        self.base = self.end = end
        self.has_offsets = False
        self._data = bytearray()
        self._count = 0
        self._base_timestamp_ms = self._max_timestamp_ms = base_timestamp_ms

    @property
    def full(self) -> bool:
        """Return whether the next record starts another batch; appending a batch blocks the event loop."""
        return self._count >= _MOST_IN_BATCH

    def add(self, record: Record, offset: int | None, at: int) -> int:
        """Add a record; return its position in the batch. Raises Problem 422 for an offset that is out of order."""
        if offset is not None:
            self.has_offsets = True
            if not self._count:
                self.base = max(offset, self.end)
            if not self.end <= offset <= self.base + _MOST_DELTA:
                bounds = f"from {self.end} to {self.base + _MOST_DELTA}"
                raise unprocessable(f"the next offset of {self._name} must be {bounds}", f"records.{at}.offset")
            self.end = offset
        place = self.end - self.base
        write_record(self._data, record._replace(offset=place), 0, self._base_timestamp_ms)
        self.end += 1
        self._count += 1
        self._max_timestamp_ms = max(self._max_timestamp_ms, record.timestamp_ms)
        return place

    def framed(self, leader_epoch: int) -> bytearray:
        """Return the encoded batch."""
        return frame_batch(
            self._data,
            self._count,
            base_offset=self.base if self.has_offsets else 0,
            last_offset_delta=self.end - self.base - 1,
            base_timestamp_ms=self._base_timestamp_ms,
            max_timestamp_ms=self._max_timestamp_ms,
            partition_leader_epoch=leader_epoch,
        )


def _record(row: NewRecord, now_ms: int) -> Record:
    headers = [(header["key"], _sent(header.get("value"))) for header in row.get("headers", ())]
    return Record(0, row.get("timestamp_ms", now_ms), _sent(row.get("key")), _sent(row.get("value")), headers)


def _sent(value: bytes | str | None) -> bytes | None:
    """Narrow the type of a key or value: ``reading`` has converted JSON strings to bytes."""
    assert not isinstance(value, str)
    return value
