"""Wrong data directories, made of a right one: every field of every kind of file, changed.

As `answer_mutations` does with the answers of a journal. The ways follow from a field's type, whether an audit finds
them is not considered here. Checksums, lengths and the positions in offset indexes are made to fit, so that a field is
all that is wrong.
"""

import dataclasses
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import UUID

from protocol.log_records import group, metadata, quorum, share_state, transaction
from protocol.records.batch import HEADER, RecordBatch, batches
from protocol.records.records import Record, build_batch, read_records
from storage.checkpoints import LOG_START, decode_offsets
from tests.pipeline.fault_files import restamped

_HEADER_FIELDS: Final = (
    "base_offset", "length", "partition_leader_epoch", "magic", "crc", "attributes", "last_offset_delta",
    "base_timestamp_ms", "max_timestamp_ms", "producer_id", "producer_epoch", "base_sequence", "record_count",
)  # fmt: skip
_OTHER_ID: Final = UUID(int=0xABCDEF << 64 | 0x1234)


class Fault(NamedTuple):
    """One wrong directory. `files`: path in the directory -> its content; None: it is not there."""

    kind: str
    name: str
    files: Mapping[str, bytes | None]


class Tree:
    """The files of a right directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, path: str) -> bytes:
        """The content of a file."""
        return (self.root / path).read_bytes()

    def find(self, pattern: str) -> list[str]:
        """Paths of files that are not empty, in order."""
        paths = (path for path in self.root.glob(pattern) if path.is_file() and path.stat().st_size)
        return sorted(str(path.relative_to(self.root)) for path in paths)

    def every(self, pattern: str) -> list[str]:
        """Paths of all files, in order."""
        return sorted(str(path.relative_to(self.root)) for path in self.root.glob(pattern) if path.is_file())

    def has(self, path: str) -> bool:
        """Whether there is such a file."""
        return (self.root / path).is_file()


def split(log: bytes) -> list[bytes]:
    """The batches of a segment."""
    batches, at = [], 0
    while at + 12 <= len(log):
        size = 12 + int.from_bytes(log[at + 8 : at + 12], "big", signed=True)
        batches.append(log[at : at + size])
        at += size
    return batches


def with_batch(tree: Tree, path: str, number: int, batch: bytes) -> dict[str, bytes | None]:
    """A segment with another batch in the place of one, and its offset index with the positions moved."""
    parts = split(tree.read(path))
    moved, old, new = {}, 0, 0
    for index, part in enumerate(parts):
        moved[old] = new
        old += len(part)
        new += len(batch) if index == number else len(part)
    parts[number] = bytes(batch)
    files: dict[str, bytes | None] = {path: b"".join(parts)}
    index_path = path.removesuffix(".log") + ".index"
    if (tree.root / index_path).exists():
        entries = struct.iter_unpack(">ii", tree.read(index_path))
        files[index_path] = b"".join(struct.pack(">ii", offset, moved.get(at, at)) for offset, at in entries)
    return files


# --- values ----------------------------------------------------------------------------------------------------------


def numbers(value: int) -> Iterator[tuple[str, int]]:
    """Wrong numbers in the place of one."""
    yield "negative", -7
    if value > 1:
        yield "smaller", value // 2
    yield "one more", value + 1
    yield "larger", value + 1000


def variants(value: Any) -> Iterator[tuple[str, Any]]:
    """Wrong values in the place of one, with what was done; of a sequence, the last element is changed."""
    if isinstance(value, bool):
        yield "flipped", not value
    elif isinstance(value, IntEnum):
        yield from (("another", each) for each in type(value) if each != value)
    elif isinstance(value, int):
        yield from numbers(value)
    elif isinstance(value, str):
        yield "another", f"{value}-x"
    elif isinstance(value, UUID):
        yield "another", _OTHER_ID
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            for how, wrong in variants(getattr(value, field.name)):
                yield f"{field.name} {how}", dataclasses.replace(value, **{field.name: wrong})
    elif value:
        yield from _of_many(value)


def _of_many(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, bytes):
        yield "cut", value[:-1]
    elif isinstance(value, frozenset):
        yield "emptied", frozenset()
        yield "one more", value | {("nowhere", 3)}
    elif isinstance(value, tuple):
        yield "emptied", ()
        yield "doubled", (*value, value[-1])
        for how, last in variants(value[-1]):
            yield f"[-1] {how}", (*value[:-1], last)


# --- batches and records ---------------------------------------------------------------------------------------------


def writer_of(batch: RecordBatch) -> dict[str, Any]:
    """The fields of a header by which its writer is known, and where it begins."""
    names = ("base_offset", "producer_id", "producer_epoch", "base_sequence", "partition_leader_epoch")
    return {name: getattr(batch, name) for name in names}


def rebuilt(batch: RecordBatch, records: Sequence[Record]) -> bytes:
    """A batch with other records and the same header."""
    known = writer_of(batch) | {"transactional": batch.is_transactional, "control": batch.is_control}
    return bytes(build_batch(records, last_offset=batch.last_offset, **known))


Sample = tuple[str, str, int]
"""Name of a batch, the path of its segment, its number there."""


def samples(tree: Tree) -> list[Sample]:
    """One batch of each kind that there is, with another behind it where possible."""
    wanted: dict[str, Callable[[str, RecordBatch], bool]] = {
        "without producer": lambda path, batch: path.startswith("plain") and batch.producer_id < 0,
        "idempotent": lambda path, batch: path.startswith("in-") and batch.producer_id >= 0,
        "transactional": lambda path, batch: path.startswith("rolled") and batch.is_transactional,
        "marker": lambda path, batch: path.startswith("rolled") and batch.is_control,
        "coordinator": lambda path, batch: path.startswith("__transaction_state") and not batch.is_control,
        "metadata": lambda path, batch: path.startswith("__cluster_metadata") and not batch.is_control,
    }
    chosen = []
    for name, fits in wanted.items():
        places = [
            (name, path, number)
            for path in tree.find("*/*.log")
            for number, batch in enumerate(batches(tree.read(path)))
            if fits(path, batch) and (not batch.is_control or name == "marker")
        ]
        if places:
            chosen.append(places[len(places) // 2])
    return chosen


def headers(tree: Tree) -> Iterator[Fault]:
    """Every field of the header of every kind of batch, and every bit of the attributes."""
    for name, path, number in samples(tree):
        yield from header_of(tree, name, path, number)


def header_of(tree: Tree, name: str, path: str, number: int) -> Iterator[Fault]:
    """Every field of the header of one batch."""
    batch = split(tree.read(path))[number]
    fields = dict(zip(_HEADER_FIELDS, HEADER.unpack_from(batch), strict=True))
    for field, value in fields.items():
        ways = list(numbers(value))
        if field == "attributes":
            ways = [(f"bit {bit}", value ^ 1 << bit) for bit in range(9)]
        for how, wrong in ways:
            try:
                changed = bytes(restamped(batch, **{field: wrong}))
            except struct.error:
                continue
            yield Fault("batch header", f"{name}: {field} {how}", with_batch(tree, path, number, changed))


def records(tree: Tree) -> Iterator[Fault]:
    """Records that are lost, doubled or exchanged in a batch; offsets, times and keys; keys and values of markers."""
    for name, path, number in samples(tree):
        batch = list(batches(tree.read(path)))[number]
        known = list(read_records(batch))
        for how, changed in _record_changes(known, is_marker=batch.is_control):
            yield Fault("record", f"{name}: {how}", with_batch(tree, path, number, rebuilt(batch, changed)))


def _record_changes(known: list[Record], *, is_marker: bool) -> Iterator[tuple[str, list[Record]]]:
    last = known[-1]
    others = known[:-1]
    yield "offset one more", [*others, last._replace(offset=last.offset + 1)]
    yield "time a day later", [*others, last._replace(timestamp_ms=last.timestamp_ms + 86_400_000 * 2)]
    yield "time negative", [*others, last._replace(timestamp_ms=-7)]
    if others:
        yield "last one lost", others
        yield "two exchanged", [*others[:-1], last, others[-1]]
        yield "offset twice", [*others, last._replace(offset=others[-1].offset)]
    if last.key is not None:
        yield "key missing", [*others, last._replace(key=None)]
    if is_marker:
        key, value = bytes(last.key or b""), bytes(last.value or b"")
        for how, wrong in (("version", b"\0\7" + key[2:]), ("type", key[:2] + bytes([key[2], key[3] ^ 1])),
                           ("type of no marker", key[:2] + b"\0\x63"), ("cut", key[:3])):  # fmt: skip
            yield f"key {how}", [last._replace(key=wrong)]
        for how, wrong in (("version", b"\0\7" + value[2:]), ("epoch larger", value[:2] + b"\0\1\0\0"),
                           ("epoch negative", value[:2] + b"\xff\xff\xff\xf0"), ("cut", value[:4])):  # fmt: skip
            yield f"value {how}", [last._replace(value=wrong)]


# --- records of coordinators and of the metadata ---------------------------------------------------------------------


def _decoders() -> dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any], tuple[Any, Any]]]]:
    return {
        "__consumer_offsets-*": (group.decode, group.encode),
        "__transaction_state-*": (transaction.decode, transaction.encode),
        "__share_group_state-*": (share_state.decode, share_state.encode),
        "__cluster_metadata-*": (metadata.decode, metadata.encode),
    }


Counting = tuple[str, tuple[str, int, int], Any]
"""A record that no later one replaces: the name of its type, path, number of its batch, its own there, its content."""


def counting(tree: Tree) -> Iterator[tuple[list[Counting], Callable[[Any], tuple[Any, Any]]]]:
    """The records of each kind of coordinator that still count, in the order of their logs; and what encodes them."""
    starts = decode_offsets(tree.read(LOG_START))
    for pattern, (decode, encode) in _decoders().items():
        counted: dict[Any, Counting] = {}
        for path in tree.find(f"{pattern}/*.log"):
            topic, _, number = path.partition("/")[0].rpartition("-")
            for place, (batch_number, index, record) in enumerate(_records_of(tree.read(path))):
                key = record.key if record.key is not None else place
                counted.pop((topic, key), None)
                answer = decode(record.key, record.value)
                begins = starts.get((topic, int(number)), 0)
                if answer is not None and record.value is not None and record.offset >= begins:
                    value = getattr(answer, "value", None)
                    name = type(value if dataclasses.is_dataclass(value) else answer).__name__
                    counted[topic, key] = name, (path, batch_number, index), answer
        yield list(counted.values()), encode


def states(tree: Tree) -> Iterator[Fault]:
    """Every field of the last record of each type that still counts, in the place of the record."""
    for counted, encode in counting(tree):
        last = {each[0]: each for each in counted}
        for name, place, answer in sorted(last.values(), key=lambda each: each[0]):
            yield from _of_record(tree, name, place, answer, encode)


def _records_of(log: bytes) -> Iterator[tuple[int, int, Record]]:
    """The records of a segment, each with the number of its batch, and its own in it."""
    for number, batch in enumerate(batches(log)):
        yield from (
            (number, index, record) for index, record in enumerate([] if batch.is_control else read_records(batch))
        )


def _of_record(
    tree: Tree, name: str, place: tuple[str, int, int], answer: Any, encode: Callable[[Any], tuple[Any, Any]]
) -> Iterator[Fault]:
    path, number, index = place
    kind = path.partition("-")[0]
    batch = list(batches(tree.read(path)))[number]
    known = list(read_records(batch))

    def changed(how: str, key: bytes | None, value: bytes | None) -> Fault:
        others = [*known[:index], known[index]._replace(key=key, value=value), *known[index + 1 :]]
        return Fault(kind, f"{name}: {how}", with_batch(tree, path, number, rebuilt(batch, others)))

    for how, wrong in variants(answer):
        try:
            yield changed(how, *encode(wrong))
        except (struct.error, OverflowError, ValueError, AttributeError, TypeError):
            continue
    key, value = known[index].key, known[index].value
    yield changed("value cut", key, bytes(value or b"")[:-1])
    yield changed("version of the future", key, _future(bytes(value or b""), has_frame=kind == "__cluster_metadata"))


def _future(value: bytes, *, has_frame: bool) -> bytes:
    return value[:2] + b"\x63" + value[3:] if has_frame else b"\0\x63" + value[2:]


def metadata_snapshot(tree: Tree) -> Iterator[Fault]:
    """The newest snapshot of the metadata: every field of its records, records that are missing or there twice."""
    (*_, path) = tree.find("__cluster_metadata-0/*.checkpoint")
    raw = tree.read(path)
    now_ms = next(iter(batches(raw))).max_timestamp_ms
    values = list(quorum.snapshot_values(raw))

    def changed(name: str, others: Sequence[bytes]) -> Fault:
        how = {
            "last_contained_ms": quorum.snapshot_time_ms(raw),
            "epoch": 1,
            "quorum": list(quorum.quorum_records(raw)),
        }
        return Fault("metadata snapshot", name, {path: bytes(quorum.snapshot(others, now_ms, **how))})  # type: ignore[arg-type]

    last: dict[str, tuple[int, Any]] = {}
    for index, value in enumerate(values):
        if (answer := metadata.decode(None, value)) is not None:
            last[type(answer).__name__] = index, answer
    for name, (index, answer) in sorted(last.items()):
        for how, wrong in variants(answer):
            try:
                encoded = bytes(metadata.encode(wrong)[1] or b"")
            except (struct.error, OverflowError, ValueError, AttributeError, TypeError):
                continue
            yield changed(f"{name}: {how}", [*values[:index], encoded, *values[index + 1 :]])
        yield changed(f"{name}: missing", values[:index] + values[index + 1 :])
        yield changed(f"{name}: twice", [*values[: index + 1], *values[index:]])
    yield Fault("metadata snapshot", "file cut", {path: raw[:-5]})
    yield Fault("metadata snapshot", "file emptied", {path: b""})
