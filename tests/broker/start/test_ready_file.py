"""The ready file: whole, or not there."""

from pathlib import Path

import pytest

from broker.start.ready_file import NotAReadyFile, ReadyFile
from tests.broker.steering.journal.test_files import full_disk


def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    """In one sentence, as all that keeps a server from its start."""
    file = ReadyFile(tmp_path / "ready.json")
    file.prepare()
    with full_disk(), pytest.raises(NotAReadyFile, match=r"ready\.json cannot be written: File too large"):
        file.write({"bootstrap_servers": ["127.0.0.1:9092"], "pid": 1})
    assert not list(tmp_path.iterdir())
