"""Produce: a request's partitions are admitted, appended, and wait for replication; invalid batches are logged.

See transactions D.1 and core D.1, D.5.
"""

from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID

from broker.coordination.metadata.image import INTERNAL_TOPICS
from broker.replication.partition import ReplicatedPartition
from broker.request import message_format
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.produce_results import Admitted, Produced, without_stack
from broker.time.clock import Watched, in_slices, wait_until
from protocol import features
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from storage.append_errors import RecordsRejectedError, RequestRejectedError
from storage.append_info import AppendInfo
from storage.log.large_batches import CheckedRecords, Steps
from storage.log.validation import check_partition_records, scan_first_batch

ACKS_NONE: Final = 0
ACKS_LEADER: Final = 1
ACKS_ALL: Final = -1
_ADMIN_CLIENT: Final = "__admin_client"  # the one client id that may write to internal topics (core D.5.7)
_BAD_INPUT: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    }
)
"""Codes that concern the bytes sent, not the state of the partition."""

Named = tuple[str, UUID | None, int]
"""Topic name, topic id and partition, as in the request."""


# --- admission: checks of a partition before the append (transactions D.1 G1 to G8) ----------------------------------


def admit(request: ProduceRequest, ctx: RequestContext) -> list[Admitted | Produced]:
    """Return the request's partitions, each admitted or refused; a repeated partition is returned once.

    Raises:
        KafkaError: the whole request is refused: CORRUPT_MESSAGE if some partition's first batch cannot even be
            scanned, TRANSACTIONAL_ID_AUTHORIZATION_FAILED, INVALID_PRODUCER_ID_MAPPING for two producers in one
            request.
    """
    _scan(request, ctx)
    entries: dict[Named, Admitted | Produced] = {}
    last: dict[Named, PartitionProduceData] = {}
    for topic in request.topic_data:
        for data in topic.partition_data:
            key = (topic.name, topic.topic_id, data.index)
            if data.records is None:
                last = last or _last_entries(request)
                if last[key] is not data:
                    continue
            entry = _admit(topic, data, ctx)
            entries[key] = _last(entries[key], entry) if key in entries else entry
    if len(entries) > 1 and len(_producers(entries.values())) > 1:
        raise RequestRejectedError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
        )
    return list(entries.values())


def _last_entries(request: ProduceRequest) -> dict[Named, PartitionProduceData]:
    """Return the last entry for each partition: an entry with null records is ignored if another one follows.

    KafkaApis.handleProduceRequest keeps invalid entries in a map, where the next entry for the partition replaces it.
    """
    return {
        (topic.name, topic.topic_id, data.index): data for topic in request.topic_data for data in topic.partition_data
    }


def _last(before: Admitted | Produced, entry: Admitted | Produced) -> Admitted | Produced:
    """Merge two entries for one partition: the later one is appended, unless only it is refused (core D.1 P5).

    The response carries the error of either.
    """
    if isinstance(entry, Admitted):
        entry.overruled = before.overruled if isinstance(before, Admitted) else before.error
        return entry
    if isinstance(before, Admitted):
        before.overruled = entry.error
        return before
    return entry


def _producers(entries: Iterable[Admitted | Produced]) -> set[tuple[int, int]]:
    """Return the producer ids and epochs of the transactional batches."""
    transactional = (each.batch for each in entries if isinstance(each, Admitted) and each.transactional)
    return {(batch.producer_id, batch.producer_epoch) for batch in transactional}


def _scan(request: ProduceRequest, ctx: RequestContext) -> None:
    """Scan the first batch of every partition before all other checks (transactions D.1 G1)."""
    transactional = False
    for topic in request.topic_data:
        for data in topic.partition_data:
            if isinstance(data.records, memoryview) and scan_first_batch(data.records):
                transactional = True
    if not transactional:
        return
    allowed = request.transactional_id is not None and ctx.authorized(
        AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
    )
    if not allowed:
        raise RequestRejectedError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def _admit(topic: TopicProduceData, data: PartitionProduceData, ctx: RequestContext) -> Admitted | Produced:
    """Check topic id, authorization, existence and format of one partition's records (transactions D.1 G2 to G5)."""
    name = topic.name
    partition: ReplicatedPartition | None = None
    try:
        if features.produce_uses_topic_ids(ctx.version):
            name = _name_of(topic, ctx)
        if not ctx.authorized(AclOperation.WRITE, ResourceType.TOPIC, name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        partition = ctx.node.partition(name, data.index)
        records = data.records
        if not isinstance(records, memoryview):
            raise KafkaError(ErrorCode.INVALID_RECORD)
        if features.produce_takes_messages(ctx.version):
            records = message_format.upconvert(records)
        batch = check_partition_records(records, zstd_allowed=features.produce_allows_zstd(ctx.version))
        size = batch.size
        whole = records if size == len(records) else records[:size]
        return Admitted(topic.name, topic.topic_id, name, data.index, partition, batch, whole)
    except RequestRejectedError:
        raise
    except KafkaError as error:
        return Produced(topic.name, topic.topic_id, name, data.index, partition, error=without_stack(error))


def _name_of(topic: TopicProduceData, ctx: RequestContext) -> str:
    known = ctx.cluster.image.topics_by_id.get(topic.topic_id) if topic.topic_id else None
    if known is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    return known.name


# --- append (transactions D.1 G9 to G13) -----------------------------------------------------------------------------


def append(entry: Admitted, acks: int, ctx: RequestContext, checked: CheckedRecords | None = None) -> Produced:
    """Append one partition's batch (transactions D.1 G9 to G13).

    Raises LargeBatchError if the batch is large and not `checked`.
    """
    reached_log = False
    try:
        if acks not in (ACKS_ALL, ACKS_NONE, ACKS_LEADER):
            raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
        if entry.topic in INTERNAL_TOPICS and ctx.client_id != _ADMIN_CLIENT:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        reached_log = True
        if entry.batch.producer_id >= 0:
            message_format.check_producer(entry.topic, ctx)
        batch, records = entry.batch, entry.records
        info = entry.partition.append(
            ctx.node.id,
            batch if batch.buffer is records else records,  # its header has been read
            ctx.now_ms,
            guard=entry.guard,
            all_in_sync=acks == ACKS_ALL,
            checked=checked,
            at_once=False,
        )
    except KafkaError as error:
        return entry.refused(error, reached_log=reached_log)
    return Produced(entry.asked_name, entry.topic_id, entry.topic, entry.index, entry.partition, entry.batch, info)


async def append_large(entry: Admitted, acks: int, ctx: RequestContext, steps: Steps) -> Produced:
    """Append a batch whose records are validated in steps, one such batch per broker at a time.

    Other requests are served meanwhile. As in Kafka, the batch is appended even if the client has disconnected.
    """
    try:
        if entry.topic in INTERNAL_TOPICS:  # its coordinator would have to decompress it
            raise RecordsRejectedError(ErrorCode.INVALID_RECORD, "a large compressed batch for an internal topic")
        async with ctx.node.large_batches:
            checked = await in_slices(steps)
    except KafkaError as error:
        return entry.refused(error, reached_log=True)
    finally:
        steps.close()
    return append(entry, acks, ctx, checked)


def overrule(entries: Sequence[Admitted | Produced], results: list[Produced]) -> None:
    """Replace the results of partitions for which another entry of the request was refused by that entry's error."""
    for at, entry in enumerate(entries):
        if isinstance(entry, Admitted) and entry.overruled is not None:
            results[at] = entry.refused(entry.overruled)


# --- acks=-1: the response waits until the in-sync replicas have the records (core D.5) ------------------------------


def unsettled(results: Sequence[Produced], ctx: RequestContext) -> list[Produced]:
    """Return the results whose records are not replicated yet: usually none.

    A result that has failed meanwhile gets its error: NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION if the topic
    was deleted, or NOT_ENOUGH_REPLICAS_AFTER_APPEND if there are now too few in-sync replicas: the records stay in the
    log.
    """
    left: list[Produced] = []
    for each in results:
        if each.info is not None and not _settled(each, each.info, ctx):
            left.append(each)  # noqa: PERF401 - avoids the frame of a comprehension in a hot path
    return left


async def await_replication(pending: Sequence[Produced], deadline_ms: int, ctx: RequestContext) -> None:
    """Wait until every append is below its high watermark, has lost its leader, or the deadline has passed.

    An append that fails meanwhile gets its error: REQUEST_TIMED_OUT, or as in :func:`unsettled`.
    """
    left = list(pending)

    def done() -> bool:
        left[:] = unsettled(left, ctx)
        return not left or ctx.connection.lost

    watched: list[Watched] = [ctx.connection]
    watched += [each.partition for each in pending if each.partition is not None]
    await wait_until(done, watched, ctx.cluster.clock, deadline_ms)
    for each in left:
        each.error = KafkaError(ErrorCode.REQUEST_TIMED_OUT)


def _settled(result: Produced, info: AppendInfo, ctx: RequestContext) -> bool:
    """Whether the result is final."""
    partition = result.partition
    assert partition is not None  # records were appended to it
    try:
        log = partition.led_by(ctx.node.id)
    except KafkaError as error:
        result.error = without_stack(error)
        return True
    if log.bounds.high_watermark > info.last_offset:
        if partition.short_of_replicas:
            result.error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
        return True
    return False


# --- log lines about invalid batches: one line per request -----------------------------------------------------------


def log_rejected_batches(results: Sequence[Produced], ctx: RequestContext) -> None:
    """Log the first partition whose batch is invalid, and the number of others."""
    bad: list[Produced] = []
    for each in results:
        if each.error is not None and each.error.code in _BAD_INPUT:
            bad.append(each)  # noqa: PERF401 - avoids the frame of a comprehension in a hot path
    if bad and bad[0].error is not None:
        more = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
        log_rejection(bad[0].error, ctx, partition=f"{bad[0].topic}-{bad[0].index}{more}")


def log_rejection(error: KafkaError, ctx: RequestContext, **about: str) -> None:
    """Log the peer, its request and the reason."""
    connection = ctx.connection
    ctx.node.server.refusals.log_refusal(
        f"{connection.client_host}:{connection.client_port}",
        str(error),
        event="records refused",
        api=ctx.api.key.title,
        version=ctx.version,
        **about,
    )
