"""Trace of a run: lines for the story, and a hash over all of them and all bytes of a program, for comparisons."""

import hashlib
from collections import deque
from dataclasses import dataclass, field
from zlib import crc32

_KEPT = 20_000  # lines of the end of a run: what leads to a finding; the digest covers all; ours, some MB


@dataclass(slots=True)
class Trace:
    """Lines with their virtual time. ``kept`` are the last lines; the hash covers all."""

    kept: deque[tuple[int, str, str]] = field(default_factory=lambda: deque(maxlen=_KEPT))
    lines: int = 0
    exchanges: list[tuple[int, str, str, int, int]] = field(default_factory=list)
    """Pieces of bytes that a user's program sent or received: time, process, what, size, checksum."""
    _hash: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    def add(self, at_us: int, who: str, what: str) -> None:
        """Add a line: who did what."""
        self.lines += 1
        self._hash.update(f"{at_us} {who} {what}\n".encode())
        self.kept.append((at_us, who, what))

    def exchange(self, at_us: int, who: str, what: str, data: bytes) -> None:
        """Add bytes that a program sends or receives."""
        entry = at_us, who, what, len(data), crc32(data)
        self._hash.update(repr(entry).encode())
        self.exchanges.append(entry)

    @property
    def digest(self) -> str:
        """Hash of the run so far, in 16 hexadecimal digits."""
        return self._hash.hexdigest()[:16]  # 64 bits: enough to compare runs by eye

    def story(self, last: int = 60) -> list[str]:
        """Return the last lines of the story, by default two screens, formatted: time, who, what."""
        lines = list(self.kept)[-last:]
        width = max((len(who) for _, who, _ in lines), default=0)
        return [f"{_time(at_us)}  {who:<{width}}  {what}" for at_us, who, what in lines]


def _time(at_us: int) -> str:
    seconds, us = divmod(at_us, 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes:02}:{seconds:02}.{us // 1000:03}"
