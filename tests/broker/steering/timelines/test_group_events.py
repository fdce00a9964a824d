"""Events of groups: rebalances are folded, refusals stay with their causes, and what is forgotten is counted."""

from broker.coordination.group.events import REPLACED
from broker.steering.timelines.event_log import EventLog, Limits
from broker.steering.timelines.group_events import (
    JOIN,
    JOINED,
    LEAVE,
    REBALANCE,
    Folding,
    GroupEvent,
    LastSign,
    causes_of,
)
from protocol.apis import ApiKey

LOG = EventLog[str, GroupEvent]


def event(at_ms: int, what: str, generation: int = -1, **fields: object) -> GroupEvent:
    """An event that leaves the group in a generation."""
    return GroupEvent(at_ms, what, "Stable", "Stable", generation - 1, generation, until_ms=at_ms, **fields)  # type: ignore[arg-type]


def refusal(at_ms: int, error: str = "ILLEGAL_GENERATION", member_id: str = "m", generation: int = 7) -> GroupEvent:
    """A refused heartbeat."""
    return event(at_ms, "refused", error=error, api="Heartbeat", member_id=member_id, request_generation=generation)


def rebalance(log: LOG, at_ms: int, generation: int, group: str = "g") -> None:
    """A healthy one."""
    log.note(group, event(at_ms, JOIN, member_id="m", api="JoinGroup"))
    log.note(group, event(at_ms, REBALANCE, generation))
    log.note(group, event(at_ms, JOINED, generation))
    log.note(group, event(at_ms, "assigned", generation))


def test_rebalances_are_folded_and_a_refusal_between_them_stays() -> None:
    """What came before the refusal is not mixed with what came after it."""
    log: LOG = EventLog(Folding())
    for number in range(100):
        rebalance(log, number, number)
    log.note("g", refusal(100))
    for number in range(101, 1000):
        rebalance(log, number, number)
    before, refused, after, *recent = log.of("g")
    assert (before.event, before.count, before.at_ms, before.until_ms) == ("100 rebalances", 400, 0, 99)
    assert (before.epoch_before, before.epoch_after) == (-2, 99)
    assert (before.api, before.member_id) == (None, "")
    assert (refused.error, refused.at_ms) == ("ILLEGAL_GENERATION", 100)
    assert after.event == "849 rebalances"
    assert len(recent) == 200
    assert log.forgotten("g") == 0


def test_what_every_rebalance_refuses_does_not_push_out_what_it_does_not() -> None:
    """REBALANCE_IN_PROGRESS by the hundreds: one of each member is kept."""
    log: LOG = EventLog(Folding())
    log.note("g", refusal(0))
    for number in range(1, 1000):
        rebalance(log, number, number)
        log.note("g", refusal(number, "REBALANCE_IN_PROGRESS", f"m-{number % 3}", number))
    events = log.of("g")
    assert events[0].error == "ILLEGAL_GENERATION"
    assert len(events) <= 400
    assert log.forgotten("g") == 0
    assert sum(each.count for each in events) == 1 + 999 * 5


def test_equal_refusals_are_one_that_counts() -> None:
    """A member that asks again and again; another generation is another refusal."""
    log: LOG = EventLog(Folding())
    for number in range(500):
        log.note("g", refusal(number))
    log.note("g", refusal(500, generation=8))
    first, *others = log.of("g")
    assert (first.event, first.error, first.count, first.at_ms, first.until_ms) == (
        "refused", "ILLEGAL_GENERATION", 301, 0, 300)  # fmt: skip
    assert len(others) == 200
    assert others[-1].request_generation == 8


def test_what_does_not_fit_is_counted_as_forgotten() -> None:
    """More different refusals than the log holds."""
    log: LOG = EventLog(Folding())
    for number in range(1000):
        log.note("g", refusal(number, generation=number))
    assert len(log.of("g")) <= 400
    assert log.forgotten("g") + len(log.of("g")) == 1000


def test_all_groups_together_are_bounded() -> None:
    """The group whose latest event is the oldest is folded first."""
    log: LOG = EventLog(Folding(), Limits(recent=100, kept=100))
    for number in range(1000):
        for generation in (1, 2):
            log.note(f"g-{number}", refusal(number, generation=generation))
    assert len(log) <= 200
    assert log.of("g-999")
    assert (log.of("g-0"), log.forgotten("g-0")) == ([], 2)


# --- causes ----------------------------------------------------------------------------------------------------------


def test_the_causes_of_a_refusal() -> None:
    """The generation, the rebalance and its request, the event that removed the member; none of them refused."""
    log: LOG = EventLog(Folding())
    gone = event(1, REPLACED.kind, member_id="m")
    left, begun, joined = event(2, LEAVE, member_id="n"), event(3, REBALANCE, 5), event(4, JOINED, 6)
    for each in (gone, left, begun, joined, refusal(5), event(6, JOIN, instance_id="i", connection=1)):
        log.note("g", each)
    sign = LastSign(4, None, ApiKey.HEARTBEAT, 4, "c")
    causes = causes_of(list(log.newest_first("g")), sign, gone, forgotten=False)
    assert causes.events() == (joined, begun, left, gone)
    assert (causes.last_sign, causes.complete) == (sign, True)


def test_a_member_that_is_not_remembered_may_have_been_there() -> None:
    """Where events are folded or forgotten, the causes are marked as incomplete."""
    log: LOG = EventLog(Folding())
    rebalance(log, 0, 0)
    assert causes_of(list(log.newest_first("g")), None, None, forgotten=False).complete
    assert not causes_of(list(log.newest_first("g")), None, None, forgotten=True).complete
    for number in range(100):
        rebalance(log, number, number)
    assert not causes_of(list(log.newest_first("g")), None, None, forgotten=False).complete
