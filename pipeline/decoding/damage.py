"""Damage in a log: its reason and position."""

from typing import NamedTuple


class Damage(NamedTuple):
    """A range of a segment without a valid batch."""

    position: int
    """Position of its first byte in the file."""
    size: int
    """Size in bytes."""
    reason: str
    base_offset: int | None = None
    """From the batch's header, if its checksum or position makes it plausible."""
    is_tail: bool = False
    """Whether only the end of the file is missing, as while a broker writes or after it was killed."""


class DamagedError(ValueError):
    """Bytes of a log that cannot be trusted; the message is for the user."""

    def __init__(self, path: str, damage: Damage) -> None:
        super().__init__(f"{path}: byte {damage.position}: {damage.reason}")
        self.path = path
        self.position = damage.position
        self.reason = damage.reason

    def __reduce__(self) -> tuple[type["DamagedError"], tuple[str, Damage]]:
        """Pickle, because Spark's workers return errors as pickles."""
        return DamagedError, (self.path, Damage(self.position, 0, self.reason))
