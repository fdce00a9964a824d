"""The index of aborted transactions: Kafka's bytes, searches, damage (transactions F.7, D.10, D.11)."""

import pytest

from storage.files.memory import MemoryFiles
from storage.indexes.segment_index import IndexCorruptError
from storage.indexes.txn_index import AbortedTransaction, TransactionIndex

VECTOR = "000000000000000003e80000000000000005000000000000000b000000000000000c"
PATH = "t-0/00000000000000000000.txnindex"
# Producers 1 and 2 overlap: 2 began at 5 before 1 ended at 9.
ENTRIES = [
    AbortedTransaction(1, 2, 9, 5),
    AbortedTransaction(2, 5, 14, 15),
    AbortedTransaction(1, 20, 29, 30),
]


def tree() -> MemoryFiles:
    """A partition's directory."""
    files = MemoryFiles()
    files.make_directory("t-0")
    return files


def index_of(entries: list[AbortedTransaction], files: MemoryFiles | None = None) -> TransactionIndex:
    """An index with these entries."""
    index = TransactionIndex(tree() if files is None else files, PATH)
    for entry in entries:
        index.append(entry)
    return index


def test_the_vector_is_written_and_read() -> None:
    """Byte for byte (transactions DSK-02)."""
    files = tree()
    entry = AbortedTransaction(1000, 5, 11, 12)
    index_of([entry], files)
    assert files.read_file(PATH).hex() == VECTOR
    assert TransactionIndex(files, PATH).entries == [entry]


def test_there_is_no_file_without_an_entry() -> None:
    """A transaction index has no file until its first entry, and reading it makes none."""
    files = tree()
    index = TransactionIndex(files, PATH)
    assert index.search(0, 100) == ([], False)
    index.check(0)
    index.truncate_to(0)
    index.sync()
    index.close()
    assert not files.exists(PATH)


@pytest.mark.parametrize(
    ("fetch", "upper", "aborted", "complete"),
    [
        (0, 40, ENTRIES, False),
        (0, 30, ENTRIES, True),
        (0, 15, ENTRIES[:2], True),
        (0, 5, ENTRIES[:1], True),
        (9, 15, ENTRIES[:2], True),
        (10, 15, ENTRIES[1:2], True),
        (15, 20, [], True),
        (30, 40, [], False),
    ],
)
def test_a_search_finds_what_can_concern_the_records(
    fetch: int, upper: int, aborted: list[AbortedTransaction], complete: bool
) -> None:
    """It also returns whether later segments can add to it (transactions D.11, FET-01 to FET-03)."""
    assert index_of(ENTRIES).search(fetch, upper) == (aborted, complete)


def test_markers_only_come_later() -> None:
    """An entry out of order is refused."""
    index = index_of(ENTRIES)
    with pytest.raises(IndexCorruptError):
        index.append(AbortedTransaction(9, 0, 29, 30))
    assert index.entries == ENTRIES


@pytest.mark.parametrize(("offset", "kept"), [(100, 3), (30, 3), (29, 2), (14, 1), (9, 0), (0, 0)])
def test_truncation_drops_markers_at_and_above_an_offset(offset: int, kept: int) -> None:
    """In memory and in the file; the index goes on from there."""
    files = tree()
    index = index_of(ENTRIES, files)
    index.truncate_to(offset)
    assert index.entries == ENTRIES[:kept]
    assert TransactionIndex(files, PATH).entries == ENTRIES[:kept]
    index.append(AbortedTransaction(5, 40, 50, 51))
    assert len(files.read_file(PATH)) == 34 * (kept + 1)


def test_entries_are_read_again_after_they_were_unloaded() -> None:
    """Unloaded entries are read back from the file, which has them all."""
    index = index_of(ENTRIES)
    index.unload()
    assert index.entries == ENTRIES


def test_a_cleared_index_has_no_file() -> None:
    """A cleared index has no file until the next abort."""
    files = tree()
    index = index_of(ENTRIES, files)
    index.clear()
    assert not files.exists(PATH)
    index.append(ENTRIES[0])
    assert TransactionIndex(files, PATH).entries == ENTRIES[:1]


def test_a_renamed_index_stays_open() -> None:
    """What is appended afterwards lands in the renamed file."""
    files = tree()
    index = index_of(ENTRIES[:1], files)
    files.rename(PATH, PATH + ".swap")
    index.moved(PATH + ".swap")
    index.append(ENTRIES[1])
    assert TransactionIndex(files, PATH + ".swap").entries == ENTRIES[:2]


@pytest.mark.parametrize(
    "contents",
    [
        bytes.fromhex(VECTOR)[:-1],
        bytes.fromhex(VECTOR) * 2,
        b"\0\1" + bytes.fromhex(VECTOR)[2:],
    ],
    ids=["part of an entry", "the same marker twice", "version 1"],
)
def test_damage_is_found_when_the_index_is_read(contents: bytes) -> None:
    """A damaged transaction index is found when it is read, and rebuilt."""
    files = tree()
    files.open(PATH).append(contents)
    with pytest.raises(IndexCorruptError):
        TransactionIndex(files, PATH).check(0)


def test_a_marker_below_the_segment_is_damage() -> None:
    """The index belongs to another segment."""
    index = index_of(ENTRIES)
    index.check(9)
    with pytest.raises(IndexCorruptError):
        index.check(10)
