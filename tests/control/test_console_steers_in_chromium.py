"""What the console does to a cluster, in a headless Chromium, with real clients behind it."""

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from broker.settings.releases import NEWEST
from tests.control.chromium import Page
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.serving import until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]


def test_a_leader_is_moved_and_removed_and_replicas_fall_behind(page: Page, plane_of: ControlPlaneOf) -> None:
    """A producer that needs two replicas is refused, and goes on when they are back."""
    settings = {"default.replication.factor": 3, "min.insync.replicas": 2}
    plane = plane_of(brokers=3, topics=["t:1"], settings=settings)
    part = plane.kafka.topics["t"].partitions[0]
    part.move_leader(1)
    page.open(plane.url, "topics", "t")
    page.choose("Leader", "broker 2")
    page.press("Move the leader")
    page.sees("Broker 2 is the leader now")
    assert part.show().leader == 2
    page.choose("Replica on broker 1", "out of sync")
    page.choose("Replica on broker 3", "out of sync")
    page.press("Set replicas")
    page.sees("In sync: 2.")
    reported: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": plane.bootstrap, "retries": 0})
    producer.produce("t", b"v", on_delivery=lambda error, _: reported.append(error))
    assert producer.flush(60) == 0
    assert reported[0] is not None
    assert reported[0].name() == "NOT_ENOUGH_REPLICAS"
    page.choose("Replica on broker 1", "in sync")
    page.choose("Replica on broker 3", "in sync, not replicating")
    page.press("Set replicas")
    page.sees("In sync: 1, 2, 3.")
    assert (part.show().isr, part.show().held) == ((1, 2, 3), (3,))
    page.choose("Leader", "none")
    page.press("Move the leader")
    page.sees("The partition has no leader now")
    assert part.show().leader == -1


def test_another_release_is_played_and_a_snapshot_gone_back_to(page: Page, plane: ControlPlane) -> None:
    """New connections are given the release's versions; what was written after the snapshot is gone."""
    page.open(plane.url, "cluster")
    page.sees(f"Apache Kafka {NEWEST}")
    page.choose("Release", "2.8")
    page.press("Emulate")
    page.sees("New connections get Apache Kafka 2.8")
    assert plane.kafka.info().as_version == "2.8"
    plane.kafka.topics["t"].write({"value": "before", "partition": 0})
    page.press("Take a snapshot")
    page.sees("The snapshot is taken")
    plane.kafka.topics["t"].write({"value": "after", "partition": 0})
    page.press(f"restore snapshot {plane.kafka.snapshots.list()[-1].id}")
    page.sees(" is restored")
    assert [record.value for record in plane.kafka.topics["t"].partitions[0].records()] == [b"before"]


def test_a_producer_shows_which_batches_came_twice(page: Page, plane: ControlPlane) -> None:
    """Its response was lost; a partition can be made to forget it."""
    fault = plane.kafka.faults.add(api="Produce", apply_then={"disconnect": "reset"})
    producer = Producer({"bootstrap.servers": plane.bootstrap, "enable.idempotence": True, "client.id": "app"})
    producer.produce("t", b"one", partition=0)
    assert producer.flush(60) == 0
    (reported,) = plane.kafka.producers.list()
    page.open(plane.url, "producers")
    page.row("app", "t-0").find_element("tag name", "a").click()
    page.sees(
        f"Producers / Producer {reported.producer_id}",
        "initialised",
        "accepted",
        f"fault {fault.id}",
        "duplicate",
        "KIP-98",
    )
    page.press("forget t-0")
    page.sees("t-0 has removed its state", "forgotten", "No partition has state of this producer")


def test_a_topic_is_created_configured_and_deleted(page: Page, plane: ControlPlane) -> None:
    """A refusal of Kafka's controller is shown; a partition shows its segments."""
    page.open(plane.url, "topics")
    page.write("Name", "returns")
    page.write("Partitions", "3")
    page.write("Settings, one per line", "cleanup.policy=compact\nretention.ms=5")
    page.press("Create")
    page.row("returns", "3")
    page.sees("returns is created, with 3 partitions")
    assert plane.kafka.topics["returns"].show().configs == {"cleanup.policy": "compact", "retention.ms": "5"}
    page.write("Name", "returns")
    page.press("Create")
    page.sees("Topic 'returns' already exists")
    page.open(plane.url, "topics", "returns")
    page.sees("Partition 0", "Segments", "cleanup.policy")
    page.press("reset cleanup.policy")
    page.sees("cleanup.policy is reset to its default")
    page.write("Setting", "retention.ms")
    page.named("form", "Change a setting").find_element("name", "to").send_keys("9")
    page.press("Set")
    page.sees("retention.ms is 9")
    assert plane.kafka.topics["returns"].show().configs == {"retention.ms": "9"}
    page.press("Delete the topic")
    page.press("Delete")
    page.sees("Create a topic")
    page.sees_no("returns")
    assert "returns" not in [topic.name for topic in plane.kafka.topics.list()]


def test_a_group_without_members_goes_on_elsewhere(page: Page, plane: ControlPlane) -> None:
    """At the earliest offset, at a given one; while it has members the page shows why not."""
    plane.kafka.topics["t"].write(*({"value": str(each), "partition": 0} for each in range(5)))
    conf = {"bootstrap.servers": plane.bootstrap, "group.id": "g", "auto.offset.reset": "latest"}
    consumer = Consumer(conf)
    consumer.subscribe(["t"])
    until(lambda: consumer.poll(0.1) or consumer.assignment(), "an assignment")
    page.open(plane.url, "groups", "g")
    page.sees("Offsets can be set while the group has no members")
    consumer.commit(offsets=[TopicPartition("t", 0, 5)], asynchronous=False)
    consumer.close()
    page.choose("Continue at", "the earliest offsets")
    page.press("Set the offsets")
    page.sees("g continues at the earliest offsets of t")
    offsets = {(each.partition, each.offset) for each in plane.kafka.groups["g"].show().offsets}
    assert (0, 0) in offsets
    page.choose("Continue at", "this offset")
    page.write("Offset", "3")
    page.press("Set the offsets")
    page.sees("g continues at offset 3 of t")
    assert (0, 3) in {(each.partition, each.offset) for each in plane.kafka.groups["g"].show().offsets}


def test_an_offset_beyond_the_numbers_of_a_browser_is_set_digit_by_digit(page: Page, plane: ControlPlane) -> None:
    """2^53 + 1 is no number in JavaScript: it was sent as 2^53."""
    offset = 2**53 + 1
    plane.kafka.topics["t"].partitions[0].start_at(2**53)
    plane.kafka.topics["t"].write(*({"value": each, "partition": 0} for each in "abc"))
    plane.kafka.groups["g"].reset_offsets("t", to="earliest")
    page.open(plane.url, "groups", "g")
    page.sees(f"{2**53:,}", f"{2**53 + 3:,}")
    page.choose("Continue at", "this offset")
    page.write("Offset", str(offset))
    page.press("Set the offsets")
    page.sees(f"g continues at offset {offset} of t", f"{offset:,}")
    (lag,) = [each for each in plane.kafka.groups["g"].show().lags if each.partition == 0]
    assert (lag.offset, lag.end_offset, lag.lag) == (offset, 2**53 + 3, 2)
