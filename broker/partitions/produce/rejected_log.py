"""Log lines about invalid batches: one line per request."""

from collections.abc import Sequence

from broker.request.context import RequestContext
from broker.request.produce_results import Produced
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
"""Codes that concern the bytes sent, not the state of the partition."""


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
