"""A search of the journal lets others run: counted in entries, not in time."""

import asyncio
from collections.abc import Iterator, Sequence

import pytest

from broker.control.journal import search, windows
from broker.request.connection import Connection
from broker.steering.journal.ring import Chunk, Journal, Raw
from broker.time.clock import Slices

MILLION, CHUNK = 1_000_000, 1000


def raw(number: int, size: int = 100) -> Raw:
    """An entry."""
    return (number, 1000, 5, 1, 1, b"frame", b"answer", size, size, None, "answered")


def filled(entries: int = MILLION) -> Journal:
    """A journal with so many entries, in an order in which slow requests are answered: not quite that of their ids."""
    journal = Journal(max_entries=entries + CHUNK)
    shared = Connection("c", "PLAINTEXT", "::1", 1)
    for begin in range(0, entries, CHUNK):
        chunk = Chunk()
        numbers = [*range(begin + 1, begin + CHUNK), begin]
        chunk.entries, chunk.connections = tuple(map(raw, numbers)), {1: shared}
        journal.chunks.insert(len(journal.chunks) - 1, chunk)
    return journal


class Counted:
    """A query that finds one entry in so many, and slices that know how much was looked at between two of them."""

    def __init__(self, one_in: int) -> None:
        self._one_in = one_in
        self.looked = self.decoded = 0
        self.most_looked = self.most_decoded = 0
        self.all_looked = 0

    def sift(self, raws: Sequence[Raw]) -> list[Raw]:
        """A look at the bytes of each."""
        self.looked += len(raws)
        self.all_looked += len(raws)
        return [each for each in raws if each[0] % self._one_in == 0]

    def settles(self, raw: Raw) -> bool:
        """A look at what is in it."""
        self.decoded += 1
        return bool(raw[0] >= 0)

    async def pause(self) -> None:
        """Others run."""
        self.most_looked, self.most_decoded = max(self.most_looked, self.looked), max(self.most_decoded, self.decoded)
        self.looked = self.decoded = 0


@pytest.mark.slow
async def test_a_million_entries_are_searched_in_small_steps() -> None:
    """At most 64 are looked at and one is decoded before others run; what is found comes by id."""
    counted = Counted(7)
    matches = await search(filled(), counted, MILLION, counted)
    assert [place[0][0] for place in matches] == list(range(0, MILLION, 7))
    assert counted.all_looked == MILLION
    assert (counted.most_looked, counted.most_decoded) == (64, 1)


@pytest.mark.slow
async def test_a_search_ends_with_its_limit() -> None:
    """The newest are found first; the rest is not looked at."""
    counted = Counted(1)
    matches = await search(filled(), counted, 10, counted)
    # of the last thousand, its lowest number was answered last
    assert [place[0][0] for place in matches] == [MILLION - CHUNK, *range(MILLION - 9, MILLION)]
    assert counted.all_looked == 64


async def test_what_is_older_than_the_limit_is_not_even_glanced_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand pieces of a journal, one look at each, would keep all clients waiting for ten milliseconds."""
    opened = 0

    def counted_windows(entries: Sequence[Raw]) -> Iterator[list[Raw]]:
        nonlocal opened
        opened += 1
        return windows(entries)

    monkeypatch.setattr("broker.control.journal.windows", counted_windows)
    counted, journal = Counted(1), filled(10_000)
    pieces = sum(1 for chunk in journal.chunks if chunk.entries)
    await search(journal, counted, 10, counted)
    assert opened <= 3, "what is being served, the piece that is being filled, and the newest full one"
    await search(journal, counted, MILLION, counted)
    assert opened >= pieces, "all of them, where there is no limit"


async def test_large_entries_are_looked_at_in_smaller_steps() -> None:
    """A megabyte at once, or one entry that is larger."""
    sizes = [len(window) for window in windows([raw(number, 100_000) for number in range(20)])]
    assert sizes == [6, 6, 6, 2]
    assert [len(window) for window in windows([raw(number, 10_000_000) for number in range(3)])] == [1, 1, 1]
    assert list(windows([])) == []


async def test_others_run_during_a_search() -> None:
    """With slices of no length, after every step of it."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    counted = Counted(MILLION)
    await search(filled(100_000), counted, MILLION, Slices(0))
    task.cancel()
    assert turns > 100_000 / 64
