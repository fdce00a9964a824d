"""What ordinary clients do to a cluster, none of which an audit may complain of."""

from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in its __all__

PATIENCE_S = 60
ANSWERED_S = 300
"""Old releases on a busy machine answer late."""
TOPICS: Final[dict[str, dict[str, str]]] = {
    "plain": {},
    "work": {},
    "cut": {"segment.bytes": "1048576"},
    "compacted": {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "max.compaction.lag.ms": "1",
        "internal.segment.bytes": "3000",
    },
}
"""Name -> settings; each of two partitions."""
COMMITTED = 60
"""How many records of `work` a consumer of committed records sees."""

Row = tuple[str, int, int, tuple[int, int], bytes | None, bytes | None, Any]


def done(requests: Mapping[Any, Any]) -> None:
    """Wait until an administrator's requests are answered; raises the error of one that fails."""
    for each in requests.values():
        each.result(ANSWERED_S)


def make(bootstrap: str) -> None:
    """Everything, once: producers of three kinds, a group, DeleteRecords, compaction."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    done(admin.create_topics([NewTopic(name, 2, 1, config=each) for name, each in TOPICS.items()]))
    for settings in ({"enable.idempotence": False, "acks": 1}, {"enable.idempotence": True}):
        _fill(bootstrap, settings)
    _transactions(bootstrap)
    _work(bootstrap, "group-eager", COMMITTED)
    done(admin.delete_records([TopicPartition("cut", 0, 7), TopicPartition("cut", 1, 40)]))


def _fill(bootstrap: str, settings: dict[str, Any]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4", **settings})
    for number in range(40):
        for partition in (0, 1):
            headers: Any = [("h", b"1"), ("h", None)] if number % 10 == 0 else None
            value = None if number % 9 == 0 else b"%d" % number * 30
            producer.produce("plain", value, b"%d" % number, partition, headers=headers)
            producer.produce("cut", value, b"%d" % number, partition)
            producer.produce("compacted", b"%d" % number * 40, b"%d" % (number % 3), partition)
        if number % 5 == 0:
            assert producer.flush(PATIENCE_S) == 0
    assert producer.flush(PATIENCE_S) == 0


def _transactions(bootstrap: str) -> None:
    """Six in a row of two producers, every third aborted; the second life of the first one fences it."""
    for name in ("first", "second", "first"):
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
        producer.init_transactions(PATIENCE_S)
        for number in range(3):
            producer.begin_transaction()
            for record in range(10):
                producer.produce("work", b"%d %d" % (number, record), b"k", record % 2)
            producer.flush(PATIENCE_S)
            (producer.abort_transaction if number == 1 else producer.commit_transaction)(PATIENCE_S)


def _work(bootstrap: str, group: str, count: int) -> None:
    """A group that reads what was committed, commits half-way, leaves, and goes on."""
    for wanted in (count // 2, count - count // 2):
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe(["work"])
        for _ in range(wanted):
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            assert message.error() is None
            consumer.commit(message=message, asynchronous=False)
        consumer.close()


def read(bootstrap: str) -> list[Row]:
    """What a consumer of committed records sees of all of it, by topic, partition and offset."""
    settings = {"group.id": "reader", "enable.partition.eof": True, "fetch.wait.max.ms": 10}
    consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
    wanted = [TopicPartition(name, number, 0) for name in TOPICS for number in (0, 1)]
    for each in wanted:
        each.offset = consumer.get_watermark_offsets(each, PATIENCE_S)[0]
    consumer.assign(wanted)
    seen: list[Any] = []
    ends = 0
    while ends < len(wanted):
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        if message.error() is not None:
            ends += 1
            continue
        place = (message.topic(), message.partition(), message.offset())
        seen.append((*place, message.timestamp(), message.key(), message.value(), message.headers()))
    consumer.close()
    return sorted(seen, key=lambda row: row[:3])
