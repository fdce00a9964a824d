"""Messages of a topic by offset, by time and by text; the topics, groups and ids in the rows of the journal."""

from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from tests.control.harness import ControlPlane
from tests.serving import until


def values(plane: ControlPlane, **query: Any) -> list[bytes | None]:
    """What is read of partition 0."""
    return [record.value for record in plane.kafka.topics["t"].partitions[0].records(**query)]


def test_messages_are_read_from_a_time_on(plane: ControlPlane) -> None:
    """In the log's order, from the first one that is not older; none where all are older."""
    rows = [{"value": f"at {ms}", "timestamp_ms": ms, "partition": 0} for ms in (1000, 3000, 2000, 4000)]
    plane.kafka.topics["t"].write(*rows)
    assert values(plane, timestamp_ms=2500) == [b"at 3000", b"at 2000", b"at 4000"]
    assert values(plane, timestamp_ms=2500, limit=1) == [b"at 3000"]
    assert values(plane, timestamp_ms=0) == [b"at 1000", b"at 3000", b"at 2000", b"at 4000"]
    assert values(plane, timestamp_ms=4001) == []
    records = plane.ctl("records", "read", "t", "0", "--timestamp-ms", "4000")["records"]
    assert [row["value"] for row in records] == ["at 4000"]
    status, problem = plane.refused("GET", "/v1/topics/t/partitions/0/records?offset=0&timestamp_ms=1")
    assert (status, problem["field"]) == (422, "timestamp_ms")


def test_messages_are_found_by_a_text_in_key_value_and_headers(plane: ControlPlane) -> None:
    """Wherever it is; the limit counts what was found, and the offset is where the search begins."""
    rows: list[dict[str, Any]] = [{"key": "k", "value": f"nothing {n}", "partition": 0} for n in range(20)]
    rows[3] = {"key": "order-7", "value": "in the key", "partition": 0}
    rows[5] = {"key": None, "value": "the order-7 in a value", "partition": 0}
    rows[9] = {"value": "in a header", "headers": [{"key": "order-7", "value": "x"}], "partition": 0}
    rows[11] = {"value": "in a header's value", "headers": [{"key": "h", "value": "order-7"}], "partition": 0}
    for row in rows:
        plane.kafka.topics["t"].write(row)
    matching = [b"in the key", b"the order-7 in a value", b"in a header", b"in a header's value"]
    assert values(plane, text="order-7") == matching
    assert values(plane, text="order-7", limit=2) == matching[:2]
    assert values(plane, text="order-7", offset=4) == matching[1:]
    assert values(plane, text="order-8") == []
    assert len(values(plane)) == 20


@pytest.mark.parametrize("codec", ["gzip", "zstd", "lz4", "snappy"])
def test_text_is_found_in_compressed_batches(plane: ControlPlane, codec: str) -> None:
    """Where the bytes of the batch do not show it."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "compression.type": codec, "linger.ms": 50})
    for n in range(50):
        producer.produce("t", f'{{"order": "order-{n}", "padding": "{"-" * 100}"}}'.encode(), partition=0)
    assert producer.flush(60) == 0
    assert len(values(plane, text='"order-4')) == 11
    assert values(plane, text="ordre") == []


def test_the_journal_names_topics_groups_and_ids(plane: ControlPlane) -> None:
    """Of requests and answers, topics by id included; at most ten of each."""
    plane.kafka.topics["t"].write({"value": "v", "partition": 0})
    producer = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": "x"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("t", b"v", partition=0)
    producer.commit_transaction(60)
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    until(lambda: consumer.poll(0.1), "a record")
    consumer.commit(asynchronous=False)
    consumer.close()
    named = {entry.api: entry for entry in plane.kafka.journal.find()}
    fetch = next(entry for entry in plane.kafka.journal.find(api="Fetch") if entry.topics)
    assert fetch.topics == ("t",)
    assert (named["Produce"].topics, named["Produce"].transactional_ids) == (("t",), ("x",))
    assert (named["JoinGroup"].topics, named["JoinGroup"].groups) == ((), ("g",))
    assert (named["OffsetCommit"].topics, named["OffsetCommit"].groups) == (("t",), ("g",))
    assert named["EndTxn"].transactional_ids == ("x",)
    assert (named["ApiVersions"].topics, named["ApiVersions"].groups) == ((), ())
    for n in range(12):
        plane.kafka.topics.create(f"many-{n}")
    producer.list_topics(timeout=60)
    assert len(plane.kafka.journal.find(api="Metadata")[-1].topics) == 10
    *_, heading, row = plane.ctl_text("journal", "list", "--api", "EndTxn").splitlines()
    at = heading.index("TRANSACTIONAL_IDS")
    assert row[at:].split()[0] == "x"
