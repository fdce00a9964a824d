"""The remote tier of a log, as far as reading needs it (KIP-405; core F.10)."""

from storage.log.context import LogContext
from storage.log.segment import Segments


class Tier:
    """The part of a log that is in the remote tier.

    A copied segment gets into `segments` when local retention removes it; until then it is read locally, and is one of
    the log's own.

    Attributes:
        segments: the segments that are no longer local.
        copied: the last offset that was copied; -1 without any (UnifiedLog.highestOffsetInRemoteStorage).
    """

    __slots__ = ("copied", "segments")

    def __init__(self, context: LogContext, directory: str) -> None:
        self.segments = Segments(context, directory)
        self.copied = -1

    @property
    def size(self) -> int:
        """Bytes of the segments that are no longer local."""
        return self.segments.size

    def close(self) -> None:
        """Release descriptors."""
        for segment in self.segments:
            segment.close()
