"""Damage in a log: reason and position."""

from typing import NamedTuple


class Damage(NamedTuple):
    """A stretch of a segment that holds no sound batch."""

    position: int
    """Of its first byte in the file."""
    size: int
    """Bytes."""
    reason: str
    base_offset: int | None = None
    """From the batch's header, if its checksum or its place makes that likely."""
    is_tail: bool = False
    """Whether the file only ends too early, as it does while a broker writes and after it was killed."""


class DamagedError(ValueError):
    """Bytes of a log that cannot be believed; the message is for the user."""

    def __init__(self, path: str, damage: Damage) -> None:
        super().__init__(f"{path}: byte {damage.position}: {damage.reason}")
        self.path = path
        self.position = damage.position
        self.reason = damage.reason

    def __reduce__(self) -> tuple[type["DamagedError"], tuple[str, Damage]]:
        """Errors travel from Spark's workers as pickles."""
        return DamagedError, (self.path, Damage(self.position, 0, self.reason))
