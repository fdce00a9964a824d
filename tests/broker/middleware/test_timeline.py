"""How much of the lives of transactional ids, groups and producers is remembered."""

from broker.clock import ManualClock
from broker.middleware import group_timeline, producer_timeline
from broker.middleware.group_timeline import GroupEvent, GroupTimelines
from broker.middleware.producer_timeline import EVENTS_OF_A_PRODUCER, ProducerEvent, ProducerTimelines
from broker.middleware.timeline import EVENTS, EVENTS_OF_AN_ID, Event, Timelines


def noted(timelines: Timelines, name: str, count: int) -> None:
    """So many events of one id, by number."""
    for number in range(count):
        timelines.note(name, Event(number, "refused"))


def test_of_one_id_the_newest_events_are_remembered() -> None:
    """However often it is refused."""
    timelines = Timelines(ManualClock(0))
    noted(timelines, "x", EVENTS_OF_AN_ID + 7)
    assert [event.at_ms for event in timelines.of("x")] == list(range(7, EVENTS_OF_AN_ID + 7))


def test_all_ids_together_take_a_bounded_room() -> None:
    """The one that was not heard of for longest is forgotten first: whoever makes up names cannot fill the memory."""
    timelines = Timelines(ManualClock(0))
    full = EVENTS // EVENTS_OF_AN_ID
    for number in range(full):
        noted(timelines, f"id-{number}", EVENTS_OF_AN_ID)
    noted(timelines, "id-0", 5)
    noted(timelines, "new", 1)
    kept = [number for number in range(full) if timelines.of(f"id-{number}")]
    assert kept == [0, *range(2, full)]
    for number in range(EVENTS):
        noted(timelines, f"made up {number}", 1)
    assert sum(len(timelines.of(f"made up {number}")) for number in range(EVENTS)) == EVENTS
    assert timelines.of("new") == []
    timelines.clear()
    noted(timelines, "x", 1)
    assert len(timelines.of("x")) == 1


def test_all_groups_together_take_a_bounded_room() -> None:
    """So do groups: two thousand of them with all their events took a hundred megabytes."""
    timelines = GroupTimelines(ManualClock(0))
    for number in range(group_timeline.EVENTS):
        for at_ms in (1, 2):
            timelines.note(f"g-{number}", GroupEvent(at_ms, "refused", "", "", -1, -1))
    timelines.note("g-0", GroupEvent(3, "refused", "", "", -1, -1))
    kept = [number for number in range(group_timeline.EVENTS) if timelines.of(f"g-{number}", None)]
    assert kept == [0, *range(group_timeline.EVENTS // 2 + 1, group_timeline.EVENTS)]
    assert [event.at_ms for event in timelines.of("g-0", None)] == [3]


def test_of_one_producer_the_newest_events_are_remembered() -> None:
    """An event that is forgotten grows no more: the next batch begins one that can be seen."""
    timelines = ProducerTimelines(ManualClock(0))
    life = timelines._life(1)
    for number in range(EVENTS_OF_A_PRODUCER + 7):
        event = ProducerEvent(number, "accepted", number, ("t", number))
        life.runs[("t", number)] = event
        timelines._add(life, event)
    assert [event.at_ms for event in life.events] == list(range(7, EVENTS_OF_A_PRODUCER + 7))
    assert list(life.runs) == [("t", number) for number in range(7, EVENTS_OF_A_PRODUCER + 7)]


def test_all_producers_together_take_a_bounded_room() -> None:
    """Ids and events; the one that was not heard of for longest is forgotten first."""
    timelines = ProducerTimelines(ManualClock(0))
    for number in range(3 * producer_timeline.EVENTS):
        timelines._life(number)
    assert len(timelines.lives) == producer_timeline.EVENTS
    for number in range(0, 3 * producer_timeline.EVENTS, 2):
        timelines._add(timelines._life(number), ProducerEvent(number, "refused", number))
    assert len(timelines.lives) + sum(len(life.events) for life in timelines.lives.values()) == producer_timeline.EVENTS
    assert timelines.of(3 * producer_timeline.EVENTS - 2) is not None
    timelines.clear()
    timelines._add(timelines._life(1), ProducerEvent(1, "refused", 1))
    assert len(timelines.lives) == 1
