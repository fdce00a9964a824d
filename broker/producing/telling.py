"""What the log says of batches that nobody should have sent: one line for a request."""

from collections.abc import Sequence

from broker.context import RequestContext
from broker.producing.gate import Candidate
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
"""Codes that speak of the bytes that were sent, not of the state that they met."""


def tell_refused_batches(candidates: Sequence[Candidate], ctx: RequestContext) -> None:
    """Name the first partition whose batch is bad input, and how many more there are."""
    bad = [each for each in candidates if each.error is not None and each.error.code in _BAD_INPUT]
    if bad and bad[0].error is not None:
        more = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
        tell(bad[0].error, ctx, partition=f"{bad[0].topic}-{bad[0].index}{more}")


def tell(error: KafkaError, ctx: RequestContext, **about: str) -> None:
    """Name the peer, its request and the reason."""
    server, connection = ctx.node.server, ctx.connection
    if server is not None:
        server.refusals.tell(
            f"{connection.client_host}:{connection.client_port}",
            str(error),
            event="records refused",
            api=ctx.api.key.title,
            version=ctx.version,
            **about,
        )
