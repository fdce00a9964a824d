"""The witness of throttled clients: which requests came too early after the answer that asked to wait."""

from types import SimpleNamespace
from typing import Any, cast

from understudy.exam.exercise import Exercise, Violation
from understudy.exam.level import Level
from understudy.exam.scenarios.throttling import producer_waits

ANSWERED_MS = 1.0
"""How long the broker takes for the throttled request."""


class Scripted:
    """A cluster and a library whose Produce requests arrive at given times, in milliseconds, flush by flush."""

    def __init__(self, *flushes: tuple[float, ...]) -> None:
        self.flushes = list(flushes)
        self.entries: list[Any] = []
        self.name = "exam-producer-1"

    def producer(self) -> "Scripted":
        """One object is both."""
        return self

    def flush(self) -> None:
        """The next requests arrive; the first of all meets the fault."""
        for at_ms in self.flushes.pop(0):
            fault = "" if self.entries else "1"
            number = len(self.entries) + 1
            entry = SimpleNamespace(
                id=number, ts_us=round(at_ms * 1000), duration_ms=ANSWERED_MS, connection=7, fault=fault
            )
            self.entries.append(entry)

    def journal(self, *_of: str) -> list[Any]:
        """What has arrived so far."""
        return list(self.entries)

    def require(self, condition: bool, text: str, level: Level) -> None:
        """As `Exercise.require`."""
        if not condition:
            raise Violation(text, level)

    def __getattr__(self, _name: str) -> Any:
        return lambda *_arguments, **_options: None


def problem_of(*flushes: tuple[float, ...]) -> str:
    """The broken rule; empty: none was."""
    try:
        producer_waits(cast("Exercise", Scripted(*flushes)))
    except Violation as violation:
        return str(violation)
    return ""


def test_requests_that_cross_the_throttled_answer_are_not_early() -> None:
    """Sent before the client could have it, or on their way when the broker wrote it, as the third one here."""
    assert problem_of((0.0, 0.4, 1.1), (1_510.0,)) == ""


def test_a_request_after_the_answer_is_known_is_early() -> None:
    """The records before it have been acknowledged."""
    assert problem_of((0.0, 0.4), (5.0,)) == "Produce was sent 4 ms after an answer that asked to wait 1500 ms"
