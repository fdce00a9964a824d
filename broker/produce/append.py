"""Appending what was admitted of a Produce request (transactions D.1 G9 to G13)."""

from collections.abc import Sequence
from typing import Final

from broker.context import RequestContext
from broker.coordination.metadata.image import INTERNAL_TOPICS
from broker.produce.results import Admitted, Produced
from broker.requests.message_format import check_producer
from protocol.errors import ErrorCode, KafkaError

ACKS_NONE: Final = 0
ACKS_LEADER: Final = 1
ACKS_ALL: Final = -1
_ADMIN_CLIENT = "__admin_client"  # the one client id that may write to internal topics (core D.5.7)


def append(entry: Admitted, acks: int, ctx: RequestContext) -> Produced:
    """Append one partition's batch."""
    reached_log = False
    try:
        if acks not in (ACKS_ALL, ACKS_NONE, ACKS_LEADER):
            raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
        if entry.topic in INTERNAL_TOPICS and ctx.client_id != _ADMIN_CLIENT:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        reached_log = True
        if entry.batch.producer_id >= 0:
            check_producer(entry.topic, ctx)
        info = entry.partition.append(
            ctx.node.id, entry.records, ctx.now_ms, guard=entry.guard, all_in_sync=acks == ACKS_ALL
        )
    except KafkaError as error:
        return entry.refused(error, reached_log=reached_log)
    return Produced(entry.asked_name, entry.topic_id, entry.topic, entry.index, entry.partition, entry.batch, info)


def overrule(entries: Sequence[Admitted | Produced], results: list[Produced]) -> None:
    """Answer the error of another entry for the same partition, now that the entry that counts has its result."""
    for at, entry in enumerate(entries):
        if isinstance(entry, Admitted) and entry.overruled is not None:
            results[at] = entry.refused(entry.overruled)
