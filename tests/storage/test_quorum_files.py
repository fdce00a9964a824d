"""The files beside the metadata log: quorum-state and snapshots, as Apache Kafka 4.3.1 names and writes them."""

import pytest

from storage.files import MemoryFiles
from storage.quorum_files import (
    METADATA_DIRECTORY,
    QUORUM_STATE,
    Snapshot,
    latest_snapshot,
    seen_epoch,
    write_quorum_state,
)

STATIC = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":4,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1}],"data_version":0}'
)
DYNAMIC = b'{"leaderId":1,"leaderEpoch":4,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'


def directory(**contents: bytes) -> MemoryFiles:
    """A data directory with a metadata log, and these files beside it."""
    files = MemoryFiles()
    files.make_directory(METADATA_DIRECTORY)
    for name, data in contents.items():
        files.replace(f"{METADATA_DIRECTORY}/{name.replace('_', '-')}", data)
    return files


def test_a_new_state_is_that_of_static_voters() -> None:
    """The file has the bytes that Kafka writes."""
    files = directory()
    assert seen_epoch(files) == 0
    write_quorum_state(files, 1, 4)
    assert files.read_file(QUORUM_STATE) == STATIC
    assert seen_epoch(files) == 4


def test_a_state_of_recorded_voters_keeps_its_form() -> None:
    """kraft.version 1: the log has the voters, this file does not."""
    files = directory(quorum_state=DYNAMIC.replace(b":4,", b":3,"))
    assert seen_epoch(files) == 3
    write_quorum_state(files, 1, 4)
    assert files.read_file(QUORUM_STATE) == DYNAMIC


@pytest.mark.parametrize("state", [b"", b"nonsense", b"[]", b"{}", b'{"leaderEpoch":-1}'])
def test_a_state_that_cannot_be_read_has_seen_nothing(state: bytes) -> None:
    """Epoch 0, as in a real node, which then uses its log's."""
    assert seen_epoch(directory(quorum_state=state)) == 0


def test_the_newest_snapshot_counts() -> None:
    """By its end offset; parts and other files are no snapshots."""
    files = directory()
    assert latest_snapshot(files) is None
    for name in (
        "00000000000000000000-0000000000.checkpoint",
        "00000000000000000120-0000000003.checkpoint",
        "00000000000000000099-0000000007.checkpoint",
        "00000000000000000999-0000000007.checkpoint.part",
        "00000000000000000999.snapshot",
    ):
        files.replace(f"{METADATA_DIRECTORY}/{name}", b"")
    path = f"{METADATA_DIRECTORY}/00000000000000000120-0000000003.checkpoint"
    assert latest_snapshot(files) == Snapshot(120, 3, path)


def test_without_a_metadata_log_there_is_no_snapshot() -> None:
    """A broker-only node, or a new directory."""
    assert latest_snapshot(MemoryFiles()) is None
