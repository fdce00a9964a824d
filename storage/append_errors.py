"""Errors of a partition leader that rejects a batch, with all fields of its ProduceResponse."""

from collections.abc import Sequence

from protocol.errors import ErrorCode, KafkaError

_WITHOUT_LOG_START = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)


def reports_log_start(code: ErrorCode) -> bool:
    """Whether the response to a failed append carries the real LogStartOffset instead of -1 (transactions D.13)."""
    return code not in _WITHOUT_LOG_START


class RecordsRejectedError(KafkaError):
    """Rejection of a batch, which is not appended.

    Attributes:
        record_errors: (index in the batch, message) of every bad record, for RecordErrors (Produce v8+).
        reason: the cause, for human readers; `message` is sent to the client and is mostly null (transactions D.13).
        rule, source: the producer rule that the batch violates, if there is one, and its KIP (transactions D.4, D.6).
    """

    def __init__(
        self,
        code: ErrorCode,
        reason: str,
        *,
        message: str | None = None,
        record_errors: Sequence[tuple[int, str]] = (),
        rule: str = "",
        source: str = "",
    ) -> None:
        super().__init__(code, message)
        self.args = (f"{code.name}: {reason}",)
        self.reason = reason
        self.record_errors = record_errors
        self.rule, self.source = rule, source

    @property
    def reports_log_start(self) -> bool:
        """Result of the function `reports_log_start` for this error."""
        return reports_log_start(self.code)


class RequestRejectedError(KafkaError):
    """Invalid records for which Kafka fails the whole request: every partition gets this code (core D.1 P1, P6)."""
