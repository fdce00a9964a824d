"""acks=-1: an answer waits until the in-sync replicas have what was appended (core D.5)."""

from collections.abc import Sequence

from broker.clock import Waiter
from broker.connection import Connection
from broker.context import RequestContext
from broker.produce.results import Produced, without_stack
from broker.replication.partition import ReplicatedPartition
from protocol.errors import ErrorCode, KafkaError
from storage.append_info import AppendInfo


def unsettled(results: Sequence[Produced], ctx: RequestContext) -> list[Produced]:
    """Those whose records are not replicated yet; most often none, and then there is nothing to wait for.

    What has failed in the meantime gets its error: NOT_LEADER_OR_FOLLOWER, or NOT_ENOUGH_REPLICAS_AFTER_APPEND where
    the in-sync replicas have become too few. The records stay.
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
    connection, waiter = ctx.connection, Waiter()
    watched: list[Connection | ReplicatedPartition] = [connection]
    watched += [each.partition for each in pending if each.partition is not None]
    for one in watched:
        one.watch(waiter.wake)
    try:
        while pending and not connection.lost and await waiter.wait(ctx.cluster.clock, deadline_ms):
            waiter.again()
            pending = unsettled(pending, ctx)
    finally:
        for one in watched:
            one.unwatch(waiter.wake)
    for each in pending:
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
