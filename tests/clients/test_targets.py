"""The clusters that clients are driven against."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.targets import oracle_release, oracle_version, wait_until


def test_what_does_not_come_up_is_ended(tmp_path: Path) -> None:
    """A Kafka that was too slow at its start would go on beside all tests that follow, and make them slow too."""
    log = tmp_path / "log"
    log.write_text("the last line")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        with pytest.raises(RuntimeError, match=r"did not come up within 0 s:\nthe last line"):
            wait_until(lambda: False, 0, process, log)
        assert process.returncode is not None


def test_what_ends_at_its_start_is_not_waited_for(tmp_path: Path) -> None:
    """A server that ends at its start is reported with its exit code, without waiting for the timeout."""
    log = tmp_path / "log"
    log.touch()
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]) as process:
        process.wait()
        with pytest.raises(RuntimeError, match="ended with exit code 3"):
            wait_until(lambda: False, 60, process, log)


def test_the_version_of_the_real_kafka_is_that_of_its_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So results name the patch release."""
    (tmp_path / "kafka-clients-4.4.0.jar").touch()
    monkeypatch.setenv("KAFKA_LIBS", str(tmp_path))
    assert (oracle_version(), oracle_release()) == ("4.4.0", "4.4")
