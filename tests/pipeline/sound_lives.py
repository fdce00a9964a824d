"""What clients and administrators do to real brokers, so that sound directories have as much as they can have."""

import sys
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from protocol.apis import ApiKey
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from protocol.messages.elect_leaders import ElectLeadersRequest
from protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.pipeline import group_traffic
from tests.pipeline.release_clusters import ReleaseCluster
from tests.pipeline.traffic import done
from tests.serving import until
from tests.wire import Wire
from tools.old_kafka import has_zookeeper

PATIENCE_S: Final = 300
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True)
class Life:
    """``lived``: starts the brokers, and leaves them stopped or killed."""

    lived: Callable[[ReleaseCluster], None]
    settings: dict[str, str] = field(default_factory=dict)
    brokers: int = 1
    log_dirs: int = 1
    has_permissions: bool = False


def small(release: str, bytes_: int = 3000) -> dict[str, str]:
    """The setting for segments of few bytes, which has another name since there is a least size."""
    name = "segment.bytes" if release in {"2.8", "3.9"} else "internal.segment.bytes"
    return {name: str(bytes_), "index.interval.bytes": "200"}


def administrator(cluster: ReleaseCluster) -> AdminClient:
    """Return a client for administration."""
    return AdminClient({"bootstrap.servers": cluster.bootstrap})


def topic(cluster: ReleaseCluster, name: str, *partitions: int, **settings: str) -> None:
    """Create one, of two partitions without a number; the settings' names with `_` for dots."""
    config = {key.replace("_", "."): value for key, value in settings.items()}
    wanted = NewTopic(name, (partitions or (2,))[0], min(3, len(cluster.ports)), config=config)
    admin = administrator(cluster)  # as long as this is referred to, its answers come

    def is_created() -> bool:
        try:
            admin.create_topics([wanted])[name].result(PATIENCE_S)
        except KafkaException as error:
            if not has_zookeeper(cluster.release) or error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
            return False  # ZooKeeper still has what was deleted
        return True

    until(is_created, f"topic {name}", PATIENCE_S)


def write(
    cluster: ReleaseCluster, name: str, count: int = 60, *, headed: bool = True, each: int = 5, **settings: Any
) -> None:
    """Records for both partitions, some without value or, if wanted, with headers, flushed after every ``each``."""
    options = {key.replace("_", "."): value for key, value in settings.items()}
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, **options})
    for number in range(count):
        headers: Any = [("h", b"1"), ("h", None)] if headed and number % 10 == 0 else None
        value = None if number % 9 == 8 else b"%d " % number * 12
        producer.produce(name, value, b"k%d" % (number % 7), number % 2, headers=headers)
        if number % each == 0:
            assert producer.flush(PATIENCE_S) == 0
    assert producer.flush(PATIENCE_S) == 0


def transact(
    cluster: ReleaseCluster, transactional_id: str, topics: Iterable[str], turns: int = 6, **settings: Any
) -> Producer:
    """Transactions over all of these topics, every third aborted; return the producer, which has none open."""
    options = {key.replace("_", "."): value for key, value in settings.items()}
    patient = {"transaction.timeout.ms": PATIENCE_S * 1000}  # its records, too, wait so long for a new leader
    identity = {"bootstrap.servers": cluster.bootstrap, "transactional.id": transactional_id}
    producer = Producer({**identity, **patient, **options})
    producer.init_transactions(PATIENCE_S)
    for turn in range(turns):
        producer.begin_transaction()
        for name in topics:
            for number in range(8):
                producer.produce(name, b"%d %d" % (turn, number), b"k%d" % number, number % 2)
        producer.flush(PATIENCE_S)
        (producer.abort_transaction if turn % 3 == 1 else producer.commit_transaction)(PATIENCE_S)
    return producer


def begin(producer: Producer, name: str) -> None:
    """Open a transaction that has records of both partitions."""
    producer.begin_transaction()
    for number in range(6):
        producer.produce(name, b"open %d" % number, b"k%d" % number, number % 2)
    assert producer.flush(PATIENCE_S) == 0


def read(cluster: ReleaseCluster, group: str, name: str, count: int, **settings: Any) -> Consumer:
    """Return a member that has read and committed so many records."""
    options = {key.replace("_", "."): value for key, value in settings.items()}
    common = {"auto.offset.reset": "earliest", "enable.auto.commit": False, "isolation.level": "read_committed"}
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group, **common, **options})
    consumer.subscribe([name])
    seen = 0
    while seen < count:
        messages = consumer.consume(min(10, count - seen), PATIENCE_S)
        assert messages, f"{seen} of {count}"
        assert not any(each.error() for each in messages)
        seen += len(messages)
        consumer.commit(asynchronous=False)
    return consumer


def altered(cluster: ReleaseCluster, kind: ResourceType, name: str, **settings: str) -> None:
    """Set something."""
    entries = [
        ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for key, value in settings.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    admin = administrator(cluster)
    done(admin.incremental_alter_configs([resource]))


def codecs(cluster: ReleaseCluster) -> None:
    """Each codec of a client, into topics that keep it, that have one of their own, or that the broker stamps."""
    cluster.start()
    for own in ("producer", "gzip", "lz4", "zstd", "snappy", "uncompressed"):
        topic(cluster, f"c-{own}", compression_type=own)
        topic(
            cluster, f"l-{own}", compression_type=own, message_timestamp_type="LogAppendTime", **small(cluster.release)
        )
        for codec in CODECS:
            for name in (f"c-{own}", f"l-{own}"):
                write(cluster, name, 24, each=1 if codec == "zstd" else 8, compression_type=codec)
    for acks in (0, 1):
        write(cluster, "c-producer", enable_idempotence=False, acks=acks)
    altered(cluster, ResourceType.TOPIC, "c-gzip", compression_type="zstd", message_timestamp_type="LogAppendTime")
    write(cluster, "c-gzip", compression_type="lz4")
    cluster.stop()


def transactions(cluster: ReleaseCluster) -> None:
    """Open, ended, fenced, overdue, with offsets; the broker is killed twice among them."""
    cluster.start()
    topic(cluster, "in")
    topic(cluster, "out", **small(cluster.release))
    write(cluster, "in")
    for _ in range(2):
        transact(cluster, "first", ["in", "out"])
        with suppress(KafkaException):  # a busy machine may need longer than the timeout, as applications do
            begin(transact(cluster, "overdue", ["out"], 1, transaction_timeout_ms=3000), "out")
        left = transact(cluster, "left", ["in", "out"], 2)
        if cluster.release in {"4.3", "4.4"}:
            until(lambda: is_stable(cluster, "out"), "the end of what is overdue", PATIENCE_S)
        begin(left, "in")
        cluster.stop(clean=False)
        cluster.start()
        transact(cluster, "left", ["out"], 1)
        worker = transact(cluster, "worker", ["out"], 1)
        consumer = read(cluster, "workers", "in", 20)
        for ends in (worker.commit_transaction, worker.abort_transaction):
            begin(worker, "out")
            offsets = consumer.position(consumer.assignment())
            worker.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), PATIENCE_S)
            ends(PATIENCE_S)
        consumer.close()
    begin(worker, "out")
    cluster.stop(clean=False)


def is_stable(cluster: ReleaseCluster, name: str) -> bool:
    """Return whether no transaction is open in the topic's partitions.

    One that ends while a broker starts may lose its markers, which is no sound life: until the broker is unfenced,
    partitions have no leader, and `KRaftMetadataCache.getPartitionLeaderEndpoint` answers as for deleted ones. So may
    one of 2.8 whose markers were due when it was killed.
    """
    ends, admin = [], administrator(cluster)
    for level in (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED):
        wanted = {TopicPartition(name, number): OffsetSpec.latest() for number in range(2)}  # type: ignore[no-untyped-call]
        answers = admin.list_offsets(wanted, isolation_level=level)
        ends.append({place.partition: done.result(PATIENCE_S).offset for place, done in answers.items()})
    return ends[0] == ends[1]


def compaction(cluster: ReleaseCluster) -> None:
    """Keys that come again, tombstones, transactions; cleaned, and cleaned again."""
    cluster.start()
    eager = {"min_cleanable_dirty_ratio": "0.01", "max_compaction_lag_ms": "1", "delete_retention_ms": "500"}
    topic(cluster, "kept", cleanup_policy="compact", **eager, **small(cluster.release))
    topic(cluster, "both", cleanup_policy="compact,delete", **eager, **small(cluster.release))
    for name in ("kept", "both"):
        write(cluster, name, 400, compression_type="lz4")
    producer = transact(cluster, "compacting", ["kept", "both"], 12)
    for turn in range(3):
        cleaned(cluster, "kept")
        write(cluster, "kept", 100, compression_type=CODECS[turn])
        begin(producer, "both")
        (producer.abort_transaction if turn == 1 else producer.commit_transaction)(PATIENCE_S)
    until(lambda: is_stable(cluster, "both"), "the markers", PATIENCE_S)
    cluster.stop(clean=False)
    cluster.start()
    write(cluster, "both", 200)
    cluster.stop()


def cleaned(cluster: ReleaseCluster, name: str) -> None:
    """Wait until the cleaner has written its checkpoint once more."""
    checkpoint = cluster.data / "cleaner-offset-checkpoint"
    before = checkpoint.read_bytes() if checkpoint.exists() else b""
    until(lambda: checkpoint.exists() and name.encode() in checkpoint.read_bytes() != before, "the cleaner", PATIENCE_S)


def retention(cluster: ReleaseCluster) -> None:
    """By time, by size, by DeleteRecords, up to the end of a log."""
    cluster.start()
    topic(cluster, "timed", retention_ms="1000", file_delete_delay_ms="1000", **small(cluster.release))
    topic(cluster, "sized", retention_bytes="8000", file_delete_delay_ms="60000", **small(cluster.release))
    topic(cluster, "rolled", segment_ms="1000")
    topic(cluster, "cut")
    for name in ("timed", "sized", "rolled", "cut"):
        write(cluster, name, 300)
        transact(cluster, f"t-{name}", [name])
    consumer = read(cluster, "slow", "cut", 30)
    consumer.close()
    cuts = [TopicPartition("cut", 0, 77), TopicPartition("cut", 1, -1), TopicPartition("rolled", 0, 3)]
    admin = administrator(cluster)
    done(admin.delete_records(cuts))

    def gone() -> bool:
        write(cluster, "rolled", 10)
        return all(
            min(int(each.stem) for each in (cluster.data / f"{name}-0").glob("*.log")) > 0
            for name in ("timed", "sized")
        )

    until(gone, "retention", PATIENCE_S)
    cluster.stop(clean=False)
    cluster.start()
    write(cluster, "sized", 100)
    cluster.stop()


def groups(cluster: ReleaseCluster) -> None:
    """Of all types that the release has: static members, members that leave, offsets and groups that are deleted."""
    cluster.start()
    topic(cluster, "work", 4)
    write(cluster, "work", 120)
    left_ms = 60_000  # the first member of `classic`, which does not poll, holds up the second one for so long
    members = [
        read(cluster, "classic", "work", 30, max_poll_interval_ms=left_ms),
        read(cluster, "static", "work", 30, group_instance_id="one"),
    ]
    admin = administrator(cluster)
    if cluster.release not in {"2.8", "3.9"}:
        members += [read(cluster, "consumer", "work", 30, group_protocol="consumer")]
        altered(cluster, ResourceType.GROUP, "consumer", consumer_session_timeout_ms="50000")
        for _ in range(2):
            read(cluster, "deleted", "work", 10, group_protocol="consumer").close()
        if cluster.release == "4.1":
            with closing(Wire(cluster.bootstrap)) as wire:
                update = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("share.version", 1)])
                wire.call(ApiKey.UPDATE_FEATURES, 1, update)
    read(cluster, "deleted-too", "work", 10).close()
    wanted = ["deleted-too"] + (["deleted"] if len(members) > 2 else [])
    done(admin.delete_consumer_groups(wanted))
    if cluster.release in {"4.3", "4.4"}:
        group_traffic.make(cluster.bootstrap)
    other = read(cluster, "left", "work", 10)
    other.close()
    cluster.stop(clean=False)
    cluster.start()
    members += [read(cluster, "classic", "work", 1), read(cluster, "after", "work", 50)]
    for member in members:
        member.close()
    cluster.stop()


def directories(cluster: ReleaseCluster) -> None:
    """Partitions of a broker with three log directories move from one to another; it is killed while some do."""
    cluster.start()
    topic(cluster, "spread", 6, **small(cluster.release))
    topic(cluster, "large", 2)
    write(cluster, "spread", 200)
    write(cluster, "large", 2000, each=500)
    transact(cluster, "mover", ["spread", "large"])
    homes = sorted(cluster.data.iterdir())
    for target in (1, 2):
        moved(cluster, str(homes[target]), {"spread": [0, 1, 2]})
        write(cluster, "spread")
        until(lambda: not list(cluster.data.glob("*/*-future")), "the moves", PATIENCE_S)
    read(cluster, "readers", "spread", 60).close()
    moved(cluster, str(homes[0]), {"large": [0, 1]})
    moved(cluster, str(homes[1]), {"large": [0, 1]})
    cluster.stop(clean=False)
    cluster.start()
    transact(cluster, "mover", ["spread"], 2)
    cluster.stop()


def moved(cluster: ReleaseCluster, path: str, partitions: dict[str, list[int]]) -> None:
    """Have replicas moved to a log directory."""
    topics = [AlterReplicaLogDirTopic(name, numbers) for name, numbers in partitions.items()]
    with closing(Wire(cluster.bootstrap)) as wire:
        wire.call(ApiKey.ALTER_REPLICA_LOG_DIRS, 1, AlterReplicaLogDirsRequest([AlterReplicaLogDir(path, topics)]))


def administration(cluster: ReleaseCluster) -> None:
    """Topics go, come, grow and get other settings; permissions, credentials; a short metadata log."""
    cluster.start()
    admin = administrator(cluster)
    for turn in range(3):
        for name in ("again", f"once-{turn}"):
            topic(cluster, name, cleanup_policy="compact, delete", retention_ms=" 600000 ", preallocate="TRUE")
            write(cluster, name)
        read(cluster, "readers", "again", 20).close()  # before its segments end, and may be compacted
        altered(cluster, ResourceType.TOPIC, "again", max_message_bytes="2000000", segment_ms="+5000")
        done(admin.create_partitions([NewPartitions("again", 5)]))
        write(cluster, "again")
        altered(cluster, ResourceType.BROKER, "1", log_cleaner_threads=str(1 + turn % 2))
        done(admin.delete_topics(["again"]))
        if turn == 1:
            cluster.stop(clean=False)
            cluster.start()
    permitted(cluster, admin)
    for number in range(20):
        topic(cluster, f"more-{number}", 3)
        if number % 2:
            done(admin.delete_topics([f"more-{number}"]))
    topic(cluster, "again")
    write(cluster, "again", 120)
    cluster.stop()


def permitted(cluster: ReleaseCluster, admin: AdminClient) -> None:
    """Credentials, and permissions of which some are taken back."""
    if cluster.release != "2.8":
        credential = UserScramCredentialUpsertion("bob", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), b"s")
        done(admin.alter_user_scram_credentials([credential]))
    where, allowed = ResourcePatternType.LITERAL, (AclOperation.READ, AclPermissionType.ALLOW)
    rules = [AclBinding(ResourceType.TOPIC, name, where, f"User:{name}", "*", *allowed) for name in ("a", "b")]
    done(admin.create_acls(rules))
    which = AclBindingFilter(
        ResourceType.TOPIC, "a", ResourcePatternType.LITERAL, None, None,  # type: ignore[arg-type]  # of anyone
        AclOperation.ANY, AclPermissionType.ANY,
    )  # fmt: skip
    done(admin.delete_acls([which]))


def replicas(cluster: ReleaseCluster) -> None:
    """Three brokers, of which one after the other is killed under transactions, and replicas that are reassigned."""
    cluster.start()
    topic(cluster, "everywhere", **small(cluster.release))
    topic(
        cluster,
        "compacted",
        cleanup_policy="compact",
        min_cleanable_dirty_ratio="0.01",
        max_compaction_lag_ms="1",
        **small(cluster.release),
    )
    wanted = NewTopic("moves", replica_assignment=[[1, 2], [2, 1]], num_partitions=2)
    admin = administrator(cluster)
    done(admin.create_topics([wanted]))
    for node in (2, 3):
        write(cluster, "everywhere", 200)
        write(cluster, "compacted", 200)
        producer = transact(cluster, "writer", ["everywhere", "moves"])
        producer.begin_transaction()
        producer.produce("everywhere", b"open", b"k", 0)
        producer.flush(PATIENCE_S)
        cluster.stop(node, clean=node == 3)
        producer.produce("everywhere", b"open still", b"k", 1)
        producer.flush(PATIENCE_S)
        producer.commit_transaction(PATIENCE_S)
        write(cluster, "everywhere", 60, compression_type="zstd")
        cluster.start(node)
        reassigned(cluster, [[2, 3], [3, 2]] if node == 2 else [[3, 1], [1, 3]])
    with closing(Wire(f"127.0.0.1:{cluster.ports[0]}")) as wire:
        wire.call(ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(topic_partitions=None, timeout_ms=30_000))
    read(cluster, "readers", "everywhere", 100).close()
    transact(cluster, "writer", ["everywhere", "moves"])
    cluster.stop(2, 3, 1)


def reassigned(cluster: ReleaseCluster, plan: list[list[int]]) -> None:
    """Move the replicas of `moves`, and wait for the end of it."""
    moves = [ReassignablePartition(number, each) for number, each in enumerate(plan)]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("moves", moves)])
    controllers = [f"127.0.0.1:{port}" for port in cluster.ports]

    def over() -> bool:
        for address in controllers:  # before 3.3 only the controller answers
            with closing(Wire(address)) as wire:
                answer = wire.call(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, ListPartitionReassignmentsRequest())
                if not answer.error_code:
                    return not answer.topics
        return False

    for address in controllers:
        with closing(Wire(address)) as wire:
            wire.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, request)
    until(over, "the end of the move", PATIENCE_S)


def restarts(cluster: ReleaseCluster) -> None:
    """Killed and stopped in turn, while producers go on, are forgotten, and begin again; segments are preallocated."""
    cluster.start()
    topic(cluster, "kept", preallocate="true", segment_index_bytes="1000", **small(cluster.release, 20_000))
    topic(cluster, "flushed", flush_messages="3")
    lasting = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "linger.ms": 0})
    producer = transact(cluster, "lasting", ["kept"], 1)
    for turn in range(4):
        for number in range(40):
            lasting.produce("kept", b"%d" % number * 20, b"k%d" % number, number % 2)
            lasting.produce("flushed", b"%d" % number, None, number % 2)
        if turn % 2:
            assert lasting.flush(PATIENCE_S) == 0
        begin(producer, "flushed")
        cluster.stop(clean=turn == 2)
        cluster.start()
        try:
            (producer.abort_transaction if turn == 1 else producer.commit_transaction)(PATIENCE_S)
        except KafkaException:
            producer = transact(cluster, "lasting", ["kept"], 1)
        write(cluster, "kept", 20)
    assert lasting.flush(PATIENCE_S) == 0
    cluster.stop(clean=False)


def formats(cluster: ReleaseCluster, *versions: str) -> None:
    """A topic for each of these message formats, and one that goes through all of them, so that its log is mixed."""
    cluster.start()
    topic(cluster, "mixed", message_format_version=versions[0], **small(cluster.release))
    for version in versions:
        topic(cluster, f"f-{version}", message_format_version=version, **small(cluster.release))
        compacting = {"min_cleanable_dirty_ratio": "0.01", "max_compaction_lag_ms": "1"}
        topic(
            cluster,
            f"k-{version}",
            message_format_version=version,
            cleanup_policy="compact",
            **compacting,
            **small(cluster.release),
        )
        altered(cluster, ResourceType.TOPIC, "mixed", message_format_version=version)
        for codec in CODECS[:4]:  # zstd needs format 2
            for name in (f"f-{version}", f"k-{version}", "mixed"):
                old(cluster, name, codec)
    cleaned(cluster, f"k-{versions[0]}")
    read(cluster, "readers", "mixed", 60).close()
    cluster.stop(clean=False)
    cluster.start()
    old(cluster, "mixed", "none")
    cluster.stop()


def old(cluster: ReleaseCluster, name: str, codec: str) -> None:
    """Records without headers, which formats 0 and 1 do not have."""
    settings = {"enable_idempotence": False, "acks": "all", "compression_type": codec}
    write(cluster, name, 40, headed=False, each=8, **settings)


QUICK_RETENTION: Final = {"log.retention.check.interval.ms": "500", "log.initial.task.delay.ms": "500"}
SHORT_METADATA: Final = {
    "metadata.log.max.record.bytes.between.snapshots": "2000", "metadata.log.max.snapshot.interval.ms": "3000",
    "metadata.max.retention.bytes": "3000",
}  # fmt: skip
STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
LIVES: Final = {
    "codecs": Life(codecs),
    "transactions": Life(transactions, {"transactional.id.expiration.ms": "600000"}),
    "compaction": Life(compaction, QUICK_RETENTION),
    "retention": Life(retention, QUICK_RETENTION),
    "groups": Life(groups, {**group_traffic.SETTINGS, "offsets.topic.segment.bytes": "1048576"}),
    "directories": Life(directories, {"log.cleaner.backoff.ms": "500"}, log_dirs=3),
    "administration": Life(administration, SHORT_METADATA, has_permissions=True),
    "replicas": Life(replicas, {"replica.lag.time.max.ms": "5000"}, brokers=3),
    "restarts": Life(restarts, {"producer.id.expiration.ms": "86400000", "log.index.interval.bytes": "200"}),
}
"""Name -> the life; each of every release."""
FORMATS: Final = {
    "formats-of-old": Life(lambda cluster: formats(cluster, "0.9.0", "0.10.2", "2.8")),
    "formats-0-and-2": Life(lambda cluster: formats(cluster, "0.9.0", "0.11.0")),
    "formats-1-and-2": Life(lambda cluster: formats(cluster, "0.10.0", "0.11.0")),
}
"""Of the last release that writes message formats 0 and 1."""
RELEASES: Final = ("4.4", "4.3", "4.1", "3.9", "2.8")
ALL: Final = [(release, name) for release in RELEASES for name in LIVES] + [("2.8", name) for name in FORMATS]


def live(folder: Path, release: str, name: str) -> list[Path]:
    """Let brokers of a release have a life; return what their directories were at each stop of all of them."""
    life = (LIVES | FORMATS)[name]
    settings = dict(life.settings)
    if life.has_permissions:
        own = "kafka.security.authorizer.AclAuthorizer" if release == "2.8" else STANDARD
        settings |= {"authorizer.class.name": own, "super.users": "User:ANONYMOUS"}
    cluster = ReleaseCluster(folder, release, settings, brokers=life.brokers, log_dirs=life.log_dirs)
    try:
        life.lived(cluster)
    finally:
        cluster.close()
    return cluster.copies


if __name__ == "__main__":  # python -m tests.pipeline.sound_lives FOLDER RELEASE NAME
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True)
    live(folder, sys.argv[2], sys.argv[3])
