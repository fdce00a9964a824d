"""Errors of malformed record bytes. Every function of this package that reads bytes raises these and no others."""


class RecordsError(ValueError):
    """Bytes that violate the record formats. The base of every error of this package."""


class BatchDamagedError(RecordsError):
    """Damaged or incomplete batch at `position` (bytes from the buffer's start), with the `reason`."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"damaged batch at byte {position}: {reason}")
        self.position = position
        self.reason = reason


class MalformedRecordsError(RecordsError):
    """The records part of a batch cannot be walked: a length, a count or a varint is wrong."""


class UnreadableCompressionError(RecordsError):
    """Compressed bytes that their codec cannot read: garbage, a premature end, an empty stream, an undefined codec."""


class DecompressedTooLargeError(RecordsError):
    """Compressed bytes that would become more than `limit` bytes; stopped before memory grew beyond it."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the batch decompresses to more than {limit} bytes")
        self.limit = limit
