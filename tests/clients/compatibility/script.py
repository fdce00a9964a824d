"""The steps of the matrix, played with a library through its driver of `understudy exam`."""

import time
from collections.abc import Callable, Mapping

from tests.clients.script import CONSUMER, PATIENCE_MS, PRODUCER, Clients, Record, expect
from understudy.exam.driver import CallError

COUNT = 10
PATIENCE_S = 30


class Matrix:
    """The steps, on a topic of their own; those of an administrator not with librdkafka."""

    def __init__(self, clients: Clients, topic: str, codec: str) -> None:
        self.clients, self.topic, self.codec = clients, topic, codec

    def steps(self) -> Mapping[str, Callable[[], None]]:
        """Each step by its name."""
        steps = {
            "produce": self.produce,
            "idempotent": lambda: self.produce(idempotent=True),
            "consume": self.consume,
            "transaction": self.transaction,
        }
        return steps if self.clients.driver.library == "librdkafka" else {**steps, "configs": self.configs}

    def create(self, topic: str) -> None:
        """Create a topic, unless it is there."""
        if topic not in self.clients.administrator("list_topics")["topics"]:
            self.clients.administrator("create_topic", topic=topic, partitions=1, replicas=1)

    def produce(self, *, idempotent: bool = False) -> None:
        """Ten records, compressed."""
        self.create(self.topic)
        options = {"compression": self.codec, "linger_ms": 50, "idempotent": idempotent}
        producer = self.clients.create("producer", {**PRODUCER, **options})
        self.clients.send(producer, self.topic, [{"partition": 0, "value": "value" * 20}] * COUNT)
        self.clients.close(producer)

    def _read(self, consumer: str, count: int) -> list[Record]:
        """So many records, or fewer."""
        records: list[Record] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(records) < count and time.monotonic() < deadline:
            records += self.clients.poll(consumer, 500, max_records=count - len(records))
        return records

    def consume(self) -> None:
        """All ten, in a group."""
        consumer = self.clients.create("consumer", {**CONSUMER, "group": f"{self.topic}-group"})
        self.clients.driver.call("subscribe", consumer=consumer, topics=[self.topic])
        expect(len(self._read(consumer, COUNT)) == COUNT, "too few records")
        self.clients.driver.call("commit_offsets", consumer=consumer, timeout_ms=PATIENCE_MS)
        self.clients.close(consumer)

    def transaction(self) -> None:
        """One aborted, one committed, with the offsets of what was read."""
        out, group = f"{self.topic}-out", f"{self.topic}-other"
        self.create(out)
        options = {"idempotent": True, "transactional_id": self.topic}
        producer = self.clients.create("producer", {**PRODUCER, **options})
        self.clients.driver.call("init_transactions", producer=producer, timeout_ms=PATIENCE_MS)
        consumer = self.clients.create("consumer", {**CONSUMER, "group": group})
        # Not a member: what every broker since 0.11 takes.
        start = [{"topic": self.topic, "partition": 0, "offset": 0}]
        self.clients.driver.call("assign", consumer=consumer, partitions=start)
        for end, count in (("abort", 3), ("commit", 4)):
            expect(len(self._read(consumer, count)) == count, "too few records")
            self.clients.driver.call("begin", producer=producer)
            self.clients.send(producer, out, [{"partition": 0, "value": end}])
            self.clients.driver.call("send_offsets", producer=producer, consumer=consumer, timeout_ms=PATIENCE_MS)
            self.clients.driver.call(end, producer=producer, timeout_ms=PATIENCE_MS)
        self.clients.close(producer)
        self.clients.close(consumer)
        values = [each.value for each in self.clients.read(out, {0: 0}, 1, isolation="read_committed")]
        committed = self.clients.administrator("committed", group=group, topic=self.topic, partitions=1)["offsets"]
        expect((values, committed) == (["commit"], [7]), (values, committed))

    def configs(self) -> None:
        """DescribeConfigs of the topic."""
        self.clients.administrator("describe_configs", kind="topic", name=self.topic)


def play(clients: Clients, topic: str, codec: str = "") -> list[str]:
    """Play the steps: what went wrong, each with its error. With a codec, nothing is played but ``produce``."""
    failed: list[str] = []
    for name, step in Matrix(clients, topic, codec or "gzip").steps().items():
        try:
            step()
        except CallError as error:
            failed.append(f"{name} {error.error.code or error.error.kind}")
        except AssertionError as error:
            failed.append(f"{name} {error}")
        if name == "produce" and (failed or codec):
            break
    return failed
