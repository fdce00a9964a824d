"""One line for each refusal, and never more than somebody can read."""

from structlog.testing import capture_logs

from broker.clock import ManualClock
from broker.refusals import LINES, WINDOW_MS, Refusals


def test_a_refusal_is_one_line() -> None:
    """With the peer, the request and the reason."""
    with capture_logs() as lines:
        Refusals(ManualClock()).tell("127.0.0.1:5", "too long", api="Metadata", version=1)
    assert lines == [
        {
            "event": "connection closed",
            "log_level": "warning",
            "peer": "127.0.0.1:5",
            "api": "Metadata",
            "version": 1,
            "reason": "too long",
        }
    ]


def test_a_flood_is_summed_up() -> None:
    """A hundred lines in a second, then a number."""
    clock = ManualClock()
    refusals = Refusals(clock)
    with capture_logs() as lines:
        for number in range(LINES + 50):
            refusals.tell(f"peer {number}", "bad")
        assert len(lines) == LINES
        clock.advance(WINDOW_MS)
    assert lines[-1] == {"event": "more was refused than is told one by one", "log_level": "warning", "count": 50}
    assert len(lines) == LINES + 1


def test_the_next_second_has_lines_again() -> None:
    """And the sum of the last one comes first."""
    clock = ManualClock()
    refusals = Refusals(clock)
    with capture_logs() as lines:
        for _ in range(LINES + 1):
            refusals.tell("peer", "bad")
        clock.advance(WINDOW_MS)
        refusals.tell("peer", "again")
    assert [line.get("count") for line in lines[-2:]] == [1, None]


def test_what_was_not_told_is_told_at_the_end() -> None:
    """A broker that stops says how many there were."""
    refusals = Refusals(ManualClock())
    with capture_logs() as lines:
        for _ in range(LINES + 7):
            refusals.tell("peer", "bad")
        refusals.close()
    assert lines[-1]["count"] == 7
