"""Log lines about batches that no client should send: one line for each request."""

from collections.abc import Sequence

from broker.context import RequestContext
from broker.produce.results import Produced
from protocol.errors import ErrorCode, KafkaError

_BAD_INPUT = frozenset(
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
"""Codes about the bytes that were sent, not about the state of the partition."""


def log_rejected_batches(results: Sequence[Produced], ctx: RequestContext) -> None:
    """Name the first partition whose batch is bad input, and how many more there are."""
    bad: list[Produced] = []
    for each in results:
        if each.error is not None and each.error.code in _BAD_INPUT:
            bad.append(each)  # noqa: PERF401 - without a frame of its own: every request passes here
    if bad and bad[0].error is not None:
        more = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
        log_rejection(bad[0].error, ctx, partition=f"{bad[0].topic}-{bad[0].index}{more}")


def log_rejection(error: KafkaError, ctx: RequestContext, **about: str) -> None:
    """Name the peer, its request and the reason."""
    connection = ctx.connection
    ctx.node.server.refusals.log_refusal(
        f"{connection.client_host}:{connection.client_port}",
        str(error),
        event="records refused",
        api=ctx.api.key.title,
        version=ctx.version,
        **about,
    )
