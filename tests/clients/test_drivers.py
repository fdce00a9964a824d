"""How drivers are run: once for all workers of a run."""

import os
import sys
from pathlib import Path

import pytest

from tests.clients.drivers import Driver, Runs
from tests.clients.targets import start
from tests.serving import until

# Appends a line to the file that it is given, waits until it can read from a second one, and passes its only step.
PROGRAM = """
import pathlib, sys
played, go_on = map(pathlib.Path, sys.argv[1:3])
with played.open("a") as file:
    file.write("once\\n")
go_on.read_text()
print('{"step": "list_topics", "ok": true, "detail": ""}')
"""
TARGET = start(1, "127.0.0.1:1")


@pytest.fixture
def played(tmp_path: Path) -> Path:
    """Where the driver leaves a line each time that it is played."""
    return tmp_path / "played"


@pytest.fixture
def driver(tmp_path: Path, played: Path) -> Driver:
    """A client that does nothing, until something is written into the pipe `go on`."""
    os.mkfifo(tmp_path / "go on")
    prefix = [sys.executable, "-c", PROGRAM, str(played), str(tmp_path / "go on")]
    return Driver("nothing", (), None, lambda: prefix, ("list_topics",))


def test_workers_share_what_one_of_them_plays(tmp_path: Path, driver: Driver, played: Path) -> None:
    """The second worker waits for the first one's result, and does not play the driver beside it or after it."""
    first, second = Runs(TARGET, tmp_path / "runs"), Runs(TARGET, tmp_path / "runs")
    first.start([driver])
    until(played.exists, "the first worker plays", 30)

    second.start([driver])
    assert second.started[driver.name].result() is None
    (tmp_path / "go on").write_text("go on")
    second.check(driver, "list_topics")
    first.check(driver, "list_topics")

    assert played.read_text() == "once\n"
    first.close()
    second.close()


def test_what_was_not_played_to_its_end_is_played_again(tmp_path: Path, driver: Driver, played: Path) -> None:
    """A worker that is gone leaves the file of its lock, and no result."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "nothing.lock").touch()
    runs = Runs(TARGET, tmp_path / "runs")
    runs.start([driver])
    (tmp_path / "go on").write_text("go on")
    runs.check(driver, "list_topics")
    assert played.read_text() == "once\n"
    runs.close()
