"""Wrong records in a right directory: each number of a record changed; whole records left out, twice, exchanged.

The bytes around a change are made to fit. A record of a coordinator that is left out, or there twice, moves all that
come after it, with the indexes, checkpoints and snapshots that name their offsets: as a broker would have written the
log without the record, or with one more.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from crc32c import crc32c

from protocol.log_records import metadata
from protocol.records.batch import RecordBatch, batches, read_varint, write_varint
from protocol.records.records import Record, build_batch, frame_batch, read_records, record_bytes
from storage.checkpoints import (
    HIGH_WATERMARK,
    RECOVERY_POINT,
    decode_epochs,
    decode_offsets,
    encode_epochs,
    encode_offsets,
)
from tests.pipeline.file_mutations import Fault, Tree, counting, rebuilt, samples, with_batch, writer_of
from tests.pipeline.side_file_mutations import SNAPSHOT

_FIELDS: Final = ("attributes", "timestamp delta", "offset delta", "key length", "value length", "header count")


class _Spelled(NamedTuple):
    """A record as its numbers, with the bytes that come behind each."""

    numbers: list[tuple[str, int, bytes]]

    def written(self, length: int | None = None) -> bytes:
        """The record; its length fits unless another is given."""
        body = bytearray()
        for name, number, behind in self.numbers:
            if name == "attributes":
                body.append(number & 0xFF)
            else:
                write_varint(body, number)
            body += behind
        whole = bytearray()
        write_varint(whole, len(body) if length is None else length)
        return bytes(whole + body)


def _spelled(data: bytes, at: int) -> tuple[_Spelled, int]:
    """The record at a position, and where the next one begins."""
    length, at = read_varint(data, at)
    end = at + length
    numbers: list[tuple[str, int, bytes]] = [("attributes", data[at], b"")]
    at += 1

    def number(name: str, *, has_bytes: bool = False) -> int:
        nonlocal at
        value, at = read_varint(data, at)
        size = max(value, 0) if has_bytes else 0
        numbers.append((name, value, bytes(data[at : at + size])))
        at += size
        return value

    for name in _FIELDS[1:3]:
        number(name)
    for name in _FIELDS[3:5]:
        number(name, has_bytes=True)
    for _ in range(number("header count")):
        number("header's key length", has_bytes=True)
        number("header's value length", has_bytes=True)
    assert at == end
    return _Spelled(numbers), end


def record_fields(tree: Tree) -> Iterator[Fault]:
    """Every number in the first and in the last record of every kind of batch."""
    for name, path, number in samples(tree):
        batch = list(batches(tree.read(path)))[number]
        data, spelled, at = bytes(record_bytes(batch)), [], 0
        while at < len(data):
            each, at = _spelled(data, at)
            spelled.append(each)
        plain = [each.written() for each in spelled]
        for where, index in (("first", 0), ("last", len(spelled) - 1)):
            for how, wrong in _changes(spelled[index]):
                records = b"".join([*plain[:index], wrong, *plain[index + 1 :]])
                changed = bytes(_framed(batch, records))
                yield Fault("record field", f"{name}: {where}: {how}", with_batch(tree, path, number, changed))


def _changes(record: _Spelled) -> Iterator[tuple[str, bytes]]:
    size = len(record.written()) - len(_varint(len(record.written()) - 1))
    for how, length in (("negative", -7), ("one less", size - 1), ("one more", size + 1), ("larger", size + 1000)):
        yield f"length {how}", record.written(length)
    for index, (name, value, behind) in enumerate(record.numbers):
        for how, wrong in (("negative", -7), ("null", -1), ("one less", value - 1), ("one more", value + 1),
                           ("larger", value + 1000)):  # fmt: skip
            others = [*record.numbers[:index], (name, wrong, behind), *record.numbers[index + 1 :]]
            yield f"{name} {how}", _Spelled(others).written()
            if name.endswith("key length") and name.startswith("header"):
                break


def _varint(number: int) -> bytes:
    output = bytearray()
    write_varint(output, number)
    return bytes(output)


def _framed(batch: RecordBatch, records: bytes) -> bytearray:
    """A batch with other bytes of records and the same header."""
    return frame_batch(
        records,
        batch.record_count,
        last_offset_delta=batch.last_offset_delta,
        base_timestamp_ms=batch.base_timestamp_ms,
        max_timestamp_ms=batch.max_timestamp_ms,
        attributes=batch.attributes & ~7,
        codec=batch.codec,
        **writer_of(batch),
    )


# --- whole records of coordinators -----------------------------------------------------------------------------------

Place = tuple[str, int, int]
"""Path of a segment, number of a batch, of a record in it."""


def whole_records(tree: Tree) -> Iterator[Fault]:
    """Of each kind of record that counts the last one, and the first: left out, twice, exchanged, in another log."""
    for kind, name, where, place in _places(tree):
        yield from _whole(tree, kind, f"{name}: {where}", place)


def _places(tree: Tree) -> Iterator[tuple[str, str, str, Place]]:
    for counted, _ in counting(tree):
        by_name: dict[str, list[Place]] = {}
        for name, (path, number, index), _ in counted:
            batch = list(batches(tree.read(path)))[number]
            if batch.producer_id < 0:  # a sequence would be missing as well
                by_name.setdefault(name, []).append((path, number, index))
        for name, places in sorted(by_name.items()):
            kind = places[0][0].partition("-")[0]
            for where, place in (("first", places[0]), ("last", places[-1])):
                yield kind, name, where, place


def _whole(tree: Tree, kind: str, name: str, place: Place) -> Iterator[Fault]:
    path, number, index = place
    record = _records(tree, path)[number][1][index]
    if kind == "__cluster_metadata":
        yield Fault(
            kind, f"{name}: left out", _replaced(tree, path, {(number, index): metadata.encode(metadata.NoOpRecord())})
        )
        yield Fault(kind, f"{name}: again at the end", _appended(tree, record))
    else:
        yield Fault(kind, f"{name}: left out", _moved(tree, place, -1))
        yield Fault(kind, f"{name}: twice", _moved(tree, place, 1))
        yield from _elsewhere(tree, kind, name, place, record)
    if (other := _next(tree, place)) is not None:
        (_, after, behind) = other
        next_one = _records(tree, path)[after][1][behind]
        pairs = {(number, index): (next_one.key, next_one.value), (after, behind): (record.key, record.value)}
        yield Fault(kind, f"{name}: exchanged with the next", _replaced(tree, path, pairs))


def _records(tree: Tree, path: str) -> list[tuple[RecordBatch, list[Record]]]:
    return [(each, list(read_records(each))) for each in batches(tree.read(path))]


def _next(tree: Tree, place: Place) -> Place | None:
    """The next record that no producer with a sequence has written."""
    path, number, index = place
    log = _records(tree, path)
    for at in range(number, len(log)):
        batch, known = log[at]
        first = index + 1 if at == number else 0
        if first < len(known) and not batch.is_control and batch.producer_id < 0:
            return path, at, first
    return None


def _replaced(
    tree: Tree, path: str, pairs: dict[tuple[int, int], tuple[bytes | None, bytes | None]]
) -> dict[str, bytes | None]:
    """A log with other keys and values in the places of some."""
    moved: list[tuple[RecordBatch, bytes]] = []
    for number, (batch, known) in enumerate(_records(tree, path)):
        changed = list(known)
        for (at, index), (key, value) in pairs.items():
            if at == number:
                changed[index] = changed[index]._replace(key=key, value=value)
        raw = bytes(batch.buffer[batch.position : batch.end])
        moved.append((batch, raw if changed == known else rebuilt(batch, changed)))
    return {path: b"".join(raw for _, raw in moved), **_index(tree, path, moved)}


def _appended(tree: Tree, record: Record) -> dict[str, bytes | None]:
    """The metadata log with a copy of a record behind all others."""
    path = tree.find("__cluster_metadata-0/*.log")[-1]
    log = tree.read(path)
    last = list(batches(log))[-1]
    copy = Record(last.next_offset, last.max_timestamp_ms, record.key, record.value)
    return {path: log + build_batch([copy], partition_leader_epoch=last.partition_leader_epoch)}


def _elsewhere(tree: Tree, kind: str, name: str, place: Place, record: Record) -> Iterator[Fault]:
    """A copy of a record behind the last one of another partition."""
    folder = place[0].partition("/")[0]
    for path in tree.find(f"{kind}-*/*.log"):
        if not path.startswith(f"{folder}/"):
            log = _records(tree, path)
            last = max((at for at, (batch, _) in enumerate(log) if batch.producer_id < 0), default=None)
            if last is not None:
                where = (path, last, len(log[last][1]) - 1)
                yield Fault(kind, f"{name}: also in another partition", _moved(tree, where, 1, record))
                return


def _moved(tree: Tree, place: Place, by: int, other: Record | None = None) -> dict[str, bytes | None]:
    """A log without a record, or with one more behind it, its own copy or another; offsets behind it are moved."""
    path, number, index = place
    log = _records(tree, path)
    at = log[number][1][index].offset

    def new(offset: int) -> int:
        return offset + by if offset > at else offset

    moved: list[tuple[RecordBatch, bytes]] = []
    for place_of, (batch, known) in enumerate(log):
        raw = bytes(batch.buffer[batch.position : batch.end])
        if place_of == number:
            raw = _with_one(batch, known, index, by, other)
        elif batch.base_offset > at:
            raw = struct.pack(">q", batch.base_offset + by) + raw[8:]
        if raw:
            moved.append((batch, raw))
    files: dict[str, bytes | None] = {path: b"".join(raw for _, raw in moved), **_index(tree, path, moved)}
    files |= _beside(tree, path.rpartition("/")[0], new)
    files |= _times(path, moved)
    return files


def _with_one(batch: RecordBatch, known: list[Record], index: int, by: int, other: Record | None) -> bytes:
    """A batch without one of its records, or with one more; empty if none is left."""
    copy = known[index] if other is None else other._replace(timestamp_ms=known[index].timestamp_ms)
    changed = known[:index] + known[index + 1 :] if by < 0 else [*known[: index + 1], copy, *known[index + 1 :]]
    if not changed:
        return b""
    # What compaction has removed from the batch before is not made up for: offsets follow each other from its first on.
    first = known[0].offset
    return bytes(
        build_batch(
            [each._replace(offset=first + number) for number, each in enumerate(changed)],
            base_offset=batch.base_offset,
            last_offset=batch.base_offset + batch.last_offset_delta + by,
            partition_leader_epoch=batch.partition_leader_epoch,
        )
    )


def _index(tree: Tree, path: str, moved: Sequence[tuple[RecordBatch, bytes]]) -> dict[str, bytes | None]:
    """The offset index with an entry for each batch that it had before and that is still there."""
    index_path = path.removesuffix(".log") + ".index"
    if not (tree.root / index_path).exists():
        return {}
    base = int(path.rpartition("/")[2].partition(".")[0])
    had = {position for _, position in struct.iter_unpack(">ii", tree.read(index_path)) if position}
    entries, at = [], 0
    for batch, raw in moved:
        (first_batch,) = batches(raw)
        if batch.position in had and at:
            entries.append(struct.pack(">ii", first_batch.last_offset - base, at))
        at += len(raw)
    return {index_path: b"".join(entries)}


def _times(path: str, moved: Sequence[tuple[RecordBatch, bytes]]) -> dict[str, bytes | None]:
    """The time index with an entry for each batch that is later than those before it."""
    base = int(path.rpartition("/")[2].partition(".")[0])
    entries, latest = [], -1
    for _, raw in moved:
        (batch,) = batches(raw)
        if batch.max_timestamp_ms > latest:
            latest = batch.max_timestamp_ms
            entries.append(struct.pack(">qi", latest, batch.last_offset - base))
    return {path.removesuffix(".log") + ".timeindex": b"".join(entries)}


def _beside(tree: Tree, folder: str, new: Callable[[int], int]) -> dict[str, bytes | None]:
    """The small files that name offsets of a log, with these moved."""
    topic, _, partition = folder.rpartition("-")
    key = topic, int(partition)
    files: dict[str, bytes | None] = {}
    for name in (HIGH_WATERMARK, RECOVERY_POINT):
        offsets = decode_offsets(tree.read(name))
        files[name] = encode_offsets(offsets | {key: new(offsets[key])})
    epochs = f"{folder}/leader-epoch-checkpoint"
    files[epochs] = encode_epochs(
        [each._replace(start_offset=new(each.start_offset)) for each in decode_epochs(tree.read(epochs))]
    )
    for path in tree.find(f"{folder}/*.txnindex"):
        entries = struct.iter_unpack(">hqqqq", tree.read(path))
        files[path] = b"".join(
            struct.pack(">hqqqq", version, producer, *map(new, offsets)) for version, producer, *offsets in entries
        )
    for path in tree.find(f"{folder}/*.snapshot"):
        end = int(path.rpartition("/")[2].partition(".")[0])
        files[path] = None
        files[f"{folder}/{new(end):020d}.snapshot"] = _snapshot(tree.read(path), new)
    return files


def _snapshot(raw: bytes, new: Callable[[int], int]) -> bytes:
    layout, _ = SNAPSHOT
    producers = []
    for *known, last, delta, time_ms, coordinator, begun in struct.iter_unpack(layout, raw[10:]):
        producers.append(struct.pack(layout, *known, new(last), delta, time_ms, coordinator, new(begun)))
    checked = raw[6:10] + b"".join(producers)
    return struct.pack(">hI", 1, crc32c(checked)) + checked
