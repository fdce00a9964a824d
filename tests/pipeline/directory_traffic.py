"""What fills a data directory with every kind of file and record: segments that roll, groups that stay, credentials."""

from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.pipeline import answer_traffic, group_traffic, traffic
from tests.pipeline.traffic import done
from tests.serving import until

SETTINGS: Final = {
    **group_traffic.SETTINGS,
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "metadata.log.max.snapshot.interval.ms": "3000",
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    "log.index.interval.bytes": "200",
}
PATIENCE_S: Final = 60
_ROLLED: Final = {"internal.segment.bytes": "2500", "index.interval.bytes": "200"}


def make(bootstrap: str) -> list[Consumer]:
    """Traffic of all kinds; a transaction is open at the end. Answers members that stay until the broker stops."""
    traffic.make(bootstrap)
    answer_traffic.make(bootstrap)
    group_traffic.make(bootstrap)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    done(admin.create_topics([NewTopic("rolled", 1, 1, config=_ROLLED)]))
    _rolled(bootstrap)
    members = [each for protocol in ("consumer", "classic") for each in _stayed(bootstrap, protocol)]
    credential = UserScramCredentialUpsertion("bob", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), b"secret")
    done(admin.alter_user_scram_credentials([credential]))
    left = Producer({"bootstrap.servers": bootstrap, "transactional.id": "left-open"})
    left.init_transactions(PATIENCE_S)
    left.begin_transaction()
    left.produce("work", b"x", b"k", 0)
    assert left.flush(PATIENCE_S) == 0
    return members


def _rolled(bootstrap: str) -> None:
    """Transactions of two producers that overlap, every third aborted, over several segments."""
    producers = [Producer({"bootstrap.servers": bootstrap, "transactional.id": f"roll-{each}"}) for each in (1, 2)]
    for producer in producers:
        producer.init_transactions(PATIENCE_S)
    for turn in range(12):
        for producer in producers:
            producer.begin_transaction()
        for producer in producers:
            for number in range(5):
                producer.produce("rolled", b"v%d" % number * 10, b"k%d" % number, 0)
            assert producer.flush(PATIENCE_S) == 0
        for number, producer in enumerate(producers):
            ends = producer.abort_transaction if (turn + number) % 3 == 0 else producer.commit_transaction
            ends(PATIENCE_S)


def _stayed(bootstrap: str, protocol: str) -> list[Consumer]:
    """Two members that commit, and are there when the broker stops."""
    common: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    members = [
        Consumer(
            {**common, "group.id": f"stay-{protocol}", "group.protocol": protocol, "client.id": f"{protocol}-{each}"}
        )
        for each in (1, 2)
    ]
    for member in members:
        member.subscribe(["plain", "out"])
    until(
        lambda: [each.poll(0.1) for each in members] and all(len(each.assignment()) == 2 for each in members),
        "members with two partitions each",
        PATIENCE_S,
    )
    for member in members:
        reached = member.position(member.assignment())
        offsets = [TopicPartition(each.topic, each.partition, max(each.offset, 0)) for each in reached]
        member.commit(offsets=offsets, asynchronous=False)
    return members
