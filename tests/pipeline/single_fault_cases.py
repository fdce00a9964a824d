"""Faults of which a data directory can have but one: each in a directory of its own, that is in order else."""

import json
import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from protocol.log_records import metadata
from protocol.log_records import metadata_security as security
from protocol.log_records.quorum import Voter, leader_change_batch, snapshot, snapshot_values, voters_value
from protocol.records.batch import batches
from protocol.records.records import ControlType, Record, build_batch, control_key, read_records
from protocol.types import uuid_text
from storage.checkpoints import HIGH_WATERMARK, LOG_START, RECOVERY_POINT
from tests.pipeline.fault_files import T0_MS, Planting, topic_id_of

METADATA: Final = "__cluster_metadata-0"
LOG: Final = f"{METADATA}/{0:020d}.log"
BROKER: Final = metadata.RegisterBrokerRecord(
    1, broker_epoch=1, fenced=False, log_dirs=(UUID(int=109),), incarnation_id=UUID(int=4),
    features=(metadata.SupportedFeature("metadata.version", 7, 33), metadata.SupportedFeature("group.version", 0, 1)),
    end_points=(metadata.Endpoint("PLAINTEXT", "localhost", 9092),),
)  # fmt: skip
TOPIC_ID: Final = UUID(int=7700)
SEVEN: Final = (
    metadata.FeatureLevelRecord("metadata.version", 30), BROKER, metadata.TopicRecord("in-the-snapshot", TOPIC_ID),
    metadata.PartitionRecord(0, TOPIC_ID, (1,), (1,), leader=1, leader_epoch=0, partition_epoch=0),
    metadata.PartitionChangeRecord(0, TOPIC_ID, isr=(), leader=-1),
    metadata.ConfigRecord(2, "in-the-snapshot", "retention.ms", "5"),
    security.AccessControlEntryRecord(UUID(int=5), 2, "in", 3, "User:a", "*", 3, 3),
)  # fmt: skip
"""Records that the metadata log begins with."""


def encoded(record: Any) -> bytes:
    """A record's value."""
    value = metadata.encode(record)[1]
    assert value is not None
    return value


def directory(root: Path) -> Path:
    """In order: a topic of two partitions, brokers that stopped cleanly, metadata with a snapshot of seven records."""
    where = Planting(root)
    log = where.shelf("__cluster_metadata")
    for records in (SEVEN, (metadata.RemoveTopicRecord(TOPIC_ID),)):
        values = [encoded(each) for each in records]
        log.data(len(values), keys=[None] * len(values), values=values, at_ms=T0_MS)
    left = [
        *SEVEN[:3],
        metadata.PartitionRecord(0, TOPIC_ID, (1,), (), leader=-1, leader_epoch=1, partition_epoch=1),
        *SEVEN[5:],
    ]
    where.shelf("compacted", cleanup_policy="compact").data(3)
    for number in (0, 1):
        shelf = where.shelf("orders", number)
        for producer in (1, 2):
            shelf.data(3, producer=producer)
        shelf.roll()
        shelf.data(3, producer=2)
    where.close()
    _metadata_snapshot(root).write_bytes(_as_snapshot(left, VERSION, _voters(1)))
    (root / "bootstrap.checkpoint").write_bytes(snapshot([encoded(SEVEN[0])], 0))
    (root / METADATA / "quorum-state").write_text(json.dumps(QUORUM))
    return root


QUORUM: Final[dict[str, Any]] = {
    "clusterId": "", "leaderId": 1, "leaderEpoch": 1, "votedId": -1, "appliedOffset": 0,
    "currentVoters": [{"voterId": 1}], "data_version": 0,
}  # fmt: skip


VERSION: Final = (int(ControlType.KRAFT_VERSION), struct.pack(">hhB", 0, 1, 0))


def _voters(*ids: int) -> tuple[int, bytes]:
    return int(ControlType.KRAFT_VOTERS), voters_value([Voter(each, UUID(int=190 + each)) for each in ids])


def _as_snapshot(records: list[Any], *quorum: tuple[int, bytes]) -> bytes:
    values = [encoded(each) for each in records]
    return snapshot(values, T0_MS + 7, last_contained_ms=T0_MS + 6, epoch=0, quorum=quorum)


def _metadata_snapshot(root: Path, end: int = 7, epoch: int = 0) -> Path:
    return root / METADATA / f"{end:020d}-{epoch:010d}.checkpoint"


Fault = Callable[[Path], object]


def _text(path: str, old: str, new: str) -> Fault:
    def plant(root: Path) -> None:
        content = (root / path).read_text()
        assert old in content
        (root / path).write_text(content.replace(old, new))

    return plant


def _snapshot_of(change: Callable[[list[Any]], list[Any]], *quorum: tuple[int, bytes]) -> Fault:
    def plant(root: Path) -> None:
        path = _metadata_snapshot(root)
        records = [metadata.decode(None, each) for each in snapshot_values(path.read_bytes())]
        path.write_bytes(_as_snapshot(change(records), *quorum))

    return plant


def _without(kind: type) -> Fault:
    return _snapshot_of(lambda records: [each for each in records if not isinstance(each, kind)])


def _at_the_end(make: Callable[[int], bytes | bytearray]) -> Fault:
    """Bytes behind the metadata log, made for its end offset."""

    def plant(root: Path) -> None:
        raw = (root / LOG).read_bytes()
        (root / LOG).write_bytes(raw + make(list(batches(raw))[-1].next_offset))

    return plant


def _appended(*values: bytes, epoch: int = 0) -> Fault:
    """Records behind all others of the metadata, in a batch of this leader epoch."""
    return _at_the_end(lambda base: build_batch(
        [Record(base + at, T0_MS + 10**6, None, value) for at, value in enumerate(values)], partition_leader_epoch=epoch
    ))  # fmt: skip


def behind(*added: Any) -> Fault:
    """Records behind all others of the metadata."""
    return _appended(*map(encoded, added))


_CONTROLLER: Final = metadata.RegisterControllerRecord(1, incarnation_id=UUID(int=77), end_points=BROKER.end_points)


def _without_tail(root: Path) -> None:
    path = _metadata_snapshot(root)
    path.write_bytes(
        b"".join(bytes(each.buffer[each.position : each.end]) for each in batches(path.read_bytes()))[:-20]
    )


_epoch_without_a_leader: Final = _appended(encoded(metadata.NoOpRecord()), epoch=1)


def _epoch_that_quorum_state_forgot(root: Path) -> None:
    _epoch_without_a_leader(root)
    _text(f"{METADATA}/quorum-state", '"leaderEpoch": 1', '"leaderEpoch": 0')(root)


def _without_a_record(root: Path) -> None:
    """The header of the first batch counts one less, and has the range of offsets of before."""
    path = root / LOG
    first, *others = batches(path.read_bytes())
    *known, last = read_records(first)
    rest = b"".join(bytes(each.buffer[each.position : each.end]) for each in others)
    path.write_bytes(build_batch(known, last_offset=last.offset, partition_leader_epoch=0) + rest)


def _leader_change_of_a_topic(root: Path) -> None:
    path = root / "orders-0" / f"{6:020d}.log"
    path.write_bytes(path.read_bytes() + leader_change_batch(1, 0, T0_MS + 10**6, base_offset=9))


def _control(kind: int, value: bytes) -> Fault:
    """One control record behind the metadata log."""
    return _at_the_end(lambda base: build_batch(
        [Record(base, T0_MS + 10**6, control_key(ControlType(kind)), value)], partition_leader_epoch=0, control=True,
    ))  # fmt: skip


def quorum_of(*voters: int) -> Fault:
    """What a leader, the first voter, writes in the beginning of its epoch (KIP-853), behind the metadata log."""
    changes: list[Fault] = [
        _at_the_end(lambda base: leader_change_batch(voters[0], 0, T0_MS + 10**6, base_offset=base, voters=voters)),
        _control(*VERSION),
        _control(*_voters(*voters)),
    ]
    return lambda root: [each(root) for each in changes]


def _folder(name: str) -> Fault:
    return lambda root: (root / name).mkdir()


def _empty_file(name: str) -> Fault:
    return lambda root: (root / name).write_bytes(b"")


def _renamed(old: str, new: str) -> Fault:
    return lambda root: (root / old).rename(root / new)


def _later_version(root: Path) -> None:
    """A record of a known kind, in a version that this metadata.version does not have."""
    value = encoded(metadata.ConfigRecord(2, "orders", "retention.ms", "5"))
    _appended(value[:2] + b"\x09" + value[3:])(root)


def _change(**fields: Any) -> Fault:
    return behind(metadata.PartitionChangeRecord(0, topic_id_of("orders"), **fields))


_SCRAM: Final = security.UserScramCredentialRecord("bob", 1, b"s", b"x" * 32, b"y" * 32, 4096)
_ACL: Final = security.AccessControlEntryRecord(UUID(int=6), 2, "in", 3, "User:a", "*", 3, 3)
_QUOTA: Final = security.ClientQuotaRecord((security.QuotaEntity("planet", "a"),), "producer_byte_rate", 4.0)


def _quota(entity: str, key: str) -> security.ClientQuotaRecord:
    return security.ClientQuotaRecord((security.QuotaEntity(entity, "a"),), key, 4.0)


_BEGIN, _END = metadata.BeginTransactionRecord("x"), metadata.EndTransactionRecord()
_TIMES: Final = f"orders-0/{0:020d}.timeindex"
_MISSING = f"orders-0/{0:020d}.index"
_NAMED = f"orders-0/{3:020d}.timeindex"

FAULTS: Final[dict[str, tuple[str, Fault]]] = {
    "index-missing": ("segment-files", lambda root: (root / _MISSING).unlink()),
    "index-left": ("segment-files", lambda root: (root / _NAMED).write_bytes(bytes(12))),
    "index-not-trimmed": ("segment-files", lambda root: (root / f"orders-0/{6:020d}.index").write_bytes(bytes(16))),
    "topic-unknown": ("partition-stray", _renamed("orders-1", "elsewhere-1")),
    "partition-unknown": ("partition-stray", _renamed("orders-1", "orders-7")),
    "node-of-others": ("partition-stray", _text("meta.properties", "node.id=1", "node.id=5")),
    "watermarks-gone": ("checkpoint-partition", lambda root: (root / HIGH_WATERMARK).unlink()),
    "recovery-point-gone": ("checkpoint-partition", lambda root: (root / RECOVERY_POINT).unlink()),
    "log-starts-gone": ("checkpoint-partition", lambda root: (root / LOG_START).unlink()),
    "producers-gone": ("producer-snapshot", lambda root: (root / f"orders-0/{9:020d}.snapshot").unlink()),
    "watermark-of-nothing": ("checkpoint-partition", _text(HIGH_WATERMARK, "orders 1", "elsewhere 1")),
    "watermark-in-a-batch": ("checkpoint-offset", _text(HIGH_WATERMARK, "orders 1 9", "orders 1 8")),
    "beginning-of-a-compacted-log": (
        "compacted-start", _text("log-start-offset-checkpoint", "0\n0\n", "0\n1\ncompacted 0 2\n")),
    "directory-id-garbled": ("meta-properties", _text("meta.properties", uuid_text(UUID(int=109)), "xx")),
    "directory-id-reserved": (
        "meta-properties", _text("meta.properties", uuid_text(UUID(int=109)), uuid_text(UUID(int=99)))),
    "directory-id-not-registered": (
        "meta-properties", _text("meta.properties", uuid_text(UUID(int=109)), uuid_text(UUID(int=99_999)))),
    "node-id-of-no-broker": ("meta-properties", _text("meta.properties", "node.id=1", "node.id=7")),
    "node-id-named-as-in-version-0": ("meta-properties", _text("meta.properties", "node.id", "broker.id")),
    **{f"name-{name}": ("file-unreadable", _folder(name)) for name in ("backup", "orders-x", "-0", "orders-delete")},
    **{f"name-{name}": ("file-unreadable", _empty_file(f"orders-0/{name}"))
       for name in ("copy.log", "old.snapshot", f"{2**63:020d}.timeindex", "copy.log.swap")},
    "meta-properties-gone": ("meta-properties", lambda root: (root / "meta.properties").unlink()),
    "names-that-collide": ("topic-collision", lambda root: [
        shutil.copytree(root / "orders-0", root / f"or{sign}ders-0") for sign in "._"]),
    "partition-metadata-gone": ("topic-id", lambda root: (root / "orders-0/partition.metadata").unlink()),
    "partition-metadata-without-version": (
        "file-unreadable", _text("orders-0/partition.metadata", "version: 0\n", "")),
    "quorum-state-in-part": (
        "file-unreadable", _text(f"{METADATA}/quorum-state", '"appliedOffset": 0, ', "")),
    "time-index-negative": ("index-time", lambda root: (root / _TIMES).write_bytes(
        struct.pack(">qi", -7, 0) + (root / _TIMES).read_bytes())),
    "partition-again-as-it-began": ("metadata-record", behind(
        metadata.PartitionChangeRecord(0, topic_id_of("orders"), isr=(1,)),
        metadata.PartitionRecord(0, topic_id_of("orders"), (1,), (1,), leader=1, leader_epoch=0, partition_epoch=0))),
    "producer-ids-again": ("metadata-record", behind(metadata.ProducerIdsRecord(1, 1, 3000))),
    "version-of-a-metadata-record": ("metadata-record", _later_version),
    "partition-metadata-of-a-version": (
        "file-unreadable", _text("orders-0/partition.metadata", "version: 0", "version: 4")),
    "bootstrap-empty": ("file-unreadable", lambda root: (root / "bootstrap.checkpoint").write_bytes(b"")),
    "bootstrap-without-version": (
        "file-unreadable", lambda root: (root / "bootstrap.checkpoint").write_bytes(snapshot([], 0))),
    "snapshot-without-footer": ("file-unreadable", _without_tail),
    "record-of-the-metadata-lost": ("records-missing", _without_a_record),
    "control-record-of-the-quorum": ("marker-malformed", _leader_change_of_a_topic),
    "snapshot-without-topic": ("metadata-snapshot", _without(metadata.TopicRecord)),
    "snapshot-without-setting": ("metadata-snapshot", _without(metadata.ConfigRecord)),
    "snapshot-without-acl": ("metadata-snapshot", _without(security.AccessControlEntryRecord)),
    "snapshot-without-broker": ("metadata-snapshot", _without(metadata.RegisterBrokerRecord)),
    "snapshot-with-a-change": ("metadata-snapshot", _snapshot_of(lambda records: [*records, SEVEN[4]])),
    "snapshot-with-a-topic-twice": ("metadata-snapshot", _snapshot_of(lambda records: [*records, SEVEN[2]])),
    "snapshot-of-the-future": (
        "metadata-snapshot", lambda root: _metadata_snapshot(root).rename(_metadata_snapshot(root, 900))),
    "snapshot-of-another-epoch": (
        "metadata-snapshot", lambda root: _metadata_snapshot(root).rename(_metadata_snapshot(root, 7, 3))),
    "snapshot-far-before-the-log": ("metadata-snapshot", _renamed(LOG, f"{METADATA}/{8:020d}.log")),
    "quorum-epoch": ("quorum-state", _epoch_that_quorum_state_forgot),
    "quorum-leader": ("quorum-state", _text(f"{METADATA}/quorum-state", '"voterId": 1', '"voterId": 4')),
    "quorum-version": ("quorum-state", _text(f"{METADATA}/quorum-state", '"data_version": 0', '"data_version": 9')),
    "quorum-cluster": ("quorum-state", _text(f"{METADATA}/quorum-state", '"clusterId": ""', '"clusterId": "other"')),
    "epoch-without-its-leader": ("metadata-record", _epoch_without_a_leader),
    # that this metadata.version does not have
    "type-of-a-metadata-record": ("metadata-record", _appended(b"\1\x7d\0")),
    "leader-never-registered": ("metadata-record", _change(replicas=(7,), isr=(7,), leader=7)),
    "leader-unregistered": ("metadata-record", behind(metadata.UnregisterBrokerRecord(1, 1))),
    "quorum-level-back": ("metadata-record", behind(
        *(metadata.FeatureLevelRecord("kraft.version", level) for level in (1, 0)))),
    "metadata-level-back": ("metadata-record", behind(metadata.FeatureLevelRecord("metadata.version", 29))),
    "metadata-level-back-to-a-release-before": ("metadata-record", behind(
        *(metadata.FeatureLevelRecord("metadata.version", level) for level in (33, 31)))),
    "setting-misspelled": ("setting-unknown", behind(metadata.ConfigRecord(2, "orders", "retention.sm", "5"))),
    "group-setting-misspelled": (
        "setting-unknown", behind(metadata.ConfigRecord(32, "g", "consumer.session.timeout", "5"))),
    "watermark-of-zero": ("checkpoint-offset", _text(HIGH_WATERMARK, "orders 1 9", "orders 1 0")),
    "leader-outside": ("metadata-record", _change(leader=4)),
    "replica-twice": ("metadata-record", _change(replicas=(1, 1))),
    "recovery-state": ("metadata-record", _change(leader_recovery_state=7)),
    "adding": ("metadata-record", _change(adding_replicas=(7,))),
    "eligible-in-isr": ("metadata-record", _change(eligible_leader_replicas=(1,))),
    "directories": ("metadata-record", _change(directories=(UUID(int=1), UUID(int=2)))),
    "registration-of-nothing": ("metadata-record", behind(metadata.UnregisterBrokerRecord(6, 3))),
    "registration-epoch": (
        "metadata-record", behind(metadata.BrokerRegistrationChangeRecord(1, 3, fenced=1))),
    "registration-of-another-state": (
        "metadata-record", behind(metadata.BrokerRegistrationChangeRecord(1, 1, fenced=-7))),
    "registration-back": (
        "metadata-record", behind(metadata.RegisterBrokerRecord(1, log_dirs=(UUID(int=109),)))),
    "registration-of-a-later-epoch": ("metadata-record", behind(replace(BROKER, broker_epoch=9_000))),
    "registration-while-it-stops": ("metadata-record", behind(
        replace(BROKER, incarnation_id=UUID(int=6), in_controlled_shutdown=True))),
    "registration-without-directory": ("metadata-record", behind(replace(BROKER, log_dirs=()))),
    "registration-of-a-reserved-directory": ("metadata-record", behind(replace(BROKER, log_dirs=(UUID(int=99),)))),
    "directory-that-was-not-registered": ("metadata-record", behind(
        metadata.BrokerRegistrationChangeRecord(1, 1, log_dirs=(UUID(int=190),)))),
    "snapshot-with-another-directory": ("metadata-snapshot", _snapshot_of(lambda records: [
        replace(each, log_dirs=(UUID(int=190),)) if each == BROKER else each for each in records])),
    "registration-without-endpoint": ("metadata-record", behind(replace(BROKER, end_points=()))),
    "registration-endpoint-twice": (
        "metadata-record", behind(replace(BROKER, end_points=BROKER.end_points * 2))),
    "registration-feature-range": ("metadata-record", behind(metadata.RegisterControllerRecord(
        1, end_points=BROKER.end_points, features=(metadata.SupportedFeature("kraft.version", 3, 1),)))),
    "snapshot-with-another-endpoint": ("metadata-snapshot", _snapshot_of(lambda records: [
        replace(each, end_points=(metadata.Endpoint("PLAINTEXT", "elsewhere", 9092),)) if each == BROKER else each
        for each in records])),
    "snapshot-with-a-controller": ("metadata-snapshot", _snapshot_of(lambda records: [*records, _CONTROLLER])),
    "snapshot-with-another-recovery": ("metadata-snapshot", _snapshot_of(lambda records: [
        replace(each, leader_recovery_state=1) if isinstance(each, metadata.PartitionRecord) else each
        for each in records])),
    "leader-fenced": ("metadata-record", behind(metadata.FenceBrokerRecord(1, 1))),
    "feature-level": ("metadata-record", behind(metadata.FeatureLevelRecord("group.version", 9))),
    "credential-iterations": ("metadata-record", behind(security.UserScramCredentialRecord(
        "bob", 1, b"s", b"x" * 32, b"y" * 32, 1))),
    "credential-key": ("metadata-record", behind(security.UserScramCredentialRecord("b", 2, b"s", b"x", b"y", 4096))),
    "credential-gone-already": (
        "metadata-record", behind(_SCRAM, *[security.RemoveUserScramCredentialRecord("bob", 1)] * 2)),
    "log-directory-of-another-broker": ("metadata-record", behind(replace(BROKER, broker_id=2, broker_epoch=9))),
    "log-directory-twice": ("metadata-record", behind(replace(BROKER, broker_epoch=9, log_dirs=(UUID(int=190),) * 2))),
    "bytes-behind-a-metadata-record": ("coordinator-record", _appended(encoded(metadata.NoOpRecord()) + b"x")),
    "leader-who-is-no-voter": ("metadata-record", _at_the_end(lambda base: leader_change_batch(
        1, 0, T0_MS + 10**6, base_offset=base, voters=(2, 3), granting=(2,)))),
    "leader-change-cut": ("metadata-record", _control(ControlType.LEADER_CHANGE, b"\0")),
    "voters-without-one": ("metadata-record", _control(*_voters())),
    "voters-without-a-version": ("metadata-record", _control(*_voters(1))),
    "snapshot-of-voters-without-a-version": ("metadata-snapshot", _snapshot_of(list, _voters(1))),
    "header-of-a-snapshot-in-the-log": ("metadata-record", _control(ControlType.SNAPSHOT_HEADER, bytes(11))),
    "acl-twice": ("metadata-record", behind(_ACL, _ACL)),
    "acl-of-nothing": ("metadata-record", behind(security.RemoveAccessControlEntryRecord(UUID(int=66)))),
    "token-of-nothing": ("metadata-record", behind(security.RemoveDelegationTokenRecord("zz"))),
    "quota-of-nothing": ("metadata-record", behind(_QUOTA)),
    "quota-of-an-unknown-kind": ("metadata-record", behind(_quota("user", "consumer_bite_rate"))),
    "quota-of-users-for-an-address": ("metadata-record", behind(_quota("ip", "consumer_byte_rate"))),
    "transaction-twice": ("metadata-record", behind(_BEGIN, _BEGIN, _END)),
    "transaction-end": ("metadata-record", behind(_END)),
    "eligible-of-nothing": ("metadata-record", behind(metadata.ClearElrRecord("nowhere"))),
}  # fmt: skip
"""Name -> the check that finds it, and what plants it."""
