"""A real broker's directory, while it is written and after it stopped; and Kafka's own tool on what we read."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from pipeline.reading import read_batches, read_segments, read_state
from tests.pipeline.logs import rows
from tests.storage.kafka_tools import dump_log, need_kafka
from tests.swap.nodes import Node

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(params=["kafka", "understudy"])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Node]:
    """A running node: Apache Kafka, or ours."""
    need_kafka()
    real_node = Node(tmp_path)
    (real_node.start_kafka if request.param == "kafka" else real_node.start_ours)()
    yield real_node
    real_node.stop(clean=False)


def fill(bootstrap: str) -> list[tuple[Any, ...]]:
    """Produce with every codec, with headers, and in transactions; what a consumer of committed records then sees."""
    for codec in CODECS:
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec, "enable.idempotence": True})
        for number in range(50):
            value = None if number % 9 == 0 else b"%s %d " % (codec.encode(), number) * 20
            headers: Any = [("h", b"1"), ("h", None)] if number % 10 == 0 else None
            producer.produce("t", value, key=b"%d" % number, headers=headers, partition=0)
        assert producer.flush(60) == 0
    for name in ("commits", "aborts"):
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.produce("t", name.encode(), partition=0)
        producer.flush(30)
        (producer.commit_transaction if name == "commits" else producer.abort_transaction)(30)
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "g",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition("t", 0, 0)])
    seen: list[tuple[Any, ...]] = []
    while len(seen) < 251:
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        headers = message.headers()
        seen.append((message.offset(), message.timestamp()[1], message.key(), message.value(), headers))
    consumer.commit(offsets=[TopicPartition("t", 0, 7)], asynchronous=False)
    consumer.close()
    return seen


def records_in(data: Path) -> list[tuple[Any, ...]]:
    """The same from the files."""
    columns = ["offset", "timestamp_ms", "key", "value", "headers"]
    read = rows(read_segments(data, columns=columns, topics=["t"], isolation="read_committed"))
    return [
        (*list(row.values())[:4], None if row["headers"] is None else [(h["key"], h["value"]) for h in row["headers"]])
        for row in read
    ]


def test_a_brokers_directory_holds_what_a_consumer_saw(node: Node) -> None:
    """While it runs and after it stopped; and Kafka's own tool counts the same batches and records."""
    seen = fill(node.bootstrap)
    assert records_in(node.data) == seen
    node.stop()
    assert records_in(node.data) == seen
    offsets = {row["group_id"]: row["committed_offset"] for row in rows(read_state(node.data, "offsets"))}
    assert offsets == {"g": 7}
    states = [
        row["state"] for row in rows(read_state(node.data, "transactions")) if row["transactional_id"] == "aborts"
    ]
    assert states[-1] == "CompleteAbort"
    batches = rows(read_batches(node.data, topics=["t"]))
    (log,) = (node.data / "t-0").glob("*.log")
    text = dump_log("--deep-iteration", "--files", str(log))
    answer = re.findall(r"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .*?position: (\d+) .*? size: (\d+)", text)
    names = ("base_offset", "last_offset", "record_count", "position", "size")
    assert [tuple(map(int, each)) for each in answer] == [tuple(row[name] for name in names) for row in batches]
    assert len(answer) >= 9
    assert [row["control_type"] for row in batches][-3:] == ["COMMIT", None, "ABORT"]
    assert {row["damage"] for row in batches} == {None}
