"""All wrong data directories that can be made of a right one, one field each; and what puts one in its place."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.pipeline.file_mutations import Fault, Tree, headers, metadata_snapshot, records, states
from tests.pipeline.record_mutations import record_fields, whole_records
from tests.pipeline.relation_mutations import brokers, exchanged, spoiled, whole_folders
from tests.pipeline.side_file_mutations import checkpoints, indexes, producer_snapshots, properties, segments

WALKS: Final[Sequence[Callable[[Tree], Iterator[Fault]]]] = (
    headers, records, record_fields, segments, indexes, producer_snapshots, checkpoints, properties, states,
    whole_records, metadata_snapshot, spoiled, exchanged, whole_folders,
)  # fmt: skip


def faults(root: Path) -> list[Fault]:
    """All wrong directories that can be made of a right one, each once, without those that are like it."""
    tree = Tree(root)
    distinct: dict[str, Fault] = {}
    seen: set[tuple[tuple[str, bytes | None], ...]] = set()
    for walk in (brokers,) if tree.every("broker-*/*") else WALKS:
        for fault in walk(tree):
            files = tuple(sorted(fault.files.items()))
            if files not in seen and any(content != _content(tree, path) for path, content in files):
                seen.add(files)
                distinct.setdefault(f"{fault.kind} {fault.name}", fault)
    return list(distinct.values())


def _content(tree: Tree, path: str) -> bytes | None:
    return tree.read(path) if (tree.root / path).is_file() else None


def plant(root: Path, fault: Fault) -> dict[str, bytes | None]:
    """Put a fault into the directory; answers the contents of before, for `restore`. An emptied folder is removed."""
    tree = Tree(root)
    before = {path: _content(tree, path) for path in fault.files}
    _put(root, fault.files)
    return before


def restore(root: Path, before: Mapping[str, bytes | None]) -> None:
    """Take a fault out of the directory."""
    _put(root, before)


def _put(root: Path, files: Mapping[str, bytes | None]) -> None:
    for path, content in files.items():
        if content is None:
            (root / path).unlink(missing_ok=True)
            if (root / path).parent.exists() and not any((root / path).parent.iterdir()):
                (root / path).parent.rmdir()
        else:
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_bytes(content)
