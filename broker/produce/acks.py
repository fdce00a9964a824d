"""acks=-1: an answer waits until the in-sync replicas have what was appended (core D.5)."""

from collections.abc import Sequence

from broker.clock import Watched, wait_until
from broker.context import RequestContext
from broker.produce.results import Produced, without_stack
from protocol.errors import ErrorCode, KafkaError
from storage.append_info import AppendInfo


def unsettled(results: Sequence[Produced], ctx: RequestContext) -> list[Produced]:
    """Those whose records are not replicated yet; most often none, and then there is nothing to wait for.

    What has failed in the meantime gets its error: NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION where the topic
    was deleted, or NOT_ENOUGH_REPLICAS_AFTER_APPEND where the in-sync replicas have become too few: the records stay.
    """
    left: list[Produced] = []
    for each in results:
        if each.info is not None and not _settled(each, each.info, ctx):
            left.append(each)  # noqa: PERF401 - without a frame of its own: most requests pass here
    return left


async def await_replication(pending: Sequence[Produced], deadline_ms: int, ctx: RequestContext) -> None:
    """Return when every pending append is below its high watermark, has lost its leader, or time is up.

    What fails in the wait gets its error: REQUEST_TIMED_OUT, or as in :func:`unsettled`.
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
    """Whether nothing is left to wait for."""
    partition = result.partition
    assert partition is not None  # since something was appended there
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
