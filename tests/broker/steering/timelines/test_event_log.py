"""What an event log keeps, folds and forgets."""

from collections.abc import Hashable
from dataclasses import dataclass

from broker.steering.timelines.event_log import UNKNOWN_COUNT, EventLog, Limits, Weight

LIMITS = Limits(recent_of_one=4, recent=12, kept_of_one=8, kept=20, ids=3)


@dataclass(frozen=True)
class Event:
    """Healthy events begin with h, refusals that clients retry with r, refusals with x, others stay by themselves."""

    name: str
    count: int = 1


class Folding:
    """By the first letter."""

    @staticmethod
    def weight(event: Event) -> Weight:
        """Refusals last."""
        return {"x": Weight.LASTING, "r": Weight.RETRIABLE}.get(event.name[0], Weight.ROUTINE)

    @staticmethod
    def key(event: Event) -> Hashable | None:
        """Healthy events are alike; of refusals those of the same name."""
        return {"h": "h", "x": event.name, "r": event.name}.get(event.name[0])

    @staticmethod
    def folded(older: Event, newer: Event) -> Event:
        """Named after the newer one, if both are alike."""
        alike = older.name[0] == newer.name[0]
        return Event(newer.name if alike else "h", older.count + newer.count)

    @staticmethod
    def forgotten(event: Event) -> int:
        """How many."""
        return event.count


def log_of(limits: Limits = LIMITS, **events: str) -> EventLog[str, Event]:
    """A log with these events: id -> names, separated by blanks."""
    log: EventLog[str, Event] = EventLog(Folding(), limits)
    for key, names in events.items():
        note(log, key, names)
    return log


def note(log: EventLog[str, Event], key: str, names: str) -> None:
    """More events of an id."""
    for name in names.split():
        log.note(key, Event(name))


def shown(log: EventLog[str, Event], key: str) -> str:
    """The events of an id; with a number where one has been folded from many."""
    return " ".join(each.name + (f"*{each.count}" if each.count > 1 else "") for each in log.of(key))


def counted(log: EventLog[str, Event], key: str) -> int:
    """How many events are listed, folded or known to be forgotten."""
    return sum(each.count for each in log.of(key)) + log.forgotten(key)


def test_the_latest_events_are_kept_one_by_one() -> None:
    """Nothing is folded as long as the log is not full."""
    log = log_of(a="h1 x1 h2 h3")
    assert shown(log, "a") == "h1 x1 h2 h3"
    assert log.forgotten("a") == 0


def test_older_healthy_events_are_one_that_counts() -> None:
    """Named after the last of them; those that do not fold stay as they are."""
    log = log_of(a="h1 h2 h3 m1 h4 h5 a b c d")
    assert shown(log, "a") == "h3*3 m1 h5*2 a b c d"
    assert log.forgotten("a") == 0


def test_ids_that_were_refused_are_known_however_many_others_follow() -> None:
    """The latest refusal last; until the log drops the id, or is cleared."""
    log = log_of(a="h x1", b="h h", c="r1", d="x1")
    note(log, "a", "h h r2")
    assert log.refused() == ["c", "d", "a"]
    for other in range(30):
        note(log, f"other-{other}", "h m")
    assert set(log.refused()) <= set(log.ids())
    assert len(log.refused()) < 3
    log.clear()
    assert log.refused() == []


def test_a_refusal_outlives_any_number_of_healthy_events() -> None:
    """As long as the id lives: the refusal, its place among the others, and nothing is forgotten."""
    log = log_of(a="h1 h2 x1 " + "h " * 1000)
    assert shown(log, "a") == "h2*2 x1 h*996 h h h h"
    assert log.forgotten("a") == 0


def test_what_a_refusal_followed_from_stays_by_itself() -> None:
    """Also where it is of a kind that is folded."""
    log = log_of(a="h1 h2 h3")
    cause = log.of("a")[1]
    log.note("a", Event("x1"), [cause])
    note(log, "a", "h " * 10)
    assert shown(log, "a") == "h1 h2 h3 x1 h*6 h h h h"


def test_the_same_refusal_again_is_one_that_counts() -> None:
    """A client that asks a thousand times pushes nothing out."""
    log = log_of(a="x1 " + "x2 " * 1000 + "h h h h")
    assert shown(log, "a") == "x1 x2*1000 h h h h"


def test_too_many_refusals_of_one_id() -> None:
    """The oldest go, those first after which clients ask again; the log counts what it has forgotten."""
    names = " ".join(f"x{number} m{number} h" for number in range(100))
    log = log_of(a=names)
    assert len(log.of("a")) <= LIMITS.kept_of_one + LIMITS.recent_of_one
    assert "x98" in shown(log, "a")
    assert log.forgotten("a") > 0
    assert counted(log, "a") == 300


def test_refusals_that_clients_retry_give_way_first() -> None:
    """The latest of each stays; the earlier ones are counted with the healthy events between which they came."""
    log = log_of(a="x1 " + "r1 h h " * 50 + "h h h h")
    assert shown(log, "a").startswith("x1 h*")
    assert "r1" in shown(log, "a")
    assert log.forgotten("a") == 0
    assert counted(log, "a") == 155


def test_ids_without_events_for_the_longest_are_folded_first() -> None:
    """They keep their refusals, and what is healthy is folded."""
    log = log_of(old="h h x1 h", b="h h h h", c="h h h h")
    assert shown(log, "old") == "h h x1 h"
    note(log, "new", "h")
    assert shown(log, "old") == "h*2 x1 h"
    assert len(log) == 3 + 9
    note(log, "old", "h")
    assert shown(log, "old") == "h*2 x1 h h"


def test_an_id_that_is_forgotten_is_remembered_as_such() -> None:
    """How many events it had; a log that has forgotten too many ids knows of none how many."""
    log = log_of()
    for number in range(8):
        note(log, f"id-{number}", "x1 x2 x3 x4 x5")
    assert "id-0" not in log
    assert log.of("id-0") == []
    assert log.forgotten("id-0") == 5
    assert log.forgotten("never") == 0
    note(log, "id-0", "h")
    assert (shown(log, "id-0"), log.forgotten("id-0")) == ("h", 5)
    for number in range(100):
        note(log, f"more-{number}", "x1 x2 x3 x4 x5")
    assert log.forgotten("never") == UNKNOWN_COUNT
    assert len(log) <= LIMITS.recent + LIMITS.kept


def test_clear() -> None:
    """A log that was cleared is as a new one."""
    log = log_of(a="x1 x2 x3 x4 x5 x6", b="h")
    log.clear()
    assert (log.of("a"), log.forgotten("a"), len(log), log.ids()) == ([], 0, 0, [])


def test_ids_come_in_the_order_of_their_latest_events() -> None:
    """Ids are listed in the order of their latest events, the latest last."""
    log = log_of(a="h", b="h", c="h")
    note(log, "a", "h")
    assert log.ids() == ["b", "c", "a"]
    assert [each.name for each in log.newest_first("a")] == ["h", "h"]
