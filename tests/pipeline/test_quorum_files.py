"""An audit reads `quorum-state`, as a controller does when it starts."""

from pathlib import Path

import pytest

from tests.pipeline.audited import findings_of
from tests.pipeline.fault_files import Planting

SOUND = b'{"leaderId":1,"leaderEpoch":3,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
STATIC = (
    b'{"clusterId":"","leaderId":-1,"leaderEpoch":0,"votedId":-1,"appliedOffset":0,"currentVoters":[],"data_version":0}'
)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (SOUND, None),
        (STATIC, None),
        (SOUND[:40], "cannot be read"),
        (STATIC.replace(b'"appliedOffset":0,', b""), "without appliedOffset"),
        (SOUND.replace(b'"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",', b""), "without votedDirectoryId"),
        (b"[]", "cannot be read"),
        (SOUND.replace(b'"leaderEpoch":3', b'"leaderEpoch":"x"'), "cannot be read"),
        (SOUND.replace(b'"votedId":-1,', b""), "cannot be read"),
        (SOUND.replace(b'"leaderEpoch":3', b'"leaderEpoch":-3'), "negative number"),
    ],
)  # fmt: skip
def test_a_quorum_state_that_cannot_be_used_is_found(tmp_path: Path, content: bytes, reason: str | None) -> None:
    """In both versions of the file; what Kafka writes is no finding."""
    where = Planting(tmp_path)
    where.shelf("orders").data(3)
    where.written_last["__cluster_metadata-0/quorum-state"] = content
    where.close()
    rows = [row for finding in findings_of(tmp_path) for row in finding.rows]
    assert [row["file"] for row in rows] == ([] if reason is None else ["__cluster_metadata-0/quorum-state"])
    assert reason is None or reason in rows[0]["reason"]
