"""The heap is trimmed when much has been freed, and not before; what is left of it is used again."""

import asyncio
import platform
import subprocess
import sys

import pytest

from broker.cluster.heap import Heap
from storage.files import MemoryFiles

MEBIBYTE = 1 << 20
ROUNDS = """
import resource, sys
from broker.cluster.heap import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    kept = [bytearray(b"x" * (1 << 20)) for _ in range(30)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

if sys.argv[1] == "kept":
    assert keep_freed_memory()
print(*(faults() for _ in range(4)))
"""


async def test_the_heap_is_trimmed_after_32_mib() -> None:
    """Once, in a later turn, and again only after as much; a removed file reports its size."""
    trims: list[int] = []
    heap = Heap(lambda: trims.append(1))
    files = MemoryFiles()
    files.on_freed = heap.freed
    for directory in ("first", "second"):
        files.make_directory(directory)
        files.open(f"{directory}/log").append(bytes(20 * MEBIBYTE))
    files.remove("first/log")
    await asyncio.sleep(0)
    assert not trims
    files.remove_tree("second")
    assert not trims
    await asyncio.sleep(0)
    assert trims == [1]
    heap.freed(31 * MEBIBYTE)
    await asyncio.sleep(0)
    assert trims == [1]


async def test_only_what_takes_memory_counts() -> None:
    """Indexes are extended by megabytes of zeros that take none: trimming for them would return what is used again."""
    trims: list[int] = []
    heap = Heap(lambda: trims.append(1))
    files = MemoryFiles()
    files.on_freed = heap.freed
    for written in (0, 80 * MEBIBYTE):
        index = files.open("index")
        index.write_at(0, bytes(written + 8))
        index.truncate(100 * MEBIBYTE)
        files.remove("index")
        await asyncio.sleep(0)
        assert len(trims) == bool(written)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
@pytest.mark.parametrize("kept", [True, False])
def test_a_new_megabyte_uses_the_pages_of_a_freed_one(kept: bool) -> None:
    """Page faults of 30 blocks that are allocated, freed, allocated again; without the setting as many as before."""
    command = [sys.executable, "-c", ROUNDS, "kept" if kept else "as it is"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    first, *again = map(int, printed.split())
    assert first > 1000
    for each in again:
        assert (each < first / 10) is kept
