"""What is put into a cluster before it changes hands, and the clients that live through it."""

import threading
from dataclasses import dataclass, field
from random import Random
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka import ConsumerGroupTopicPartitions as GroupTopicPartitions
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.swap.looking import COMMITTED, LEVELS, PATIENCE_S, UNCOMMITTED, Sight, patiently

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
NEVER_ON_ITS_OWN = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1", "internal.segment.bytes": "3000"}
TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "plain": (2, {"internal.segment.bytes": "40000", "segment.jitter.ms": "100"}),
    "codecs": (1, {"internal.segment.bytes": "20000", "index.interval.bytes": "500"}),
    "converted": (1, {"compression.type": "zstd"}),
    "unpacked": (1, {"compression.type": "uncompressed"}),
    "stamped": (1, {"message.timestamp.type": "LogAppendTime"}),
    "transactions": (2, {"internal.segment.bytes": "2000"}),
    "compacted": (1, {**NEVER_ON_ITS_OWN, "delete.retention.ms": "0"}),
    "tombstones": (1, NEVER_ON_ITS_OWN),
    "both": (1, {**NEVER_ON_ITS_OWN, "cleanup.policy": "compact,delete"}),
    "shortened": (2, {"internal.segment.bytes": "2000"}),
    "work": (2, {}),
}
COORDINATORS = ("__consumer_offsets", "__transaction_state")
COMPACTED = ("compacted", "tombstones", "both", *COORDINATORS)
GROUPS = ("simple", "in-transactions", "classic")
LONG_MS = 900_000


@dataclass
class Member:
    """A member of a group on topic ``work``, and what it has read."""

    consumer: Consumer
    read: list[bytes | None] = field(default_factory=list)

    def read_until(self, count: int) -> list[bytes | None]:
        """Poll until that many records were read in all; they are committed."""

        def poll() -> int:
            message = self.consumer.poll(0.2)
            if message is not None and message.error() is None:
                self.read.append(message.value())
                self.consumer.commit(message=message, asynchronous=False)
            return len(self.read)

        patiently(poll, lambda have: have >= count)
        return self.read


class Clients:
    """Those that live through a change of hands; all of them know one address only."""

    def __init__(self, bootstrap: str, protocols: tuple[str, ...] = ("classic",)) -> None:
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        self.idempotent = self.producer(**{"enable.idempotence": True})
        self.transactional = {name: self.transactional_producer(name) for name in ("open", "leaving", "done")}
        self.members = {protocol: self._member(protocol) for protocol in protocols}
        self.sent = 0

    def producer(self, **settings: object) -> Producer:
        """A producer that sends at once."""
        return Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 0, **settings})

    def transactional_producer(self, name: str) -> Producer:
        """One that has introduced itself."""
        producer = self.producer(**{"transactional.id": name, "transaction.timeout.ms": LONG_MS})
        patiently(lambda: producer.init_transactions(PATIENCE_S))
        return producer

    def _member(self, protocol: str) -> Member:
        settings: dict[str, Any] = {"bootstrap.servers": self.bootstrap, "group.id": protocol}
        settings |= {"group.protocol": protocol, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        consumer = Consumer(settings)
        consumer.subscribe(["work"])
        return Member(consumer)

    def more_work(self) -> int:
        """Five records for the groups' members; how many there are in all."""
        for index in range(self.sent, self.sent + 5):
            send(self.idempotent, "work", b"work-%d" % index, partition=index % 2)
        self.sent += 5
        return self.sent

    def close(self) -> None:
        """Everybody leaves, whether the cluster is there or not."""
        for member in self.members.values():
            threading.Thread(target=member.consumer.close, daemon=True).start()


def send(
    producer: Producer, topic: str, *values: bytes | None, partition: int = 0, key: bytes | None = None, **more: Any
) -> None:
    """Produce one batch, and see that it was taken."""
    refused: list[Any] = []

    def delivered(error: Any, _message: Any) -> None:
        if error is not None:
            refused.append(error)

    for value in values:
        producer.produce(topic, value, key, partition=partition, on_delivery=delivered, **more)
    assert producer.flush(PATIENCE_S) == 0
    assert refused == []


def make_topics(admin: AdminClient, replicas: int) -> None:
    """Those of the table."""
    topics = [NewTopic(name, count, replicas, config=config) for name, (count, config) in TOPICS.items()]
    for creation in admin.create_topics(topics).values():
        creation.result(PATIENCE_S)


def set_configs(bootstrap: str, topics: tuple[str, ...], config: dict[str, str]) -> None:
    """Alter topics; they may have been made a moment ago."""
    wanted = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in config.items()]
    resources = [ConfigResource(ResourceType.TOPIC, name, incremental_configs=wanted) for name in topics]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    patiently(lambda: [done.result(PATIENCE_S) for done in admin.incremental_alter_configs(resources).values()])


def fill(bootstrap: str, protocols: tuple[str, ...] = ("classic",), *, replicas: int = 1) -> Clients:
    """Everything that the issue of the swap names; one transaction stays open."""
    make_topics(AdminClient({"bootstrap.servers": bootstrap}), replicas)
    clients = Clients(bootstrap, protocols)
    set_configs(bootstrap, COORDINATORS, {"internal.segment.bytes": "1500", "min.cleanable.dirty.ratio": "1"})
    _fill_plain(clients)
    _fill_compacted(clients)
    _fill_transactions(clients)
    _delete(clients)
    _commit_offsets(clients)
    total = clients.more_work()
    for member in clients.members.values():
        assert len(member.read_until(total)) == total
    return clients


def _fill_plain(clients: Clients) -> None:
    """Codecs, conversion, times; big records over several segments."""
    chance = Random(1)
    for codec in CODECS:
        packing = clients.producer(**{"compression.type": codec, "linger.ms": 20})
        for topic in ("codecs", "converted", "unpacked"):
            for index in range(20):
                values = [b"%s-%d-%d " % (codec.encode(), index, each) * 9 for each in range(10)]
                send(packing, topic, *values, None, b"", key=b"k%d" % index, headers={"h": b"1", "none": None})
    for index in range(12):
        send(clients.idempotent, "plain", chance.randbytes(9_000), partition=index % 2)
        send(clients.idempotent, "stamped", b"%d" % index, timestamp=1_500_000_000_000 + index)
    send(clients.producer(acks=1), "plain", b"without a key", key=None, timestamp=1)


def _fill_compacted(clients: Clients) -> None:
    """Keys that come again, tombstones, producers whose last batch has no record that stays."""
    for topic in ("compacted", "tombstones", "both"):
        send(clients.idempotent, topic, b"alive", None, key=b"dead")
        for round_ in range(12):
            for number in range(6):
                value = None if (round_ + number) % 7 == 6 else b"%d-%d " % (round_, number) * 10
                send(clients.idempotent, topic, value, key=b"k%d" % number)
        send(clients.producer(**{"enable.idempotence": True}), topic, b"soon gone", key=b"k0")
        transactional = clients.transactional["done"]
        for key in (b"k1", b"aborted", b"k2"):
            transactional.begin_transaction()
            send(transactional, topic, b"in a transaction " * 9, key=key)
            end = transactional.abort_transaction if key == b"aborted" else transactional.commit_transaction
            end(PATIENCE_S)
        for index in range(40):
            send(clients.idempotent, topic, b"%d" % index * 30, key=b"k%d" % (index % 6))


def _fill_transactions(clients: Clients) -> None:
    """Committed, aborted, interleaved, over segments; with offsets; the last one stays open on both partitions."""
    one, other = clients.transactional["leaving"], clients.transactional["done"]
    for round_ in range(10):
        for producer, name in ((one, b"one"), (other, b"other")):
            producer.begin_transaction()
            for index in (0, 1):
                values = [b"%s-%d-%d" % (name, round_, each) * 5 for each in range(3)]
                send(producer, "transactions", *values, partition=index)
        commit_offsets_in(other, 100 + round_)
        one.abort_transaction(PATIENCE_S)
        (other.commit_transaction if round_ % 3 else other.abort_transaction)(PATIENCE_S)
        send(clients.idempotent, "transactions", b"outside-%d" % round_, partition=round_ % 2)
    still_open = clients.transactional["open"]
    still_open.begin_transaction()
    send(still_open, "transactions", b"open-1", b"open-2", partition=0)
    send(still_open, "transactions", b"open-3", partition=1)
    commit_offsets_in(still_open, 500)
    other.begin_transaction()
    send(other, "transactions", b"behind the open one", partition=0)
    other.commit_transaction(PATIENCE_S)


def commit_offsets_in(producer: Producer, offset: int) -> None:
    """An offset of the group ``in-transactions`` becomes part of the producer's transaction."""
    settings: dict[str, Any] = {"bootstrap.servers": "127.0.0.1:1", "group.id": "in-transactions"}
    metadata = Consumer(settings).consumer_group_metadata()
    producer.send_offsets_to_transaction([TopicPartition("work", 1, offset)], metadata, PATIENCE_S)


def _delete(clients: Clients) -> None:
    """Records below a place in the middle of a batch's segment; up to the end; a topic."""
    for index in range(60):
        send(clients.idempotent, "shortened", b"%d " % index * 40, partition=index % 2)
    wanted = [TopicPartition("shortened", 0, 17), TopicPartition("shortened", 1, -1)]
    for done in clients.admin.delete_records(wanted).values():
        done.result(PATIENCE_S)
    for done in clients.admin.create_topics([NewTopic("gone", 1, 1)]).values():
        done.result(PATIENCE_S)
    patiently(lambda: send(clients.producer(), "gone", b"x"))
    for deleted in clients.admin.delete_topics(["gone"]).values():
        deleted.result(PATIENCE_S)


def _commit_offsets(clients: Clients) -> None:
    """A group without members, its offsets twice; metadata with them."""
    for offset in (1, 7):
        wanted = [TopicPartition("plain", 0, offset, "here"), TopicPartition("codecs", 0, offset * 3)]
        (done,) = clients.admin.alter_consumer_group_offsets([GroupTopicPartitions("simple", wanted)]).values()
        done.result(PATIENCE_S)


PENDING_OFFSET = 500
"""What the group ``in-transactions`` has committed once the open transaction is."""


def go_on(clients: Clients) -> None:
    """What the same clients do afterwards: send, finish, begin again; the members read what is new."""
    send(clients.idempotent, "plain", b"goes on", b"and on")
    still_open, done, leaving = (clients.transactional[name] for name in ("open", "done", "leaving"))
    send(still_open, "transactions", b"open-4", partition=1)
    still_open.commit_transaction(PATIENCE_S)
    for producer, value in ((done, b"committed after"), (leaving, b"aborted after")):
        producer.begin_transaction()
        send(producer, "transactions", value)
    done.commit_transaction(PATIENCE_S)
    leaving.abort_transaction(PATIENCE_S)
    successor = clients.transactional_producer("leaving")
    successor.begin_transaction()
    send(successor, "transactions", b"by the successor", partition=1)
    successor.commit_transaction(PATIENCE_S)
    total = clients.more_work()
    for member in clients.members.values():
        assert sorted(map(str, member.read_until(total))) == sorted(str(b"work-%d" % each) for each in range(total))


def check_gone_on(before: Sight, after: Sight) -> None:
    """Everything that was there is there still, and what `go_on` did follows, once and in order."""
    new: dict[tuple[str, int, str], list[bytes]] = {("plain", 0, level): [b"goes on", b"and on"] for level in LEVELS}
    new["transactions", 0, UNCOMMITTED] = [b"committed after", b"aborted after"]
    new["transactions", 1, UNCOMMITTED] = [b"open-4", b"by the successor"]
    new["transactions", 0, COMMITTED] = [b"open-1", b"open-2", b"behind the open one", b"committed after"]
    new["transactions", 1, COMMITTED] = [b"open-3", b"open-4", b"by the successor"]
    for at, records in before.records.items():
        seen = after.records[at]
        assert seen[: len(records)] == records, at
        if at[0] != "work":
            assert [record.value for record in seen[len(records) :]] == new.get(at, []), at
    assert after.committed["in-transactions"] == {("work", 1): (PENDING_OFFSET, None, None)}
    assert after.committed["simple"] == before.committed["simple"]
    assert sum(offset for offset, _, _ in after.committed["classic"].values()) == 10
