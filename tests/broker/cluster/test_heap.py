"""The heap is trimmed when much has been freed, and not before."""

import asyncio

from broker.cluster.heap import Heap
from storage.files import MemoryFiles

MEBIBYTE = 1 << 20


async def test_the_heap_is_trimmed_after_64_mib() -> None:
    """Once, in a later turn, and again only after as much; a removed file reports its size."""
    trims: list[int] = []
    heap = Heap(lambda: trims.append(1))
    files = MemoryFiles()
    files.on_freed = heap.freed
    for directory in ("first", "second"):
        files.make_directory(directory)
        files.open(f"{directory}/log").append(bytes(40 * MEBIBYTE))
    files.remove("first/log")
    await asyncio.sleep(0)
    assert not trims
    files.remove_tree("second")
    assert not trims
    await asyncio.sleep(0)
    assert trims == [1]
    heap.freed(63 * MEBIBYTE)
    await asyncio.sleep(0)
    assert trims == [1]
