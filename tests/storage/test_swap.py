"""The directory of a real Kafka opens here, and what was written here goes on in a real Kafka.

Topic partitions only: the coordinators' and the cluster's own records are tested where they are written.
"""

import contextlib
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in its __all__

from protocol.records.records import build_marker, read_records
from storage.append_info import AppendOrigin
from storage.files import DiskFiles
from storage.files.overlay import OverlayFiles
from storage.log.config import LogConfig
from storage.log.context import LogContext
from storage.log.partition_log import PartitionLog
from storage.log_dir import LogDir
from tests.storage.kafka_tools import RealBroker, dump_log, need_kafka
from tests.storage.logs import NOW_MS, append, records_batch
from tests.storage.test_read_only import fingerprint

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]

Seen = list[tuple[int, bytes | None, bytes | None]]
"""Offset, key, value."""

TOPICS: dict[str, dict[str, str]] = {
    "plain": {"segment.bytes": "1048576"},
    "codecs": {"segment.bytes": "1048576", "segment.index.bytes": "800", "index.interval.bytes": "1000"},
    "transactions": {},
    "compacted": {
        "cleanup.policy": "compact",
        "segment.ms": "1",
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "100",
    },
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RealBroker]:
    """A running Kafka."""
    need_kafka()
    kafka = RealBroker(tmp_path)
    kafka.start()
    yield kafka
    kafka.stop(clean=False)


def make_topics(broker: RealBroker) -> None:
    """The topics, one partition each."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    topics = [NewTopic(name, 1, config=config) for name, config in TOPICS.items()]
    for creation in admin.create_topics(topics).values():
        creation.result(60)


def fill(broker: RealBroker) -> None:
    """Records of every codec and kind; one transaction stays open."""
    servers = {"bootstrap.servers": broker.bootstrap}
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer(
            {**servers, "compression.type": codec, "linger.ms": 5, "enable.idempotence": codec != "none"}
        )
        for index in range(400):
            producer.produce("codecs", value=b"%d" % index * 50, key=b"k%d" % index, headers={"h": b"1"})
        for index in range(30):
            producer.produce("plain", value=Random(index).randbytes(30_000))
        producer.flush(60)
    for index in range(12):
        producer = Producer({**servers, "linger.ms": 0})
        producer.produce("compacted", key=b"k%d" % (index % 4), value=None if index == 7 else b"%d" % index)
        producer.flush(60)
    for name, end in (("a", "commit"), ("b", "abort"), ("c", "open")):
        producer = Producer({**servers, "transactional.id": name})
        producer.init_transactions(60)
        producer.begin_transaction()
        for index in range(10):
            producer.produce("transactions", value=b"%s%d" % (name.encode(), index))
        producer.flush(60)
        if end == "commit":
            producer.commit_transaction(60)
        elif end == "abort":
            producer.abort_transaction(60)


def bounds(consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    """First offset and end; a broker that has just started may not lead its partitions yet."""
    pause = threading.Event()
    for _ in range(300):
        with contextlib.suppress(KafkaException):
            return consumer.get_watermark_offsets(partition, timeout=60)
        pause.wait(0.1)
    raise AssertionError(f"no broker leads {partition}")


def consume(broker: RealBroker, topic: str, isolation: str) -> tuple[Seen, int, int]:
    """All records of a topic's only partition, its first offset, and the end that this isolation level sees."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
        }
    )
    partition = TopicPartition(topic, 0)
    low, high = bounds(consumer, partition)
    partition.offset = low
    consumer.assign([partition])
    seen: Seen = []
    while True:
        message = consumer.poll(60)
        assert message is not None
        if message.error() is not None:
            break
        offset = message.offset()
        assert offset is not None
        seen.append((offset, message.key(), message.value()))
    consumer.close()
    return seen, low, high


def seen_here(log: PartitionLog, *, committed: bool) -> Seen:
    """What a consumer would see of a log."""
    log.advance_high_watermark(log.log_end_offset)
    bound = log.last_stable_offset if committed else log.high_watermark
    aborted = set(log.reader.aborted_transactions(log.log_start_offset, bound) if committed else ())
    hidden: set[int] = set()
    seen: Seen = []
    for batch in log.reader.replay_from(log.log_start_offset):
        if batch.base_offset >= bound:
            break
        if (batch.producer_id, batch.base_offset) in aborted:
            hidden.add(batch.producer_id)
        if batch.is_control:
            hidden.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in hidden):
            seen += [(record.offset, record.key, record.value) for record in read_records(batch)]
    return seen


def load(directory: Path, *, read_only: bool) -> LogDir:
    """Open a real broker's directory."""
    files = OverlayFiles(DiskFiles(directory, read_only=True)) if read_only else DiskFiles(directory)
    opened = LogDir.open(LogContext(files), node_id=1, now_ms=NOW_MS)
    opened.load_all(lambda topic: LogConfig.from_settings(TOPICS.get(topic, {})), now_ms=NOW_MS)
    return opened


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_a_real_directory_opens_here(broker: RealBroker, clean: bool) -> None:
    """Same offsets, records, isolation, producers; first without changing a byte, then for good."""
    make_topics(broker)
    fill(broker)
    levels = ("read_uncommitted", "read_committed")
    expected = {(topic, level): consume(broker, topic, level) for topic in TOPICS for level in levels}
    broker.stop(clean=clean)
    if not clean:  # as if it had been killed before the first checkpoint, which it writes every five seconds
        (broker.data / "replication-offset-checkpoint").unlink(missing_ok=True)
    before = fingerprint(broker.data)
    for read_only in (True, False):
        opened = load(broker.data, read_only=read_only)
        assert opened.was_clean is clean
        assert opened.directory_id is not None
        for (topic, level), (records, low, high) in expected.items():
            log = opened.get(topic, 0)
            assert log is not None
            assert log.topic_id is not None
            committed = level == "read_committed"
            # A broker that was killed may have no checkpoint; seen_here advances the high watermark, as a leader does.
            seen = seen_here(log, committed=committed)
            if topic != "compacted":  # the cleaner may have gone on after the consumer
                assert seen == records, (topic, level)
            bound = log.last_stable_offset if committed else log.high_watermark
            assert (log.log_start_offset, bound) == (low, high), (topic, level)
        transactions = opened.get("transactions", 0)
        assert transactions is not None
        assert [entry.transaction_first_offset is not None for entry in transactions.producers.producers.values()] == [
            False,
            False,
            True,
        ]
        assert transactions.reader.aborted_transactions(0, transactions.log_end_offset) != []
        opened.close()
        if read_only:
            assert fingerprint(broker.data) == before


def test_what_was_written_here_goes_on_in_a_real_broker(broker: RealBroker, tmp_path: Path) -> None:
    """Partition directories from here under a real broker: same records and bounds; then the producers go on."""
    make_topics(broker)
    fill(broker)
    broker.stop()
    opened = load(broker.data, read_only=False)
    plain, transactions = opened.get("plain", 0), opened.get("transactions", 0)
    assert plain is not None
    assert transactions is not None
    end = plain.log_end_offset
    epoch = max(log.epochs.latest for log in opened)
    for index in range(200):
        append(plain, records_batch(bytes([index]) * 20_000), epoch=epoch)
    (producer_id,) = [
        entry.producer_id for entry in transactions.producers.producers.values() if entry.transaction_first_offset
    ]
    producer: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": 0, "transactional": True}
    sequence = transactions.producers.producers[producer_id].last_sequence + 1
    append(transactions, records_batch(b"d0", b"d1", base_sequence=sequence, **producer), epoch=epoch)
    marker = build_marker(producer_id, 0, False, 0, NOW_MS)
    append(transactions, marker, epoch=epoch, origin=AppendOrigin.COORDINATOR)
    expected = {
        (topic, committed): seen_here(log, committed=committed)
        for topic in ("plain", "transactions")
        for committed in (False, True)
        if (log := opened.get(topic, 0)) is not None
    }
    opened.close()
    shutil.copytree(broker.data, tmp_path / "copy")
    broker.start()
    for (topic, committed), records in expected.items():
        got, _, _ = consume(broker, topic, "read_committed" if committed else "read_uncommitted")
        assert got == records, (topic, committed)
    assert len(expected["plain", False]) == end + 200
    assert "orrupt" not in broker.complaints()
    logs = ",".join(map(str, sorted((tmp_path / "copy" / "plain-0").glob("*.log"))))
    assert "isvalid: false" not in dump_log("--deep-iteration", "--files", logs)
