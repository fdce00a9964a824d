"""Why a partition's leader does not take a batch, with all that its ProduceResponse says about it."""

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
    """Whether a partition that failed in the append step answers its real LogStartOffset, or -1 (transactions D.13)."""
    return code not in _WITHOUT_LOG_START


class RecordsRejectedError(KafkaError):
    """A batch that is not appended.

    Attributes:
        record_errors: (index in the batch, message) of every bad record, for RecordErrors (Produce v8+).
        reason: the cause in words, for people; `message` is what the wire carries, mostly null (transactions D.13).
        rule: which one decided, where it is one of those about producers (transactions D.4, D.6).
    """

    def __init__(
        self,
        code: ErrorCode,
        reason: str,
        *,
        message: str | None = None,
        record_errors: Sequence[tuple[int, str]] = (),
        rule: str = "",
    ) -> None:
        super().__init__(code, message)
        self.args = (f"{code.name}: {reason}",)
        self.reason = reason
        self.record_errors = record_errors
        self.rule = rule

    @property
    def reports_log_start(self) -> bool:
        """As the function of that name."""
        return reports_log_start(self.code)


class RequestRejectedError(KafkaError):
    """Record bytes for which Kafka fails the whole request: every partition answers this code (core D.1 P1, P6)."""
