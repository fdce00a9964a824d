"""Clients in groups of the consumer protocol (KIP-848): librdkafka, Java, and Kafka's tool that describes groups."""

import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.clients import targets
from tests.clients.clients import JAVA, compile_java
from tests.clients.drivers import HERE, command, missing
from tests.clients.passed import running
from tests.clients.targets import CACHE, JVM, Target
from tests.serving import until

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]
QUICK = {
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.assignment.interval.ms": "0",
}
"""Members hear at once what has become of them."""
PARTITIONS, RECORDS, WAIT_S = 4, 40, 30.0
GROUPS_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


@pytest.fixture(scope="module")
def cluster(target_name: str) -> Iterator[Target]:
    """One broker."""
    with running(1, target_name, QUICK) as started:
        yield started


class Members:
    """Consumers of one group, polled together; what they read of the topic, and its name."""

    def __init__(self, cluster: Target) -> None:
        self.bootstrap, self.topic = cluster.bootstrap, f"t-{uuid.uuid4().hex[:8]}"
        self.read: list[Any] = []
        self.members: list[Consumer] = []
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap})
        self.admin.create_topics([NewTopic(self.topic, PARTITIONS, 1)])[self.topic].result()
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for number in range(RECORDS):
            producer.produce(self.topic, str(number), partition=number % PARTITIONS)
        producer.flush()

    def join(self, *topics: str, **more: str) -> Consumer:
        """One more."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.topic,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **{key.replace("_", "."): value for key, value in more.items()},
            }
        )
        consumer.subscribe(list(topics) or [self.topic])
        self.members.append(consumer)
        return consumer

    def leave(self, consumer: Consumer) -> None:
        """One less."""
        self.members.remove(consumer)
        consumer.close()

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Poll until that holds."""

        def tried() -> bool | None:
            for member in self.members:
                for message in member.consume(100, timeout=0.05):
                    assert message.error() is None, message.error()
                    self.read.append(message)
            return holds() or None

        until(tried, what, WAIT_S)

    def shared(self, *sizes: int) -> bool:
        """Whether all partitions are assigned, so many to each."""
        held = [{each.partition for each in member.assignment()} for member in self.members]
        return sorted(map(len, held)) == sorted(sizes) and len(set().union(*held)) == PARTITIONS

    def committed(self, consumer: Consumer) -> list[int]:
        """The offset of each partition."""
        wanted = [TopicPartition(self.topic, index) for index in range(PARTITIONS)]
        return [each.offset for each in consumer.committed(wanted, timeout=10)]

    def close(self) -> None:
        """All leave."""
        for member in self.members:
            member.close()


@pytest.fixture
def members(cluster: Target) -> Iterator[Members]:
    """A topic with records, and a group without members yet."""
    group_members = Members(cluster)
    yield group_members
    group_members.close()


def test_librdkafka_shares_and_commits(members: Members) -> None:
    """A second one joins and leaves; no record is read twice: partitions are revoked before another member has them."""
    first = members.join()
    members.until(lambda: len(members.read) == RECORDS, "all records")
    first.commit(asynchronous=False)
    assert members.committed(first) == [10] * PARTITIONS
    second = members.join()
    members.until(lambda: members.shared(2, 2), "two each")
    members.leave(first)
    members.until(lambda: members.shared(PARTITIONS), "all for who is left")
    assert len(members.read) == RECORDS
    (listing,) = (
        each for each in members.admin.list_consumer_groups().result().valid if each.group_id == members.topic
    )
    assert (listing.type.name, listing.state.name) == ("CONSUMER", "STABLE")
    described = members.admin.describe_consumer_groups([members.topic])[members.topic].result()
    assert (described.type.name, [len(each.assignment.topic_partitions) for each in described.members]) == (
        "CONSUMER",
        [PARTITIONS],
    )
    assert second.memberid() == described.members[0].member_id


def test_librdkafka_returns_as_the_same_static_member(members: Members) -> None:
    """A static member of librdkafka that returns gets back the partitions that waited for it."""
    members.join()
    static = members.join(group_instance_id="i1")
    members.until(lambda: members.shared(2, 2), "two each")
    before = {each.partition for each in static.assignment()}
    members.leave(static)
    again = members.join(group_instance_id="i1")
    members.until(lambda: members.shared(2, 2), "two each again")
    assert {each.partition for each in again.assignment()} == before


def test_librdkafka_subscribes_by_regular_expression(members: Members) -> None:
    """The coordinator resolves a regular expression of librdkafka's consumer."""
    members.join(f"^{members.topic}.*")
    members.until(lambda: members.shared(PARTITIONS) and len(members.read) == RECORDS, "all records")
    assert {message.topic() for message in members.read} == {members.topic}


def test_librdkafka_commits_in_a_transaction(members: Members) -> None:
    """With the group's metadata, and so the member's epoch."""
    consumer = members.join()
    members.until(lambda: len(members.read) == RECORDS, "all records")
    producer = Producer({"bootstrap.servers": members.bootstrap, "transactional.id": members.topic})
    producer.init_transactions(10)
    for commit, offsets in ((False, [-1001] * PARTITIONS), (True, [10] * PARTITIONS)):
        producer.begin_transaction()
        producer.produce(members.topic, "moved", partition=0)
        positions = [TopicPartition(members.topic, index, 10) for index in range(PARTITIONS)]
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 10)
        producer.commit_transaction(10) if commit else producer.abort_transaction(10)
        assert members.committed(consumer) == offsets


@pytest.fixture
def java(cluster: Target) -> Callable[..., list[dict[str, Any]]]:
    """Runs the Java program: the lines that it prints."""
    if absent := missing(JAVA[0]):
        pytest.skip(f"needs {', '.join(absent)}")

    def run(*arguments: str) -> list[dict[str, Any]]:
        command([HERE / "setup.sh", "java"])
        class_path = compile_java(CACHE / "java" / "clients-4.3.1", "consumer-protocol", "groups")
        done = subprocess.run(
            ["java", *JVM, "-cp", class_path, "groups.ConsumerProtocol", cluster.bootstrap, *arguments],
            capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
        sys.stderr.write(done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    return run


def test_java_plays_every_step(java: Callable[..., list[dict[str, Any]]]) -> None:
    """A second member, a static one, one of the classic protocol, a regular expression."""
    lines = java(f"java-{uuid.uuid4().hex[:8]}")
    assert [line for line in lines if not line["ok"]] == []
    assert len(lines) == 9


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["--state"], ["uniform", "Stable", "2"]),
        (["--members", "--verbose"], ["2", "CURRENT-EPOCH"]),
        (["--offsets"], ["10", "0"]),
    ],
)
def test_the_tool_describes_such_a_group(members: Members, arguments: Sequence[str], printed: Sequence[str]) -> None:
    """State, members with their epochs, and lag."""
    targets.prepare_kafka()
    one = members.join()
    members.until(lambda: len(members.read) == RECORDS, "all records")
    one.commit(asynchronous=False)
    members.join()
    members.until(lambda: members.shared(2, 2), "two each")
    done = command(
        ["java", *JVM, "-cp", f"{targets.kafka_libs()}/*", GROUPS_TOOL, "--bootstrap-server", members.bootstrap,
         "--describe", "--group", members.topic, *arguments]
    )  # fmt: skip
    assert members.topic in done
    for part in printed:
        assert part in done
