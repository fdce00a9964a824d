"""acks=-1: the response waits until the in-sync replicas have the records (core D.5)."""

from collections.abc import Sequence

from broker.request.context import RequestContext
from broker.request.produce_results import Produced, without_stack
from broker.time.clock import Watched, wait_until
from protocol.errors import ErrorCode, KafkaError
from storage.append_info import AppendInfo


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
