"""Records of ``__cluster_metadata``, the KRaft controller's log, in Kafka's own layouts (4.3).

A value is: frame version (uvarint, 1), api key (uvarint), record version (uvarint), body; there is no key. All versions
of Kafka's schemas since 3.3 are read. What is written follows the finalized ``metadata.version``, as Kafka's
``MetadataVersion`` has it. Records of security (ACLs, quotas, SCRAM, tokens) are in ``metadata_security``.
"""

import struct
from typing import Any
from uuid import UUID

from protocol.deferred import dataclass
from protocol.log_records import metadata_security as security
from protocol.log_records.flexible import shape_of, wire
from protocol.records.errors import MalformedRecordsError
from protocol.types import ZERO_UUID
from protocol.uvarint import read_uvarint, uvarint

FRAME_VERSION = 1
LATEST_METADATA_VERSION = 33
"""Feature level of 4.4-IV2; its records are those of 4.3-IV0 (30), and UnregisterControllerRecord."""
CHANGED_METADATA = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33})
"""Levels of metadata.version with new records or fields (didMetadataChange): no downgrade crosses them."""
NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE = -1

BROKER_FENCED, BROKER_UNFENCED = 1, -1
"""Values of BrokerRegistrationChangeRecord's ``fenced``; 0 is no change."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listener in a registration. ``security_protocol``: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""

    name: str = wire("string", "")
    host: str = wire("string", "")
    port: int = wire("uint16", 0)
    security_protocol: int = wire("int16", 0)


@dataclass(frozen=True, slots=True)
class SupportedFeature:
    """A range of levels that a node supports."""

    name: str = wire("string", "")
    min_supported_version: int = wire("int16", 0)
    max_supported_version: int = wire("int16", 0)


@dataclass(frozen=True, slots=True)
class RegisterBrokerRecord:
    """Registration of a broker, which stays fenced until a change record unfences it."""

    broker_id: int = wire("int32", 0)
    is_migrating_zk_broker: bool = wire("bool", False, since=2)
    incarnation_id: UUID = wire("uuid", ZERO_UUID)
    broker_epoch: int = wire("int64", 0)
    end_points: tuple[Endpoint, ...] = wire(Endpoint, (), array=True)
    features: tuple[SupportedFeature, ...] = wire(SupportedFeature, (), array=True)
    rack: str | None = wire("string", None)
    fenced: bool = wire("bool", True)
    in_controlled_shutdown: bool = wire("bool", False, since=1)
    log_dirs: tuple[UUID, ...] = wire("uuid", (), since=3, tag=0, array=True)
    cordoned_log_dirs: tuple[UUID, ...] | None = wire("uuid", None, since=4, tag=1, array=True)


@dataclass(frozen=True, slots=True)
class UnregisterBrokerRecord:
    """Removal of a broker's registration."""

    broker_id: int = wire("int32", 0)
    broker_epoch: int = wire("int64", 0)


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """Creation of a topic."""

    name: str = wire("string", "")
    topic_id: UUID = wire("uuid", ZERO_UUID)


@dataclass(frozen=True, slots=True)
class PartitionRecord:
    """Complete state of a partition."""

    partition_id: int = wire("int32", -1)
    topic_id: UUID = wire("uuid", ZERO_UUID)
    replicas: tuple[int, ...] = wire("int32", (), array=True)
    isr: tuple[int, ...] = wire("int32", (), array=True)
    removing_replicas: tuple[int, ...] = wire("int32", (), array=True)
    adding_replicas: tuple[int, ...] = wire("int32", (), array=True)
    leader: int = wire("int32", -1)
    leader_recovery_state: int = wire("int8", 0, tag=0)
    leader_epoch: int = wire("int32", -1)
    partition_epoch: int = wire("int32", -1)
    directories: tuple[UUID, ...] = wire("uuid", (), since=1, array=True)
    eligible_leader_replicas: tuple[int, ...] | None = wire("int32", None, since=2, tag=1, array=True)
    last_known_elr: tuple[int, ...] | None = wire("int32", None, since=2, tag=2, array=True)


@dataclass(frozen=True, slots=True)
class ConfigRecord:
    """One dynamic config of a resource (codes of core C.1); a null value removes it."""

    resource_type: int = wire("int8", 0)
    resource_name: str = wire("string", "")
    name: str = wire("string", "")
    value: str | None = wire("string", None)


@dataclass(frozen=True, slots=True)
class PartitionChangeRecord:
    """Change of a partition; ``None``, -2 (leader) and -1 (recovery state) mean no change.

    A record that names a leader, even the current one, bumps the leader epoch.
    """

    partition_id: int = wire("int32", -1)
    topic_id: UUID = wire("uuid", ZERO_UUID)
    isr: tuple[int, ...] | None = wire("int32", None, tag=0, array=True)
    leader: int = wire("int32", NO_LEADER_CHANGE, tag=1)
    replicas: tuple[int, ...] | None = wire("int32", None, tag=2, array=True)
    removing_replicas: tuple[int, ...] | None = wire("int32", None, tag=3, array=True)
    adding_replicas: tuple[int, ...] | None = wire("int32", None, tag=4, array=True)
    leader_recovery_state: int = wire("int8", NO_RECOVERY_CHANGE, tag=5)
    directories: tuple[UUID, ...] | None = wire("uuid", None, since=1, tag=8, array=True)
    eligible_leader_replicas: tuple[int, ...] | None = wire("int32", None, since=2, tag=6, array=True)
    last_known_elr: tuple[int, ...] | None = wire("int32", None, since=2, tag=7, array=True)


@dataclass(frozen=True, slots=True)
class FenceBrokerRecord:
    """Fencing of a broker (before 3.3)."""

    id: int = wire("int32", 0)
    epoch: int = wire("int64", 0)


@dataclass(frozen=True, slots=True)
class UnfenceBrokerRecord:
    """Unfencing of a broker (before 3.3)."""

    id: int = wire("int32", 0)
    epoch: int = wire("int64", 0)


@dataclass(frozen=True, slots=True)
class RemoveTopicRecord:
    """Removal of a topic, with its partitions and its configs."""

    topic_id: UUID = wire("uuid", ZERO_UUID)


@dataclass(frozen=True, slots=True)
class FeatureLevelRecord:
    """Finalized level of a feature; 0 removes it."""

    name: str = wire("string", "")
    feature_level: int = wire("int16", 0)


@dataclass(frozen=True, slots=True)
class ProducerIdsRecord:
    """Allocation of a block of producer ids; ``next_producer_id`` is the first one after it."""

    broker_id: int = wire("int32", 0)
    broker_epoch: int = wire("int64", -1)
    next_producer_id: int = wire("int64", 0)


@dataclass(frozen=True, slots=True)
class BrokerRegistrationChangeRecord:
    """Change of a broker registration. ``fenced``: 1 fenced, -1 unfenced, 0 no change."""

    broker_id: int = wire("int32", 0)
    broker_epoch: int = wire("int64", 0)
    fenced: int = wire("int8", 0, tag=0)
    in_controlled_shutdown: int = wire("int8", 0, since=1, tag=1)
    log_dirs: tuple[UUID, ...] = wire("uuid", (), since=2, tag=2, array=True)
    cordoned_log_dirs: tuple[UUID, ...] | None = wire("uuid", None, since=3, tag=3, array=True)


@dataclass(frozen=True, slots=True)
class NoOpRecord:
    """Heartbeat of the active controller."""


@dataclass(frozen=True, slots=True)
class ZkMigrationStateRecord:
    """State of a migration from ZooKeeper."""

    zk_migration_state: int = wire("int8", 0)


@dataclass(frozen=True, slots=True)
class BeginTransactionRecord:
    """Start of a metadata transaction: its records apply together or not at all."""

    name: str | None = wire("string", None, tag=0)


@dataclass(frozen=True, slots=True)
class EndTransactionRecord:
    """Commit of a metadata transaction."""


@dataclass(frozen=True, slots=True)
class AbortTransactionRecord:
    """Abort of a metadata transaction."""

    reason: str | None = wire("string", None, tag=0)


@dataclass(frozen=True, slots=True)
class RegisterControllerRecord:
    """Registration of a controller."""

    controller_id: int = wire("int32", 0)
    incarnation_id: UUID = wire("uuid", ZERO_UUID)
    zk_migration_ready: bool = wire("bool", False)
    end_points: tuple[Endpoint, ...] = wire(Endpoint, (), array=True)
    features: tuple[SupportedFeature, ...] = wire(SupportedFeature, (), array=True)


@dataclass(frozen=True, slots=True)
class UnregisterControllerRecord:
    """Removal of a controller's registration (4.4)."""

    controller_id: int = wire("int32", 0)


@dataclass(frozen=True, slots=True)
class ClearElrRecord:
    """Removal of the eligible leader replicas of a topic; "" means all topics."""

    topic_name: str = wire("string", "")


KINDS: dict[int, tuple[Any, int]] = {
    0: (RegisterBrokerRecord, 4),
    1: (UnregisterBrokerRecord, 0),
    2: (TopicRecord, 0),
    3: (PartitionRecord, 2),
    4: (ConfigRecord, 0),
    5: (PartitionChangeRecord, 2),
    7: (FenceBrokerRecord, 0),
    8: (UnfenceBrokerRecord, 0),
    9: (RemoveTopicRecord, 0),
    10: (security.DelegationTokenRecord, 0),
    11: (security.UserScramCredentialRecord, 0),
    12: (FeatureLevelRecord, 0),
    14: (security.ClientQuotaRecord, 0),
    15: (ProducerIdsRecord, 0),
    17: (BrokerRegistrationChangeRecord, 3),
    18: (security.AccessControlEntryRecord, 0),
    19: (security.RemoveAccessControlEntryRecord, 0),
    20: (NoOpRecord, 0),
    21: (ZkMigrationStateRecord, 0),
    22: (security.RemoveUserScramCredentialRecord, 0),
    23: (BeginTransactionRecord, 0),
    24: (EndTransactionRecord, 0),
    25: (AbortTransactionRecord, 0),
    26: (security.RemoveDelegationTokenRecord, 0),
    27: (RegisterControllerRecord, 0),
    28: (ClearElrRecord, 0),
    29: (UnregisterControllerRecord, 0),
}
"""Api key -> record class and its highest version (``MetadataRecordType``)."""

_KEYS = {cls: key for key, (cls, _) in KINDS.items()}

# MetadataVersion: the highest metadata.version that still writes this record version.
_BROKER_VERSIONS = ((7, 1), (16, 2), (29, 3))
_PARTITION_VERSIONS = ((16, 0), (22, 1))


def record_version(record: Any, metadata_version: int = LATEST_METADATA_VERSION) -> int:
    """Return the schema version in which a controller at that ``metadata.version`` writes the record."""
    if isinstance(record, RegisterBrokerRecord):
        # 4: the newest.
        return next((version for last, version in _BROKER_VERSIONS if metadata_version <= last), 4)
    if isinstance(record, PartitionRecord | PartitionChangeRecord):
        return next((version for last, version in _PARTITION_VERSIONS if metadata_version <= last), 2)
    if isinstance(record, BrokerRegistrationChangeRecord):
        # Written in the lowest version that has all fields in use (seen on 4.3.1).
        if record.cordoned_log_dirs is not None and metadata_version > 29:
            return 3
        return 2 if record.log_dirs else 1 if record.in_controlled_shutdown else 0
    return 0


class MetadataCodec:
    """Encodes and decodes records as a controller at one ``metadata.version`` does."""

    def __init__(self, metadata_version: int = LATEST_METADATA_VERSION) -> None:
        self.metadata_version = metadata_version

    def encode(self, record: Any) -> tuple[bytes | None, bytes | None]:
        """Return the key, which is null, and the value."""
        cls: Any = type(record)
        version = record_version(record, self.metadata_version)
        out = [uvarint(FRAME_VERSION), uvarint(_KEYS[cls]), uvarint(version)]
        shape_of(cls, version).write(out, record)
        return None, b"".join(out)

    def decode(self, key: bytes | None, value: bytes | None) -> Any | None:  # noqa: ARG002 - the shape of every codec
        """Decode a record; ``None`` for a kind of a later Kafka.

        Raises:
            MalformedRecordsError: the bytes are not a metadata record.
        """
        if value is None:
            raise MalformedRecordsError("a metadata record without a value")
        try:
            frame, at = read_uvarint(value, 0)
            kind, at = read_uvarint(value, at)
            version, at = read_uvarint(value, at)
            if frame != FRAME_VERSION:
                raise MalformedRecordsError(f"metadata frame version {frame}")
            if kind not in KINDS:
                return None
            cls, highest = KINDS[kind]
            # A later version may only add tags, which are skipped.
            record, end = shape_of(cls, min(version, highest)).read(value, at)
        except (IndexError, struct.error, UnicodeDecodeError, ValueError) as error:
            raise MalformedRecordsError(f"metadata record: {error}") from error
        if version <= highest and end < len(value):  # AbstractApiMessageSerde.read fails
            raise MalformedRecordsError(f"metadata record: {len(value) - end} bytes behind it")
        return record


_LATEST = MetadataCodec()
encode = _LATEST.encode
decode = _LATEST.decode
