"""Hostile frames by the thousand, beside a client that means well: in full with ``make nightly``."""

import pytest

from tests.hostile.attack import Report, hostile_run

SEED = 20_261_121


def check_unharmed(report: Report) -> None:
    """Alive, no larger, nothing unforeseen in the log; and the other client had every answer, each of them right."""
    assert report.complaints == [], report.text()
    assert report.tracebacks == []
    assert report.bystander_requests > 0


@pytest.mark.timeout(300)
def test_twenty_thousand_hostile_frames_do_no_harm() -> None:
    """The broker serves on after frames of every hostile kind."""
    report = hostile_run(frames=20_000, seed=SEED)
    check_unharmed(report)
    assert report.frames == 20_000


@pytest.mark.nightly
@pytest.mark.timeout(5400)
def test_a_million_hostile_frames_do_no_harm() -> None:
    """A million hostile frames leave the server as unharmed as twenty thousand do."""
    check_unharmed(hostile_run(frames=1_000_000, seed=SEED))
