"""Wrong files beside the segments of a data directory, and segments that are missing, cut or named wrongly."""

import json
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from crc32c import crc32c

from tests.pipeline.file_mutations import Fault, Tree, numbers, split, variants

_INDEXES: Final = {
    ".index": (">ii", ("offset", "position")),
    ".timeindex": (">qi", ("timestamp", "offset")),
    ".txnindex": (">hqqqq", ("version", "producer id", "first offset", "last offset", "last stable offset")),
}
SNAPSHOT: Final = (
    ">qhiqiqiq",
    ("producer id", "epoch", "last sequence", "last offset", "offset delta", "timestamp", "coordinator epoch",
     "first offset of the transaction"),
)  # fmt: skip


def indexes(tree: Tree) -> Iterator[Fault]:
    """Every field of an entry of each kind of index, of a closed segment and of the last one."""
    for suffix, (layout, names) in _INDEXES.items():
        paths = tree.find(f"rolled-0/*{suffix}")
        for path in dict.fromkeys((paths[0], paths[-1])):
            content = tree.read(path)
            entries = list(struct.iter_unpack(layout, content))
            where = "first" if path == paths[0] else "last"
            middle = len(entries) // 2
            for field, name in enumerate(names):
                for how, wrong in numbers(entries[middle][field]):
                    changed = [list(each) for each in entries]
                    changed[middle][field] = wrong
                    yield _index(path, f"{where}: {name} {how}", layout, changed)
            yield _index(path, f"{where}: entry lost", layout, [*entries[:middle], *entries[middle + 1 :]])
            yield _index(path, f"{where}: entry twice", layout, [*entries[: middle + 1], *entries[middle:]])
            if len(entries) > 1:
                yield _index(path, f"{where}: entries exchanged", layout, [*entries[:-2], entries[-1], entries[-2]])
            yield Fault(suffix, f"{where}: cut within an entry", {path: content[:-3]})
            yield Fault(suffix, f"{where}: emptied", {path: b""})
            yield Fault(suffix, f"{where}: missing", {path: None})


def _index(path: str, name: str, layout: str, entries: Sequence[Sequence[int]]) -> Fault:
    packed = []
    for each in entries:
        try:
            packed.append(struct.pack(layout, *each))
        except struct.error:  # beyond what the field holds
            packed.append(struct.pack(layout, *(each[:1] if len(each) < 3 else (0,)), *([2**15 - 1] * (len(each) - 1))))
    return Fault(path[path.rindex(".") :], name, {path: b"".join(packed)})


def producer_snapshots(tree: Tree) -> Iterator[Fault]:
    """Every field of a producer in the last snapshot, its header, its name."""
    layout, names = SNAPSHOT
    (*_, path) = tree.find("rolled-0/*.snapshot")
    content = tree.read(path)
    entries = [list(each) for each in struct.iter_unpack(layout, content[10:])]

    def written(name: str, changed: Sequence[Sequence[int]], version: int = 1, *, more: int = 0) -> Fault:
        checked = (len(changed) + more).to_bytes(4, "big") + b"".join(struct.pack(layout, *each) for each in changed)
        return Fault(".snapshot", name, {path: struct.pack(">hI", version, crc32c(checked)) + checked})

    for field, name in enumerate(names):
        for how, wrong in numbers(entries[-1][field]):
            try:
                yield written(
                    f"{name} {how}", [*entries[:-1], [*entries[-1][:field], wrong, *entries[-1][field + 1 :]]]
                )
            except struct.error:
                continue
    yield written("producer lost", entries[:-1])
    yield written("producer twice", [*entries, entries[-1]])
    yield written("another producer", [*entries, [77_777, *entries[-1][1:]]])
    yield written("version", entries, 7)
    yield written("count", entries, more=1)
    yield Fault(".snapshot", "checksum", {path: content[:2] + b"\1\2\3\4" + content[6:]})
    yield Fault(".snapshot", "cut", {path: content[:-3]})
    yield Fault(".snapshot", "emptied", {path: b""})
    yield Fault(".snapshot", "missing", {path: None})
    other = f"{path[: path.rindex('/')]}/{int(Path(path).stem) + 5:020d}.snapshot"
    yield Fault(".snapshot", "of a later offset", {path: None, other: content})


def checkpoints(tree: Tree) -> Iterator[Fault]:
    """Every field of a line in each checkpoint; the header; lines that are lost, doubled or of unknown partitions."""
    for path in (
        "replication-offset-checkpoint", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint",
        "cleaner-offset-checkpoint", "rolled-0/leader-epoch-checkpoint", "__cluster_metadata-0/leader-epoch-checkpoint",
    ):  # fmt: skip
        version, _, *lines = tree.read(path).decode().splitlines()
        own = [number for number, line in enumerate(lines) if not line.startswith("__") and line.split()[-1] != "0"]
        at = own[0] if own else len(lines) - 1
        fields = lines[at].split()

        def written(
            name: str, changed: Sequence[str], first: str = version, *, more: int = 0, path: str = path
        ) -> Fault:
            text = "".join(f"{line}\n" for line in (first, str(len(changed) + more), *changed))
            return Fault(Path(path).name, f"{path}: {name}", {path: text.encode()})

        for field, text in enumerate(fields):
            ways = numbers(int(text)) if text.isdigit() else [("another", f"{text}-x")]
            for how, wrong in ways:
                line = " ".join([*fields[:field], str(wrong), *fields[field + 1 :]])
                yield written(f"field {field} {how}", [*lines[:at], line, *lines[at + 1 :]])
        yield written("line lost", [*lines[:at], *lines[at + 1 :]])
        yield written("line twice", [*lines[: at + 1], *lines[at:]])
        yield written("field too many", [*lines[:at], f"{lines[at]} 1", *lines[at + 1 :]])
        yield written("no number", [*lines[:at], " ".join([*fields[:-1], "x"]), *lines[at + 1 :]])
        yield written("version", lines, "7")
        yield written("count", lines, more=1)
        yield Fault(Path(path).name, f"{path}: emptied", {path: b""})
        yield Fault(Path(path).name, f"{path}: missing", {path: None})


def properties(tree: Tree) -> Iterator[Fault]:
    """Every value of the properties of the directory and of a partition, and of the state of the quorum."""
    for path, between in (("meta.properties", "="), ("in-0/partition.metadata", ": ")):
        lines = tree.read(path).decode().splitlines()
        for number, line in enumerate(lines):
            name, separator, value = line.partition(between)
            if not separator:
                continue
            changes = {"another": "7" if value.isdigit() else value[::-1], "emptied": "", "garbled": "?" + value[1:]}
            for how, wrong in changes.items():
                changed = [*lines[:number], f"{name}{between}{wrong}", *lines[number + 1 :]]
                yield Fault(Path(path).name, f"{name} {how}", {path: "\n".join([*changed, ""]).encode()})
            yield Fault(
                Path(path).name, f"{name} missing", {path: "\n".join([*lines[:number], *lines[number + 1 :]]).encode()}
            )
        yield Fault(Path(path).name, "emptied", {path: b""})
        yield Fault(Path(path).name, "missing", {path: None})
    path = "__cluster_metadata-0/quorum-state"
    document = json.loads(tree.read(path))
    for name, value in document.items():
        ways = [("missing", None), *variants(tuple(value) if isinstance(value, list) else value)]
        for how, wrong in ways:
            others = {key: each for key, each in document.items() if key != name}
            others |= {} if how == "missing" else {name: list(wrong) if isinstance(wrong, tuple) else wrong}
            yield Fault("quorum-state", f"{name} {how}", {path: json.dumps(others).encode()})
    yield Fault("quorum-state", "cut", {path: tree.read(path)[:-2]})
    yield Fault("quorum-state", "missing", {path: None})


def segments(tree: Tree) -> Iterator[Fault]:
    """Files of a log that are missing, cut, doubled, named after another offset, or of no meaning."""
    paths = tree.find("rolled-0/*.log")
    first, middle, last = paths[0], paths[len(paths) // 2], paths[-1]
    for name, path in (("first", first), ("middle", middle), ("last", last)):
        content = tree.read(path)
        parts = split(content)
        yield Fault("segment", f"{name}: missing", {path: None})
        yield Fault("segment", f"{name}: emptied", {path: b""})
        yield Fault("segment", f"{name}: cut within a batch", {path: content[:-9]})
        yield Fault("segment", f"{name}: last batch lost", {path: b"".join(parts[:-1])})
        yield Fault("segment", f"{name}: first batch lost", {path: b"".join(parts[1:])})
        yield Fault("segment", f"{name}: last batch twice", {path: content + parts[-1]})
        yield Fault("segment", f"{name}: batches exchanged", {path: b"".join([parts[1], parts[0], *parts[2:]])})
        yield Fault("segment", f"{name}: zeros behind", {path: content + bytes(100)})
        yield Fault("segment", f"{name}: garbage behind", {path: content + b"\x7f" * 100})
        other = f"rolled-0/{int(Path(path).stem) + 1:020d}.log"
        yield Fault("segment", f"{name}: named after the next offset", {path: None, other: content})
    yield Fault("segment", "of another partition", {last: tree.read(tree.find("in-0/*.log")[-1])})
    for name in ("garbage.tmp", "00000000000000000099.log", "rolled-0.note"):
        yield Fault("segment", f"stray {name}", {f"rolled-0/{name}": b"x" * 90})
    yield Fault("segment", "stray partition", {"never-0/00000000000000000000.log": b""})
