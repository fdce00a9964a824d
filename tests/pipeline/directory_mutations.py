"""All wrong data directories that can be made of a right one, one field each; and what puts one in its place."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.pipeline.file_mutations import Fault, Tree, headers, metadata_snapshot, records, states
from tests.pipeline.side_file_mutations import checkpoints, indexes, producer_snapshots, properties, segments

WALKS: Final[Sequence[Callable[[Tree], Iterator[Fault]]]] = (
    headers, records, segments, indexes, producer_snapshots, checkpoints, properties, states, metadata_snapshot,
)  # fmt: skip


def faults(root: Path) -> list[Fault]:
    """All wrong directories that can be made of a right one, without those that are like it."""
    tree = Tree(root)
    found: dict[str, Fault] = {}
    for walk in WALKS:
        for fault in walk(tree):
            if any(content != _content(tree, path) for path, content in fault.files.items()):
                found.setdefault(f"{fault.kind} {fault.name}", fault)
    return list(found.values())


def _content(tree: Tree, path: str) -> bytes | None:
    return tree.read(path) if (tree.root / path).is_file() else None


def plant(root: Path, fault: Fault) -> dict[str, bytes | None]:
    """Put a fault into a copy of the directory; answers the contents of before, which `plant` also takes."""
    tree = Tree(root)
    before = {path: _content(tree, path) for path in fault.files}
    for path, content in fault.files.items():
        if content is None:
            (root / path).unlink()
        else:
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_bytes(content)
    return before
