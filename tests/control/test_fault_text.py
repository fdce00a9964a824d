"""Faults in plain English, as the console and ``ctl faults list`` show them."""

from typing import Any

import pytest

from broker.control.fault_text import does, meets
from tests.control.harness import ControlPlane


@pytest.mark.parametrize(
    ("effect", "text"),
    [
        ({"error": "NOT_COORDINATOR"}, "refused with NOT_COORDINATOR"),
        ({"disconnect": "reset"}, "the connection is reset"),
        ({"disconnect": "close"}, "the connection is closed"),
        ({"drop": True}, "never answered"),
        ({"delay_ms": 300}, "delayed by 300 ms"),
        ({"delay_ms": 300, "where": "after"}, "delayed by 300 ms, after it was served"),
        ({"throttle_ms": 5}, "answered with a throttle time of 5 ms"),
        ({"apply_then": {"drop": True}}, "served, then never answered"),
        ({"alter": {"topics.*.error_code": 3}}, "answered with topics.*.error_code = 3"),
        ({"bytes": {"truncate": 10}}, "the answer's bytes: truncate 10"),
    ],
)
def test_each_effect_is_described(effect: dict[str, Any], text: str) -> None:
    """The text of a fault describes every field of `do`."""
    assert does(effect) == text


@pytest.mark.parametrize(
    ("match", "limits", "text"),
    [
        ({}, {}, "any request"),
        ({"api": "Fetch", "client_id": "a", "broker": 2}, {}, "Fetch of client id a, broker 2"),
        ({"api": "EndTxn", "versions": [3, 5]}, {"times": None}, "EndTxn v3-5, every time"),
        ({"api": "EndTxn", "request": {"committed": True}}, {"times": 3}, "EndTxn of committed = true, 3 times"),
        (
            {"topic": "t"},
            {"skip": 2, "probability": 0.5},
            "any request of topic t, after 2 of them, with probability 0.5",
        ),
    ],
)
def test_the_conditions_are_described(match: dict[str, Any], limits: dict[str, Any], text: str) -> None:
    """A fault's description has each condition and limit that was set, and no other."""
    assert meets(match, **limits) == text


def test_a_shell_shows_the_description(plane: ControlPlane) -> None:
    """The shell lists faults by their descriptions instead of JSON."""
    plane.kafka.faults.add(api="EndTxn", transactional_id="x", apply_then={"disconnect": "reset"}, times=2)
    text = plane.ctl_text("faults", "list")
    assert "EndTxn of transactional id x, 2 times" in text
    assert "served, then the connection is reset" in text
