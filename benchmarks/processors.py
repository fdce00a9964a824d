"""Processor time and resident memory of a process and its descendants, from /proc (Linux only)."""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_PPID, _UTIME, _CSTIME = 1, 11, 15
"""Fields of /proc/PID/stat, counted from the state, which follows the name in brackets."""


def family(root: int) -> dict[int, list[str]]:
    """Return the process and its living descendants: id -> the fields of its stat."""
    seen: dict[int, list[str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                seen[int(entry.name)] = (entry / "stat").read_text().rpartition(")")[2].split()
    related = {root} & seen.keys()
    size = 0
    while len(related) > size:
        size = len(related)
        related |= {pid for pid, fields in seen.items() if int(fields[_PPID]) in related}
    return {pid: seen[pid] for pid in related}


def used_s(root: int) -> float:
    """Return seconds of processor time, including descendants that have ended."""
    return sum(sum(map(int, fields[_UTIME : _CSTIME + 1])) for fields in family(root).values()) / _TICKS


def kind_of(pid: int, root: int) -> str:
    """Return `driver` (the process itself), `java`, or `worker` (Python processes of Spark)."""
    if pid == root:
        return "driver"
    try:
        return "java" if Path(f"/proc/{pid}/comm").read_text().strip() == "java" else "worker"
    except OSError:
        return "worker"


@contextmanager
def watched(root: int, every_s: float = 0.2) -> Iterator[Mapping[str, int]]:
    """Track the peak resident memory of a process of each kind, in bytes; complete at the end of the block."""
    peaks: dict[str, int] = {}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(every_s):
            for pid in family(root):
                with suppress(OSError, IndexError):
                    resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
                    kind = kind_of(pid, root)
                    peaks[kind] = max(peaks.get(kind, 0), resident)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        ended.set()
        thread.join()
