"""A driver as a process: how long its answers may take, and the error if one does not come."""

import sys
from collections.abc import Mapping
from typing import Any

import pytest

from understudy.exam import driver as module
from understudy.exam.driver import PATIENCE_S, UNTIMED_S, Driver, DriverHang, patience_s
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
