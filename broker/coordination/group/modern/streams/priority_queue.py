"""A binary heap that orders equal elements as ``java.util.PriorityQueue`` does.

Python's ``heapq`` sifts differently: with equal loads another process would be first.
"""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class PriorityQueue(Generic[T]):
    """A queue with the smallest key first. A key may change only while its element is not in the queue."""

    __slots__ = ("_heap", "_key")

    def __init__(self, key: Callable[[T], float], elements: Iterable[T] = ()) -> None:
        self._key = key
        self._heap: list[T] = []
        for element in elements:
            self.add(element)

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, element: T) -> None:
        """Add an element."""
        heap, key = self._heap, self._key
        heap.append(element)
        at = len(heap) - 1
        while at > 0:
            parent = (at - 1) >> 1
            if key(element) >= key(heap[parent]):
                break
            heap[at] = heap[parent]
            at = parent
        heap[at] = element

    def poll(self) -> T:
        """Remove and return the first element. Raises IndexError if the queue is empty."""
        heap = self._heap
        first, last = heap[0], heap.pop()
        if heap:
            self._sift_down(last)
        return first

    def _sift_down(self, element: T) -> None:
        heap, key = self._heap, self._key
        at, half = 0, len(heap) >> 1
        while at < half:
            child = 2 * at + 1
            if child + 1 < len(heap) and key(heap[child]) > key(heap[child + 1]):
                child += 1
            if key(element) <= key(heap[child]):
                break
            heap[at] = heap[child]
            at = child
        heap[at] = element
