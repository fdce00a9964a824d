"""The files that a KRaft quorum keeps beside the metadata log (KIP-595, KIP-630, KIP-853).

``quorum-state`` says which epoch the node has seen and whom it voted for; ``<end offset>-<epoch>.checkpoint`` is a
snapshot of everything before that offset; ``bootstrap.checkpoint``, in the data directory itself, is what formatting
left for the first controller.
"""

import json
import re
from typing import Any, NamedTuple

from storage.files import Files

METADATA_DIRECTORY = "__cluster_metadata-0"
QUORUM_STATE = f"{METADATA_DIRECTORY}/quorum-state"
BOOTSTRAP = "bootstrap.checkpoint"

_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class Snapshot(NamedTuple):
    """A snapshot's place: everything before ``end_offset``, written in leader epoch ``epoch``."""

    end_offset: int
    epoch: int
    path: str


def snapshot_path(end_offset: int, epoch: int) -> str:
    """Where the snapshot of everything before ``end_offset`` stands."""
    return f"{METADATA_DIRECTORY}/{end_offset:020d}-{epoch:010d}.checkpoint"


def snapshots(files: Files) -> list[Snapshot]:
    """The snapshots of the metadata log, oldest first."""
    if not files.is_directory(METADATA_DIRECTORY):
        return []
    matches = (_SNAPSHOT.fullmatch(name) for name in files.list(METADATA_DIRECTORY))
    return sorted(Snapshot(int(m[1]), int(m[2]), f"{METADATA_DIRECTORY}/{m[0]}") for m in matches if m is not None)


def latest_snapshot(files: Files) -> Snapshot | None:
    """The newest snapshot of the metadata log, if there is one."""
    return max(snapshots(files), default=None)


def seen_epoch(files: Files) -> int:
    """The leader epoch of ``quorum-state``; 0 if nothing, or nothing readable, stands there."""
    return max(int(_state(files).get("leaderEpoch", 0)), 0)


def _state(files: Files) -> dict[str, Any]:
    if not files.exists(QUORUM_STATE):
        return {}
    try:
        state = json.loads(files.read_file(QUORUM_STATE))
    except ValueError:
        return {}
    return state if isinstance(state, dict) else {}


def write_quorum_state(files: Files, leader_id: int, epoch: int) -> None:
    """Say that ``leader_id`` leads in ``epoch``, in the form that the file has: of static voters unless told otherwise.

    A file of kraft.version 1 (voters recorded in the log) keeps its form, with no vote given.
    """
    if _state(files).get("data_version") == 1:
        nobody = {"votedId": -1, "votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA", "data_version": 1}
        state: dict[str, Any] = {"leaderId": leader_id, "leaderEpoch": epoch, **nobody}
    else:
        state = {
            "clusterId": "",
            "leaderId": leader_id,
            "leaderEpoch": epoch,
            "votedId": -1,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": leader_id}],
            "data_version": 0,
        }
    files.replace(QUORUM_STATE, json.dumps(state, separators=(",", ":")).encode())
