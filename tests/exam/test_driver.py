"""A driver as a process: how long its answers may take, and the error if one does not come."""

import sys
import threading
from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest

from understudy.exam import driver as module
from understudy.exam.driver import (
    BEAT_S,
    PATIENCE_S,
    STARVED_S,
    UNTIMED_S,
    Driver,
    DriverHang,
    DriverProblem,
    Starved,
    patience_s,
)
from understudy.exam.runner import PLAYS

LIBRARIES_CONNECT_S = 30.0
"""After which librdkafka's bindings for JavaScript and kafka-python give up connecting."""
SILENT = [sys.executable, "-c", "import sys; sys.stdin.read()"]


@pytest.mark.parametrize(
    ("fields", "limit_s"),
    [
        ({}, UNTIMED_S),
        ({"name": "p", "delivery_timeout_ms": 15_000}, UNTIMED_S),
        ({"timeout_ms": 0}, PATIENCE_S),
        ({"timeout_ms": 15_000}, PATIENCE_S + 15),
    ],
)
def test_a_command_has_its_own_timeout_and_some_patience(fields: Mapping[str, Any], limit_s: float) -> None:
    """One without a timeout has as long as libraries take to give up connecting, and no verdict takes for ever."""
    assert patience_s(fields) == limit_s
    assert LIBRARIES_CONNECT_S < UNTIMED_S < 120 / PLAYS + 1


def test_a_missing_answer_is_named_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict is no guess that the library hangs for ever."""
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)
    monkeypatch.setattr(module, "UNTIMED_S", 0.125)
    with Driver(SILENT) as driver:
        with pytest.raises(DriverHang, match=r"^hello was not answered within 0\.125 s$"):
            driver.call("hello", protocol=1)
        with pytest.raises(DriverHang, match=r"^poll was not answered within 0\.25 s$"):
            driver.call("poll", consumer="c", timeout_ms=200)


@pytest.mark.parametrize(("late_s", "starved"), [(0.0, False), (STARVED_S / 3 + 0.1, True)])
def test_a_wait_whose_beats_are_late_proves_no_hang(
    monkeypatch: pytest.MonkeyPatch, late_s: float, starved: bool
) -> None:
    """On a machine without time for the exam itself; three beats on a clock of the test."""
    monkeypatch.setattr(module, "UNTIMED_S", 3 * (BEAT_S + late_s))
    clock = count(0.0, BEAT_S + late_s)
    with Driver(SILENT, clock_s=lambda: next(clock)) as driver:
        with pytest.raises(DriverHang) as hang:
            driver.call("hello", protocol=1)
        assert isinstance(hang.value, Starved) is starved


def test_a_driver_that_does_not_read_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that is larger than a pipe cannot be written to its end: the exam hung."""
    monkeypatch.setattr(module, "UNTIMED_S", 0.125)
    with (
        Driver([sys.executable, "-c", "import signal; signal.pause()"]) as driver,
        pytest.raises(DriverHang, match=r"^send was not read within 0\.125 s$"),
    ):
        driver.call("send", records="x" * 1_000_000)


class SlowLog(list[str]):
    """Takes the first line when the stream is closed, or a little later if it is not."""

    def __init__(self, closed: threading.Event) -> None:
        super().__init__()
        self.closed, self.first = closed, threading.Event()

    def append(self, line: str) -> None:
        """Wait with the first."""
        if not self.first.is_set():
            self.first.set()
            self.closed.wait(0.3)
        super().append(line)


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_stream_is_closed_when_its_reader_is_done() -> None:
    """The reader of the log raised ValueError in its thread if the driver had just written something."""
    with Driver([sys.executable, "-c", "import sys; sys.stdin.readline(); sys.exit('one\\ntwo')"]) as driver:
        assert driver.process.stdin is not None
        assert driver.process.stderr is not None
        closed = threading.Event()
        driver.log = log = SlowLog(closed)
        stream = driver.process.stderr
        close = stream.close
        stream.close = lambda: (close(), closed.set())[0]  # type: ignore[method-assign,func-returns-value]
        driver.process.stdin.write("\n")
        driver.process.stdin.flush()
        assert log.first.wait(60)
    assert log == ["one", "two"]
    assert closed.is_set()


def test_what_the_driver_has_started_ends_with_it() -> None:
    """Also if the driver itself ended before, as the script does that runs a library's program."""
    code = "import subprocess, sys; subprocess.Popen(['sleep', '600'], stdout=2); sys.stdin.readline(); sys.exit()"
    with Driver([sys.executable, "-c", code]) as driver:
        assert driver.process.stdin is not None
        driver.process.stdin.write("\n")
        driver.process.stdin.flush()
        assert driver._lines.get(timeout=20) is None  # its stdout ended with it; the child holds stderr
        assert driver.readers[1].is_alive()
    assert not driver.readers[1].is_alive()


def test_an_answer_that_is_nested_too_deep_is_the_driver_s_problem() -> None:
    """Python's reader of JSON gives up on it."""
    code = "input(); print('[' * 100_000); input()"
    with (
        Driver([sys.executable, "-c", code]) as driver,
        pytest.raises(DriverProblem, match=r"in JSON only, not '\[\[\["),
    ):
        driver.call("hello", protocol=1)
