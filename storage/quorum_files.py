"""Files of a KRaft quorum next to the metadata log (KIP-595, KIP-630, KIP-853).

``quorum-state`` has the last epoch and vote of the node; ``<end offset>-<epoch>.checkpoint`` is a snapshot of
everything before that offset; ``bootstrap.checkpoint``, in the data directory itself, is written for the first
controller when the directory is formatted.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from storage.files import Files

METADATA_DIRECTORY = "__cluster_metadata-0"
QUORUM_STATE = f"{METADATA_DIRECTORY}/quorum-state"
BOOTSTRAP = "bootstrap.checkpoint"

_OF_VERSION = {0: ("clusterId", "appliedOffset", "currentVoters"), 1: ("votedDirectoryId",)}
"""Version of ``quorum-state`` -> further fields that it must have (QuorumStateDataJsonConverter)."""
_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class Snapshot(NamedTuple):
    """Snapshot of everything before ``end_offset``, written in leader epoch ``epoch``."""

    end_offset: int
    epoch: int
    path: str


def metadata_snapshot(name: str) -> tuple[int, int] | None:
    """Return end offset and epoch in the name of a finished snapshot; None for the name of another file."""
    name_match = _SNAPSHOT.fullmatch(name)
    return None if name_match is None else (int(name_match[1]), int(name_match[2]))


def snapshot_path(end_offset: int, epoch: int) -> str:
    """Return the path of the snapshot of everything before ``end_offset``."""
    return f"{METADATA_DIRECTORY}/{end_offset:020d}-{epoch:010d}.checkpoint"


def snapshots(files: Files) -> list[Snapshot]:
    """List the snapshots of the metadata log, oldest first."""
    if not files.is_directory(METADATA_DIRECTORY):
        return []
    named = ((metadata_snapshot(name), name) for name in files.list(METADATA_DIRECTORY))
    return sorted(Snapshot(*key, f"{METADATA_DIRECTORY}/{name}") for key, name in named if key is not None)


def latest_snapshot(files: Files) -> Snapshot | None:
    """Return the newest snapshot of the metadata log, if there is one."""
    return max(snapshots(files), default=None)


class QuorumStateError(ValueError):
    """Invalid contents of ``quorum-state``."""


def check_quorum_state(raw: bytes) -> None:
    """Raise QuorumStateError unless the content of ``quorum-state`` has an epoch, a leader and a vote."""
    try:
        state = json.loads(raw)
        numbers = {name: int(state[name]) for name in ("leaderEpoch", "leaderId", "votedId", "data_version")}
        absent = [name for name in _OF_VERSION.get(numbers["data_version"], ()) if name not in state]
    except (ValueError, KeyError, TypeError) as error:
        raise QuorumStateError(f"quorum-state cannot be read: {error!r}") from None
    if numbers["leaderEpoch"] < 0 or min(numbers["leaderId"], numbers["votedId"]) < -1:
        raise QuorumStateError(f"quorum-state has a negative number: {numbers}")
    if absent:
        raise QuorumStateError(f"quorum-state of version {numbers['data_version']} without {absent[0]}")


def seen_epoch(files: Files) -> int:
    """Return the leader epoch of ``quorum-state``; 0 if the file is missing or unreadable."""
    return max(int(_state(files).get("leaderEpoch", 0)), 0)


def _state(files: Files) -> dict[str, Any]:
    if not files.exists(QUORUM_STATE):
        return {}
    try:
        state = json.loads(files.read_file(QUORUM_STATE))
    except ValueError:
        return {}
    return state if isinstance(state, dict) else {}


def write_quorum_state(
    files: Files, leader_id: int, epoch: int, *, voters: Sequence[int] = (), recorded: bool = False
) -> None:
    """Write ``quorum-state``: ``leader_id`` leads in ``epoch``. By default in version 0, for static voters.

    Without ``voters`` the leader is the only one.

    If voters are ``recorded`` in the log (kraft.version 1), or the file has version 1 already, it is written in
    version 1, without a vote.
    """
    if recorded or _state(files).get("data_version") == 1:
        no_vote = {"votedId": -1, "votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA", "data_version": 1}
        state: dict[str, Any] = {"leaderId": leader_id, "leaderEpoch": epoch, **no_vote}
    else:
        state = {
            "clusterId": "",
            "leaderId": leader_id,
            "leaderEpoch": epoch,
            "votedId": -1,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": each} for each in voters or (leader_id,)],
            "data_version": 0,
        }
    files.replace(QUORUM_STATE, json.dumps(state, separators=(",", ":")).encode())
