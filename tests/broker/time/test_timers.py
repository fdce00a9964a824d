"""Rounds of periodic work: each at its time, and in a push only those that may find something."""

from dataclasses import dataclass, field

from broker.time.clock import ManualClock
from broker.time.timers import Rhythm

YEAR_MS = 365 * 24 * 3600 * 1000


@dataclass
class Job:
    """Finds something at each time of its list that has passed; time alone brings what is due at ``due``."""

    clock: ManualClock
    first_ms: int = 100
    finds: list[int] = field(default_factory=list)
    due: int | None = None
    interval_ms: int = 100
    played: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.timer = self.clock.call_at(self.first_ms, self.run, Rhythm(self.interval_ms, lambda: self.due))

    def run(self) -> None:
        """Play a round."""
        now_ms = self.clock.now_ms()
        self.timer = self.clock.call_at(now_ms + self.interval_ms, self.run, Rhythm(self.interval_ms, lambda: self.due))
        self.played.append(now_ms)
        due = [at_ms for at_ms in self.finds if at_ms <= now_ms]
        self.finds = [at_ms for at_ms in self.finds if at_ms not in due]
        if due:
            self.due = min(self.finds, default=None)
            self.clock.note_work()


def test_a_year_of_rounds_that_find_nothing_costs_one() -> None:
    """The first round is played, the others are left out; the next one comes at an instant of the old grid."""
    clock = ManualClock(7)
    job = Job(clock, first_ms=107)
    clock.advance(YEAR_MS + 50)
    assert job.played == [107]
    clock.advance(100)
    assert job.played == [107, YEAR_MS + 107]


def test_what_time_alone_brings_is_found_at_the_first_instant_after_it() -> None:
    """Not a round later, not at the end of the push."""
    clock = ManualClock()
    job = Job(clock, finds=[12_345], due=12_345)
    clock.advance(YEAR_MS)
    assert job.played == [100, 12_400, 12_500]


def test_a_timer_in_the_middle_gives_the_next_round_a_reason() -> None:
    """It may have changed anything: the first instant after it is played."""
    clock = ManualClock()
    job = Job(clock)
    clock.call_at(5_050, lambda: job.finds.append(0))
    clock.advance(YEAR_MS)
    assert job.played == [100, 5_100, 5_200]


def test_a_round_that_finds_something_gives_the_others_a_reason() -> None:
    """The one that was put off comes back to its next instant."""
    clock = ManualClock()
    finder, other = Job(clock, finds=[1000], due=1000), Job(clock, first_ms=50, interval_ms=70)
    clock.advance(YEAR_MS)
    assert finder.played == [100, 1000, 1100]
    assert other.played == [50, 1030]


def test_rounds_without_a_push_are_all_played() -> None:
    """Each advance may follow something that a client did."""
    clock = ManualClock()
    job = Job(clock)
    for _ in range(5):
        clock.advance(100)
    assert job.played == [100, 200, 300, 400, 500]


def test_a_round_that_is_cancelled_does_not_come() -> None:
    """A cancelled round is not run, and does not delay the others."""
    clock = ManualClock()
    cancelled, job = Job(clock), Job(clock, first_ms=150)
    cancelled.timer.cancel()
    clock.advance(1000)
    assert (cancelled.played, job.played) == ([], [150])
    assert len(clock._timers) == 1
