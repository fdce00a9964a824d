"""The heap is trimmed when much has been freed, and not before; what is left of it is used again."""

import platform
import subprocess
import sys
from collections.abc import Callable

import pytest

from broker.cluster.heap import Heap
from storage.files import MemoryFiles

MEBIBYTE = 1 << 20
ROUNDS = """
import resource, sys
from broker.cluster.heap import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    kept = [bytearray(b"x" * (1 << 20)) for _ in range(100)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if sys.argv[1] == "kept":
    assert keep_freed_memory()
print(*(faults() for _ in range(4)))
"""


def test_the_heap_is_trimmed_some_seconds_after_32_mib_were_freed() -> None:
    """Once, and again only after as much; a removed file reports its size."""
    trims: list[int] = []
    planned: list[tuple[int, Callable[[], None]]] = []
    heap = Heap(lambda: trims.append(1), lambda delay_ms, call: planned.append((delay_ms, call)))
    files = MemoryFiles()
    files.on_freed = heap.freed
    for directory in ("first", "second"):
        files.make_directory(directory)
        files.open(f"{directory}/log").append(bytes(20 * MEBIBYTE))
    files.remove("first/log")
    assert not planned
    files.remove_tree("second")
    heap.freed(100 * MEBIBYTE)
    ((delay_ms, trim),) = planned
    assert (delay_ms, trims) == (5000, [])
    trim()
    assert trims == [1]
    heap.freed(31 * MEBIBYTE)
    assert len(planned) == 1
    heap.freed(MEBIBYTE)
    assert len(planned) == 2


def test_only_what_takes_memory_counts() -> None:
    """Indexes are extended by megabytes of zeros that take none: trimming for them would return what is used again."""
    planned: list[int] = []
    heap = Heap(lambda: None, lambda delay_ms, _call: planned.append(delay_ms))
    files = MemoryFiles()
    files.on_freed = heap.freed
    for written in (0, 80 * MEBIBYTE):
        index = files.open("index")
        index.write_at(0, bytes(written + 8))
        index.truncate(100 * MEBIBYTE)
        files.remove("index")
        assert len(planned) == bool(written)


def test_what_is_still_read_of_a_removed_file_is_not_used_again() -> None:
    """A response that a slow client takes later is made of slices of the log: their memory is freed with the last."""
    files = MemoryFiles()
    files.open("log").append(bytearray(b"a" * MEBIBYTE))
    (held,) = files.open("log").read(1000, 100)
    files.remove("log")
    for letter in b"bcdefgh":
        files.open("log").append(bytearray(bytes([letter]) * MEBIBYTE))
        assert bytes(held) == b"a" * 100
        files.remove("log")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
@pytest.mark.parametrize("kept", [True, False])
def test_a_new_megabyte_uses_the_pages_of_a_freed_one(kept: bool) -> None:
    """Page faults of 100 blocks that are allocated, freed, allocated again; without the setting as many as before."""
    command = [sys.executable, "-c", ROUNDS, "kept" if kept else "as it is"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    first, *again = map(int, printed.split())
    assert first > 1000
    for each in again:
        assert (each < first / 10) is kept
