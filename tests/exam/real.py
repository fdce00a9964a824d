"""The scenarios on a real Apache Kafka, its answers spoiled by `understudy proxy`: the reference client passes them.

    python -m tests.exam.real java-4.4.0 [PATTERN ...]

What a scenario steers beside faults (leaders, coordinators, brokers, the clock) a proxy cannot: it is *not exercised*.
The third witness, the log, is read by librdkafka past the proxy; the sequences of producers cannot be seen so.
"""

# ruff: noqa: T201 -- a program

import fnmatch
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in its __all__

from tests.differential.targets import Kafka
from tests.exam.libraries import LIBRARIES
from tests.storage.kafka_tools import need_kafka
from understudy.client import Cluster, connect
from understudy.exam.driver import Driver
from understudy.exam.exercise import NotExercised
from understudy.exam.runner import Runner
from understudy.exam.scenario import SCENARIOS
from understudy.exam.verdicts import Verdict
from understudy.launcher import ServerProcess, command_line

TOPICS: Final[Mapping[str, int]] = {"t": 1, "u": 1, "many": 3}
PATIENCE_S: Final = 30.0
SETTINGS: Final = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}


class Steering:
    """What only Understudy's own cluster can do."""

    def __getattr__(self, name: str) -> Any:
        raise NotExercised("needs steering that a real broker does not offer")

    def __getitem__(self, name: object) -> Any:
        raise NotExercised("needs steering that a real broker does not offer")


@dataclass(frozen=True)
class Written:
    """A record of the log, as far as a consumer sees it."""

    offset: int
    value: bytes
    control: bool = False
    producer_id: int = -1
    producer_epoch: int = -1
    sequence: int = -1


class RealPartition(Steering):
    """A partition, read past the proxy."""

    def __init__(self, servers: str, topic: str, number: int) -> None:
        self.servers, self.place = servers, (topic, number)

    def records(self, *, limit: int, isolation: str) -> list[Written]:  # noqa: ARG002 - all of them
        """All records."""
        settings = {"bootstrap.servers": self.servers, "group.id": "witness", "isolation.level": isolation}
        reader = Consumer(settings | {"enable.partition.eof": True, "auto.offset.reset": "earliest"})
        found: list[Written] = []
        until = time.monotonic() + PATIENCE_S
        try:
            reader.assign([TopicPartition(*self.place, 0)])
            while time.monotonic() < until:
                message = reader.poll(1)
                if message is not None and message.error() is not None:
                    break
                if message is not None:
                    found.append(Written(int(message.offset() or 0), message.value() or b""))
        finally:
            reader.close()
        return found


class RealTopic(Steering):
    """A topic."""

    def __init__(self, servers: str, name: str) -> None:
        self.servers, self.name = servers, name
        self.partitions = {number: RealPartition(servers, name, number) for number in range(3)}

    def write(self, *records: Mapping[str, Any]) -> None:
        """Append records, past the proxy."""
        writer = Producer({"bootstrap.servers": self.servers, "linger.ms": 0})
        for each in records:
            writer.produce(self.name, each["value"], partition=each["partition"])
        assert writer.flush(PATIENCE_S) == 0


class RealTopics:
    """The topics."""

    def __init__(self, asking: AdminClient, servers: str) -> None:
        self.admin, self.servers = asking, servers

    def __getitem__(self, name: str) -> RealTopic:
        return RealTopic(self.servers, name)

    def list(self) -> Sequence[Any]:
        """Names and partitions."""
        return [
            SimpleNamespace(name=each.topic, partitions=list(each.partitions))
            for each in self.admin.list_topics(timeout=PATIENCE_S).topics.values()
        ]


class RealGroup:
    """A group: its members and committed offsets."""

    def __init__(self, asking: AdminClient, name: str) -> None:
        self.admin, self.name = asking, name

    def show(self) -> Any:
        """As the control plane's answer."""
        about = self.admin.describe_consumer_groups([self.name])[self.name].result(PATIENCE_S)
        asked = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(self.name)])
        offsets = [
            SimpleNamespace(topic=each.topic, partition=each.partition, offset=each.offset)
            for each in asked[self.name].result(PATIENCE_S).topic_partitions
        ]
        return SimpleNamespace(members=about.members, offsets=offsets)


class RealGroups:
    """The groups."""

    def __init__(self, asking: AdminClient) -> None:
        self.admin = asking

    def __getitem__(self, name: str) -> RealGroup:
        return RealGroup(self.admin, name)


class RealCluster:
    """What scenarios ask of a cluster, from a real broker and the proxy before it."""

    def __init__(self, upstream: str, proxy: Cluster) -> None:
        self.upstream, self.proxy = upstream, proxy
        self.admin = AdminClient({"bootstrap.servers": upstream})
        self.bootstrap_servers = proxy.bootstrap_servers
        self.faults, self.journal = proxy.faults, proxy.journal
        self.topics, self.groups = RealTopics(self.admin, upstream), RealGroups(self.admin)
        self.never = threading.Event()
        self.clock = self.brokers = self.coordinators = self.versions = Steering()

    def reset(self, *, disconnect: bool) -> None:
        """Topics as new, no groups; the proxy without faults and journal."""
        self.proxy.reset(disconnect=disconnect)
        for future in self.admin.delete_topics([*TOPICS, "made"]).values():
            self._wait(future)
        self._forget_groups()
        until = time.monotonic() + PATIENCE_S
        left = [NewTopic(name, count, 1) for name, count in TOPICS.items()]
        while left and time.monotonic() < until:
            made = self.admin.create_topics(left)
            left = [each for each in left if not self._wait(made[each.topic])]
        assert not left, f"not created: {left}"

    def _forget_groups(self) -> None:
        """Members whose process has ended stay until their session is over."""
        until = time.monotonic() + PATIENCE_S
        names = {"g", "copier"}
        while names and time.monotonic() < until:
            deleted = self.admin.delete_consumer_groups(sorted(names))
            names = {name for name, future in deleted.items() if not self._wait(future, "GROUP_ID_NOT_FOUND")}
            self.never.wait(0.2 if names else 0)

    @staticmethod
    def _wait(future: Any, harmless: str = "UNKNOWN_TOPIC_OR_PART") -> bool:
        try:
            future.result(PATIENCE_S)
        except KafkaException as error:
            return bool(error.args[0].name() == harmless)
        return True


def main() -> int:
    """Play the scenarios; exit code 1: a MUST was broken."""
    name, *patterns = sys.argv[1:]
    command = LIBRARIES[name].build()
    need_kafka()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        kafka = Kafka(Path(folder), SETTINGS)
        kafka.start()
        process = ServerProcess(command_line(upstream=kafka.bootstrap, port=0, control_port=0), "proxy")
        try:
            proxy = connect(str(process.ready.control_url))
            cluster = RealCluster(kafka.bootstrap, proxy)
            runner = Runner(lambda: Driver(command))
            capabilities = frozenset(runner.introduce().capabilities)
            for each in SCENARIOS.values():
                if patterns and not any(fnmatch.fnmatchcase(each.id, pattern) for pattern in patterns):
                    continue
                result = runner.judge(cast("Cluster", cluster), each, capabilities)
                print(f"{result.verdict.value:13} {each.id}: {result.problem}", flush=True)
                failed += result.verdict is Verdict.FAIL
        finally:
            process.stop()
            kafka.stop()
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
