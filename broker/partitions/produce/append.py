"""Appends the admitted partitions of a Produce request (transactions D.1 G9 to G13)."""

from collections.abc import Sequence
from typing import Final

from broker.coordination.metadata.image import INTERNAL_TOPICS
from broker.request.context import RequestContext
from broker.request.message_format import check_producer
from broker.request.produce_results import Admitted, Produced
from broker.time.clock import in_slices
from protocol.errors import ErrorCode, KafkaError
from storage.append_errors import RecordsRejectedError
from storage.log.large_batches import CheckedRecords, Steps

ACKS_NONE: Final = 0
ACKS_LEADER: Final = 1
ACKS_ALL: Final = -1
_ADMIN_CLIENT = "__admin_client"  # the one client id that may write to internal topics (core D.5.7)


def append(entry: Admitted, acks: int, ctx: RequestContext, checked: CheckedRecords | None = None) -> Produced:
    """Append one partition's batch. Raises LargeBatchError if the batch is large and not `checked`."""
    reached_log = False
    try:
        if acks not in (ACKS_ALL, ACKS_NONE, ACKS_LEADER):
            raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
        if entry.topic in INTERNAL_TOPICS and ctx.client_id != _ADMIN_CLIENT:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        reached_log = True
        if entry.batch.producer_id >= 0:
            check_producer(entry.topic, ctx)
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
