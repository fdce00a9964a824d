"""Times are the same everywhere: local ISO times with milliseconds for people, milliseconds in JSON."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from control_api.fields import Kind, fields_of, kind_of
from control_api.times import NAMES, local_time
from control_api.verbs import VERBS
from tests.control.harness import ControlPlane

DURATIONS = {"ahead_ms", "loading_ms", "timeout_ms", "duration_ms", "delay_ms", "window_ms", "throttled_ms", "step_ms"}


@pytest.fixture
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process's time zone."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("zone", "ms", "text"),
    [
        ("UTC", 1_795_376_803_120, "2026-11-22T19:46:43.120+00:00"),
        ("Europe/Berlin", 1_795_376_803_120, "2026-11-22T20:46:43.120+01:00"),
        ("America/St_Johns", 1_795_376_803_007, "2026-11-22T16:16:43.007-03:30"),
        ("UTC", 2**63, str(2**63)),
        ("UTC", -1, "-1"),
    ],
    indirect=["zone"],
)
@pytest.mark.usefixtures("zone")
def test_a_time_is_local_and_exact(ms: int, text: str) -> None:
    """With its zone; a client may have sent one that no calendar has."""
    assert local_time(ms) == text


def named(kind: Kind, seen: frozenset[Any] = frozenset()) -> Iterator[str]:
    """The names of an answer's fields in milliseconds."""
    for inner in kind.inner if kind.is_list or kind.is_mapping else ():
        yield from named(inner, seen)
    for field in fields_of(kind.type).values() if kind.is_object and kind.type not in seen else ():
        if field.name.endswith("_ms"):
            yield field.name
        yield from named(field.kind, seen | {kind.type})


def test_every_field_in_milliseconds_is_an_instant_or_a_duration() -> None:
    """The shell shows the first as times, the second as numbers."""
    names = {name for verb in VERBS if verb.answer for name in named(kind_of(verb.answer_type))}
    assert names == NAMES | DURATIONS
    assert not NAMES & DURATIONS


def test_the_shell_shows_local_times_and_json_milliseconds(plane: ControlPlane) -> None:
    """In lines and in tables, under a name without the unit; what is not there is a dash."""
    plane.kafka.clock.freeze()
    now_ms = plane.http("GET", "/v1/clock")["now_ms"]
    assert plane.ctl_text("clock", "show").split()[:2] == ["now", local_time(now_ms)]
    assert plane.ctl("clock", "show")["now_ms"] == now_ms
    plane.kafka.topics["t"].write({"value": "v", "partition": 0})
    offset, timestamp, *_ = plane.ctl_text("records", "read", "t", "0").splitlines()[-1].split()
    assert (offset, timestamp) == ("0", local_time(now_ms))
    assert "TIMESTAMP " in plane.ctl_text("records", "read", "t", "0")
