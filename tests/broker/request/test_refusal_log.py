"""One line for each refusal, and never more than a person can read."""

from structlog.testing import capture_logs

from broker.request.refusal_log import LINES, RESETS_WINDOW_MS, WINDOW_MS, RefusalLog
from broker.time.clock import ManualClock


def test_a_refusal_is_one_line() -> None:
    """With the peer, the request and the reason."""
    with capture_logs() as lines:
        RefusalLog(ManualClock()).log_refusal("127.0.0.1:5", "too long", api="Metadata", version=1)
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
    refusals = RefusalLog(clock)
    with capture_logs() as lines:
        for number in range(LINES + 50):
            refusals.log_refusal(f"peer {number}", "bad")
        assert len(lines) == LINES
        clock.advance(WINDOW_MS)
    assert lines[-1] == {"event": "further refusals were not logged", "log_level": "warning", "count": 50}
    assert len(lines) == LINES + 1


def test_the_next_second_has_lines_again() -> None:
    """And the sum of the last one comes first."""
    clock = ManualClock()
    refusals = RefusalLog(clock)
    with capture_logs() as lines:
        for _ in range(LINES + 1):
            refusals.log_refusal("peer", "bad")
        clock.advance(WINDOW_MS)
        refusals.log_refusal("peer", "again")
    assert [line.get("count") for line in lines[-2:]] == [1, None]


def test_refusals_that_were_not_logged_are_counted_at_the_end() -> None:
    """A broker that stops logs their number."""
    refusals = RefusalLog(ManualClock())
    with capture_logs() as lines:
        for _ in range(LINES + 7):
            refusals.log_refusal("peer", "bad")
        refusals.close()
    assert lines[-1]["count"] == 7


def test_connections_that_were_reset_are_one_line_a_minute() -> None:
    """With their number, and nothing where there were none."""
    clock = ManualClock()
    refusals = RefusalLog(clock)
    with capture_logs() as lines:
        for _ in range(3):
            refusals.count_reset()
        clock.advance(RESETS_WINDOW_MS - 1)
        assert lines == []
        clock.advance(1)
        clock.advance(RESETS_WINDOW_MS)
    assert [line["count"] for line in lines] == [3]
