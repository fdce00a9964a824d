"""Marks a data directory while a load writes to it: a broker refuses the directory until the load is complete.

`.understudy-loading/plan.json` identifies the load, `.understudy-loading/orders-0.json` has the result of a finished
partition. If the same load is run again after it was killed, it writes only the other partitions.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from pipeline.transfer.targets import LoadError, Target
from storage.checkpoints import LEADER_EPOCHS
from storage.files import DiskFiles
from storage.ownership import LOADING, segment_part

_OF_ONE_RUN: Final = {"store": "", "speed": 0, "first_ms": 0, "began_s": 0}
_PLAN: Final = f"{LOADING}/plan.json"


def plan_of(wanted: Sequence[Target], records: str) -> str:
    """Return a text that identifies a load: the records (`records`) and the partitions."""
    fields = [{**asdict(each), **_OF_ONE_RUN} for each in wanted]
    return hashlib.sha256(json.dumps([records, fields], sort_keys=True).encode()).hexdigest()


def is_unfinished(directory: str) -> bool:
    """Return whether a load of this directory has begun and not ended."""
    return DiskFiles(directory).exists(_PLAN)


def begin(files: DiskFiles, wanted: Sequence[Target], records: str) -> None:
    """Mark the directory, or check that this load is the one that was interrupted.

    Raises:
        LoadError: another load was interrupted here.
    """
    plan = plan_of(wanted, records)
    if not files.exists(_PLAN):
        if not files.is_directory(LOADING):
            files.make_directory(LOADING)
        files.replace(_PLAN, plan.encode())
    elif files.read_file(_PLAN).decode() != plan:
        raise LoadError(
            f"another load into {files.root} was interrupted, and its topics are incomplete: run that one again with "
            "the same options, or remove the directory"
        )


def answer_of(files: DiskFiles, target: Target) -> dict[str, Any] | None:
    """Return the result of a finished partition; None if it is not finished."""
    name = _name(target)
    return None if not files.exists(name) else dict(json.loads(files.read_file(name)))


def finish(files: DiskFiles, target: Target, answer: dict[str, Any]) -> None:
    """Mark a partition as complete."""
    files.replace(_name(target), json.dumps(answer).encode())


def end(files: DiskFiles) -> None:
    """Remove the mark: the load is complete."""
    files.remove_tree(LOADING)


def empty(files: DiskFiles, target: Target) -> None:
    """Remove the segments and leader epochs of a partition, which an interrupted load has written."""
    folder = f"{target.topic}-{target.partition}"
    for name in files.list(folder):
        if segment_part(name) is not None or name == LEADER_EPOCHS:
            files.remove(f"{folder}/{name}")


def _name(target: Target) -> str:
    return f"{LOADING}/{target.topic}-{target.partition}.json"
