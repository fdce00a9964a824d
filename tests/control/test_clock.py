"""Time, pushed while real clients are connected: what hangs on it comes now, and nothing else does."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from protocol.apis import ApiKey
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.control.test_explain_group import joined
from tests.scenarios.groups.members import SETTINGS, commit
from tests.serving import until

ROOT = Path(__file__).resolve().parents[2]


def test_the_clock_is_shown_and_moved_over_http_in_python_and_in_the_shell(plane: ControlPlane) -> None:
    """The clock is shown, advanced, frozen and thawed in all three ways."""
    before = plane.http("GET", "/v1/clock")
    assert (before["ahead_ms"], before["frozen"]) == (0, False)
    assert plane.http("POST", "/v1/clock/advance", {"ms": 1000})["ahead_ms"] == 1000
    assert plane.kafka.clock.advance(hours=1).ahead_ms == 3_601_000
    assert plane.ctl("clock", "advance", "7d")["ahead_ms"] == 3_601_000 + 7 * 86_400_000
    frozen = plane.kafka.clock.freeze()
    assert plane.kafka.clock.show().now_ms == frozen.now_ms
    assert plane.ctl("clock", "advance", "250ms")["now_ms"] == frozen.now_ms + 250
    assert plane.kafka.clock.thaw().frozen is False
    for body, field in (({}, "ms"), ({"ms": -1}, "ms"), ({"ms": "1h"}, "ms"), ({"hours": 1}, "hours")):
        status, problem = plane.refused("POST", "/v1/clock/advance", body)
        assert (status, problem["field"]) == (422, field)


@pytest.mark.verb("clock advance", "clock show")
def test_a_week_of_retention_passes_now(plane_of: ControlPlaneOf) -> None:
    """What is older is gone for a real consumer; what was written after the push is there."""
    plane = plane_of(topics=["t:1:segment.ms=3600000"], settings={"log.retention.check.interval.ms": 60_000})
    producer = Producer({"bootstrap.servers": plane.bootstrap, "linger.ms": 0})
    producer.produce("t", b"old")
    assert producer.flush(60) == 0
    plane.kafka.clock.advance(days=7)
    producer.produce("t", b"new", timestamp=plane.kafka.clock.show().now_ms)  # clients have the machine's time
    assert producer.flush(60) == 0
    plane.kafka.clock.advance(minutes=1)
    assert plane.kafka.topics["t"].partitions[0].show().log_start_offset == 1
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": "g"})
    consumer.assign([TopicPartition("t", 0, OFFSET_BEGINNING)])
    first = consumer.poll(60)
    consumer.close()
    assert first is not None
    assert first.value() == b"new"


def test_retention_and_compaction_can_be_run_at_once(plane_of: ControlPlaneOf) -> None:
    """Each of both commands removes what is due when it is run, not at the next interval."""
    plane = plane_of(topics=["t:1:retention.ms=1000,segment.ms=1000", "c:1:cleanup.policy=compact,segment.ms=1000"])
    for topic in ("t", "c"):
        for value in ("1", "2", "3"):
            plane.kafka.topics[topic].write({"key": "k", "value": value})
            plane.kafka.clock.advance(seconds=5)
    plane.kafka.retention.run()
    assert plane.kafka.topics["t"].partitions[0].show().log_start_offset > 0
    plane.kafka.compaction.run()
    assert next(record.value for record in plane.kafka.topics["c"].partitions[0].records()) != b"1"
    assert "segments_deleted" in plane.ctl("retention", "run")
    assert "logs_cleaned" in plane.ctl("compaction", "run")


def test_a_long_poll_ends_when_its_time_has_come(plane: ControlPlane) -> None:
    """Ten minutes of waiting are over at once."""
    wire = plane.server.wire()
    topics = [FetchTopic("t", [FetchPartition(0, 0, 1 << 20)])]
    wire.send(ApiKey.FETCH, 11, FetchRequest(-1, 600_000, 1, 1 << 20, 0, topics, 0, -1))
    until(lambda: plane.kafka.journal.find(api="Fetch"), "the fetch")
    assert not wire.has_answer()
    plane.kafka.clock.advance(minutes=10)
    assert wire.answer().responses


def timers(path: Path) -> Iterator[str]:
    """Calls that wait by the machine's time or by the loop's."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            owner = getattr(getattr(node.func, "value", None), "id", "")
            waits = name in {"call_later", "wait_for", "fail_after", "move_on_after"} or (owner, name) in {
                ("asyncio", "sleep"), ("anyio", "sleep"), ("asyncio", "timeout"), ("loop", "call_at")}  # fmt: skip
            if waits:
                yield f"{path.relative_to(ROOT)}:{node.lineno} {name}"


def test_no_timer_ignores_the_clusters_clock() -> None:
    """Walks every call of the server: only the clock itself hangs on the loop's time, and who waits for a process."""
    served = [path for folder in ("broker", "storage", "protocol") for path in (ROOT / folder).rglob("*.py")]
    machine_timers = [timer for path in served if path.name != "clock.py" for timer in timers(path)]
    # A moment after the start, while no HTTP client has come, for imports that can wait too; and at the end, for the
    # journal's writer, which is a process of its own: no clock of ours drives these.
    assert sorted(re.sub(r":\d+", "", timer) for timer in machine_timers) == [
        "broker/control/server.py timeout",
        "broker/start/runner.py call_later",
        "broker/steering/journal/feed.py wait_for",
    ]


@pytest.mark.parametrize("brokers", [1, 3])
def test_pushing_far_leaves_clients_connected(plane_of: ControlPlaneOf, brokers: int) -> None:
    """A day, while a producer has its connections open."""
    plane = plane_of(brokers=brokers, topics=["t:3"])
    producer = Producer({"bootstrap.servers": plane.bootstrap, "linger.ms": 0})
    for _ in range(3):
        producer.produce("t", b"v")
        assert producer.flush(60) == 0
        plane.kafka.clock.advance(days=1)
    numbers = {entry.connection for entry in plane.kafka.journal.find(api="Produce")}
    assert len(numbers) <= brokers


def test_an_advance_lists_what_it_has_ended(plane_of: ControlPlaneOf) -> None:
    """Members, offsets, records and ids by number; nothing of a short one."""
    plane = plane_of(topics=["t:2"], settings=SETTINGS)
    plane.kafka.topics["t"].write({"value": "a", "partition": 0}, {"value": "b", "partition": 0})
    member = joined(plane)
    commit(member.wire, "t", 1, member.generation, member.member_id)
    producer = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": "x"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("t", b"v", partition=1)
    producer.flush()
    assert plane.kafka.clock.advance(seconds=1).expired == {}
    ended = plane.kafka.clock.advance(days=8).expired
    assert ended == {
        "members": 1,
        "offsets": 1,
        "transactions": 1,
        "transactional_ids": 1,
        "producer_ids": 1,
        "records": 4,
    }
    assert plane.http("POST", "/v1/clock/advance", {"ms": 1})["expired"] == {}
