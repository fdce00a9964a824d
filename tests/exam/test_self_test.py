"""The self-test of drivers: what always fails is the driver's problem, what fails once is not."""

from collections.abc import Iterator

import pytest

from tests.exam.reference.driver import InProcess
from understudy.exam import self_test as module
from understudy.exam.runner import Runner
from understudy.exam.self_test import self_test


@pytest.fixture(autouse=True)
def one_control(monkeypatch: pytest.MonkeyPatch) -> None:
    """One scenario is enough here."""
    monkeypatch.setattr(module, "CONTROLS", ("consumers/plain",))


def drivers(*mutations: str) -> Iterator[InProcess]:
    """A driver that introduces itself, broken ones, then correct ones."""
    yield InProcess()
    yield from map(InProcess, mutations)
    while True:
        yield InProcess()


def problems(*mutations: str) -> list[str]:
    """The problems that the self-test finds in these drivers."""
    started = drivers(*mutations)
    return self_test(Runner(lambda: next(started), timeout_ms=1_000))


def test_a_driver_that_fails_once_keeps_the_contract() -> None:
    """A library may lose a race on a busy machine; the exam calls that flaky."""
    assert problems() == []
    assert problems("delivers-nothing") == []


def test_a_driver_that_always_fails_does_not() -> None:
    """As often as a failing scenario of the exam is played."""
    (problem,) = problems(*["delivers-nothing"] * 3)
    assert problem.startswith("consumers/plain: ")
