"""Spark's own Kafka source and sink against Understudy: what they ask of a broker, case by case."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in its __all__

from tests.clients.passed import running
from tests.clients.targets import CACHE
from understudy.java import find_java

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

HERE = Path(__file__).resolve().parent
TIME_MS = 1_700_000_000_000


def prepare(bootstrap: str) -> Producer:
    """Topics and records; the producer that comes back has a transaction open."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = {"plain": 4, "transactions": 1, "deleted": 1, "timed": 1}
    lasting = {"retention.ms": "-1"}  # its records are of 2023
    for creation in admin.create_topics(
        [NewTopic(name, count, config=lasting) for name, count in topics.items()]
    ).values():
        creation.result(20)
    plain = Producer({"bootstrap.servers": bootstrap})
    for number in range(100):
        headers: Any = [("h", b"1"), ("h", b"2")] if number % 10 == 0 else None
        plain.produce("plain", b"%d" % number, partition=number % 4, headers=headers)
    for number in range(10):
        plain.produce("deleted", b"%d" % number)
        plain.produce("timed", b"%d" % number, timestamp=TIME_MS + number)
    assert plain.flush(20) == 0
    for deleted in admin.delete_records([TopicPartition("deleted", 0, 6)]).values():
        deleted.result(20)
    for number in range(4):
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"t{number}"})
        producer.init_transactions(20)
        producer.begin_transaction()
        producer.produce("transactions", b"%s %d" % ((b"aborted", b"committed")[number % 2], number))
        producer.flush(20)
        (producer.commit_transaction if number % 2 else producer.abort_transaction)(20)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "open", "transaction.timeout.ms": 800_000})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("transactions", b"open")
    producer.flush(20)
    return producer


@pytest.fixture(scope="module")
def spark_results(tmp_path_factory: pytest.TempPathFactory, target_name: str) -> Iterator[dict[str, Any]]:
    """What came of every case."""
    subprocess.run([HERE / "setup.sh", "spark"], check=True)
    (jars,) = CACHE.glob("java/spark-*")
    with running(1, target_name) as target:
        held = prepare(target.bootstrap)
        command = [sys.executable, str(HERE / "spark_source.py"), target.bootstrap]
        command += [",".join(map(str, jars.glob("*.jar"))), str(tmp_path_factory.mktemp("spark"))]
        environment = {**os.environ, "JAVA_HOME": str(find_java()), "PYSPARK_PYTHON": sys.executable}
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=500)
        assert done.returncode == 0, done.stderr[-4000:]
        yield json.loads(done.stdout.splitlines()[-1])
        held.abort_transaction(20)


PLAIN = [str(number) for number in range(100)]


def test_a_batch_reads_everything(spark_results: dict[str, Any]) -> None:
    """All partitions; headers are null without any (3.3.11)."""
    rows = spark_results["all"]["rows"]
    assert sorted(int(value) for _, _, value, _ in rows) == list(range(100))
    assert [[partition, offset] for partition, offset, _, _ in rows] == [[p, o] for p in range(4) for o in range(25)]
    assert {kind for _, _, _, kind in rows} == {0}
    headers = {value: each for (_, _, value, _), each in zip(rows, spark_results["all"]["headers"], strict=True)}
    assert headers["10"] == [["h", "1"], ["h", "2"]]
    assert headers["11"] is None
    assert spark_results["all"]["schema"] == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int,"
        "headers:array<struct<key:string,value:binary>>>"
    )


def test_offsets_are_listed_for_the_driver(spark_results: dict[str, Any]) -> None:
    """ListOffsets splits the ranges further; listTopics marks internal ones (3.2, 3.3.14)."""
    assert spark_results["more_partitions"] == [8, 100]
    assert spark_results["pattern"] == ["plain"]


def test_transactions_are_read_by_isolation_level(spark_results: dict[str, Any]) -> None:
    """Ranges that end in markers are read to their end; LATEST is the last stable offset (3.3.2, 3.3.3, 3.4)."""
    assert spark_results["committed"] == ["committed 1", "committed 3"]
    assert spark_results["uncommitted"] == ["aborted 0", "aborted 2", "committed 1", "committed 3", "open"]


def test_records_that_are_gone_are_noticed(spark_results: dict[str, Any]) -> None:
    """EARLIEST follows DeleteRecords; what is asked for beyond either end fails the query (3.3.5)."""
    assert spark_results["deleted"] == [6, 7, 8, 9]
    assert "error" in spark_results["lost"]
    assert spark_results["lost_and_tolerated"] == 4
    assert "error" in spark_results["beyond"]


def test_offsets_are_found_by_time(spark_results: dict[str, Any]) -> None:
    """ListOffsets by timestamp, with and without a match (3.3.7)."""
    assert spark_results["by_time"] == [str(number) for number in range(5, 10)]
    assert "No offset matched" in spark_results["by_time_without_match"]["error"]
    assert spark_results["by_time_or_latest"] == []


def test_reading_makes_no_topic(spark_results: dict[str, Any]) -> None:
    """Metadata without allowAutoTopicCreation (3.3.8)."""
    assert "UnknownTopicOrPartition" in spark_results["missing"]["error"]


def test_the_sink_writes(spark_results: dict[str, Any]) -> None:
    """An idempotent producer with acks=all, to a topic that its first request makes (3.3.8, 3.3.9)."""
    assert spark_results["written"] == [[number, "h"] for number in range(20)]


@pytest.mark.parametrize("way", ["streamed", "streamed_by_a_group"])
def test_a_stream_reads_all_in_steps(spark_results: dict[str, Any], way: str) -> None:
    """maxOffsetsPerTrigger bounds them; the second query has nothing to do. The old way joins groups (3.2, 3.4)."""
    steps = spark_results[way]
    assert sorted((value for step in steps for value in step), key=int) == PLAIN
    assert len(steps) >= 4
    assert max(map(len, steps)) <= 32
