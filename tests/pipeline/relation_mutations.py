"""Files of a right directory that are removed, cut, emptied, copied, or exchanged with those of another partition.

Each file of one partition of each kind, each file of the whole directory, and whole folders. Of several brokers'
directories: one broker's files in the place of another's.
"""

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

from storage.log_dir import partition_of
from storage.ownership import segment_part
from tests.pipeline.file_mutations import Fault, Tree, header_of, split

PARTITIONS: Final = ("plain", "compacted", "cut", "rolled", "work", "jobs", "__consumer_offsets", "__transaction_state",
                     "__share_group_state", "__cluster_metadata")  # fmt: skip
"""Topics of each kind: of one partition of each, every file is looked at."""
_LOOKED_INTO: Final = ("everywhere-0", "__consumer_offsets-0", "__transaction_state-0")
"""Replicated partitions of which the header of a batch is changed in one replica."""


def folders(tree: Tree, below: str = "") -> list[str]:
    """The partitions' folders with records, of the whole directory or below `broker-N/`."""
    with_logs = dict.fromkeys(path.rpartition("/")[0] for path in tree.find(f"{below}*/*.log"))
    return [each for each in with_logs if partition_of(each.rpartition("/")[2]) is not None]


def files(tree: Tree, folder: str) -> list[str]:
    """The files in a folder, apart from those that wait for their removal."""
    return [path for path in tree.every(f"{folder}/*") if not path.endswith((".deleted", ".lock"))]


def _kind(path: str) -> str:
    name = PurePosixPath(path).name
    return PurePosixPath(path).suffix if segment_part(name) is not None else name


def spoiled(tree: Tree) -> Iterator[Fault]:
    """Each file: removed, emptied, cut in half, a byte less, a byte more, zeros."""
    chosen = [next((each for each in folders(tree) if each.startswith(f"{topic}-")), None) for topic in PARTITIONS]
    for folder in (*filter(None, chosen), "."):
        for path in files(tree, folder):
            content = tree.read(path)
            ways: dict[str, bytes | None] = {
                "removed": None, "emptied": b"", "half": content[: len(content) // 2], "a byte less": content[:-1],
                "a byte more": content + b"\1", "zeros": bytes(len(content)),
            }  # fmt: skip
            for how, wrong in ways.items():
                yield Fault("file", f"{path}: {how}", {path: wrong})


def exchanged(tree: Tree) -> Iterator[Fault]:
    """Each file in the place of one of its kind: of the same partition, of another one, of another topic."""
    known = folders(tree)
    for folder in known:
        own = files(tree, folder)
        others = [each for each in known if each != folder]
        same_topic = [each for each in others if each.rpartition("-")[0] == folder.rpartition("-")[0]]
        for kind in dict.fromkeys(map(_kind, own)):
            place = [path for path in own if _kind(path) == kind][-1]
            sources = {"of its partition": [folder], "of its topic": same_topic[:1], "of another topic": others}
            for where, places in sources.items():
                source = _another(tree, place, kind, places)
                if source is not None:
                    yield Fault("exchanged", f"{place}: {where}", {place: tree.read(source)})


def _another(tree: Tree, place: str, kind: str, places: Sequence[str]) -> str | None:
    """The first file of a kind in some folders with another content."""
    for folder in places:
        for path in files(tree, folder):
            if path != place and _kind(path) == kind and tree.read(path) != tree.read(place):
                return path
    return None


def whole_folders(tree: Tree) -> Iterator[Fault]:
    """Each partition's folder: removed, under another number, with all files of another one."""
    known = folders(tree)
    for folder in known:
        own = files(tree, folder)
        gone: dict[str, bytes | None] = dict.fromkeys(tree.every(f"{folder}/*"))
        topic = folder.rpartition("-")[0]
        yield Fault("folder", f"{folder}: removed", gone)
        copy = {f"{topic}-9/{PurePosixPath(path).name}": tree.read(path) for path in own}
        yield Fault("folder", f"{folder}: copied to another number", copy)
        renamed: dict[str, bytes | None] = {**gone, **copy}
        yield Fault("folder", f"{folder}: under another number", renamed)
        other = next((each for each in known if each != folder and each.rpartition("-")[0] == topic), None)
        other = other or known[known.index(folder) - 1]
        taken = {f"{folder}/{PurePosixPath(path).name}": tree.read(path) for path in files(tree, other)}
        yield Fault("folder", f"{folder}: the files of {other}", {**gone, **taken})


def brokers(tree: Tree) -> Iterator[Fault]:
    """Of several brokers' directories: each small file of one in the place of another's, and whole replicas."""
    names = sorted({path.partition("/")[0] for path in tree.every("broker-*/*")})
    for own, other in zip(names, [*names[1:], names[0]], strict=True):
        for path in files(tree, own):
            name = PurePosixPath(path).name
            if tree.has(f"{other}/{name}"):
                yield Fault("brokers", f"{path}: of {other}", {path: tree.read(f"{other}/{name}")})
            yield Fault("brokers", f"{path}: removed", {path: None})
        for folder in folders(tree, f"{own}/"):
            yield from _replica(tree, folder, other)


def _replica(tree: Tree, folder: str, other: str) -> Iterator[Fault]:
    name = folder.partition("/")[2]
    gone: dict[str, bytes | None] = dict.fromkeys(tree.every(f"{folder}/*"))
    yield Fault("brokers", f"{folder}: removed", gone)
    for path in tree.find(f"{other}/{name}/*"):
        place = f"{folder}/{PurePosixPath(path).name}"
        if tree.has(place):
            yield Fault("brokers", f"{place}: of {other}", {place: tree.read(path)})
    moved = {f"{other}/{name}/{PurePosixPath(path).name}": tree.read(path) for path in files(tree, folder)}
    if not tree.every(f"{other}/{name}/*"):
        yield Fault("brokers", f"{folder}: also at {other}", moved)
    (*_, last) = tree.find(f"{folder}/*.log")
    parts = split(tree.read(last))
    yield Fault("brokers", f"{last}: the last batch lost", {last: b"".join(parts[:-1])})
    if name in _LOOKED_INTO:
        yield from header_of(tree, f"{folder}, a replica", last, len(parts) // 2)
