"""What a controller writes into ``__cluster_metadata``: the same admin requests, on real brokers and on ours.

    python -m tests.swap.metadata_records RELEASE JARS

plays `STEPS` on a broker of the jars in that folder, and writes down the batches of records that each step appends
(`metadata_records.json`): types, versions and fields. Ids, times and addresses are left out.
"""

import json
import os
import struct
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any
from uuid import UUID

from protocol.apis import ApiKey
from protocol.log_records.metadata import decode
from protocol.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from protocol.messages.alter_configs import AlterableConfig as OldConfig
from protocol.messages.alter_configs import AlterConfigsRequest
from protocol.messages.alter_configs import AlterConfigsResource as OldResource
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from protocol.messages.create_acls import AclCreation, CreateAclsRequest
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.elect_leaders import ElectLeadersRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.unregister_broker import UnregisterBrokerRequest
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from protocol.records.batch import RecordBatch, batches
from protocol.records.records import read_records
from protocol.uvarint import read_uvarint
from tests.differential.cluster import KafkaCluster
from tests.wire import Wire

RECORDED = Path(__file__).with_suffix(".json")
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "offsets.topic.num.partitions": "2",
}
TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
UP, SAFE, UNSAFE = 1, 2, 3
Play = Callable[[Wire], Any]
Step = list[list[str]]
"""The batches that a step appends; a record is its type, its version and its fields."""
_ALONE = {"NoOpRecord"}
_OWN = {"broker_epoch", "host", "port", "incarnation_id", "timestamp", "stored_key", "server_key", "log_dirs"}


def created(*topics: CreatableTopic) -> Play:
    """CreateTopics."""
    return lambda wire: wire.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics, 30_000))


def altered(kind: int, name: str, *changes: tuple[str, int, str | None]) -> Play:
    """IncrementalAlterConfigs: key, operation (0 set, 1 delete, 2 append, 3 subtract), value."""
    resource = AlterConfigsResource(kind, name, [AlterableConfig(*change) for change in changes])
    return lambda wire: wire.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest([resource]))


def moved(*updates: tuple[str, int, int]) -> Play:
    """UpdateFeatures."""
    keys = [FeatureUpdateKey(name, level, upgrade_type=kind) for name, level, kind in updates]
    return lambda wire: wire.call(ApiKey.UPDATE_FEATURES, 2, UpdateFeaturesRequest(30_000, keys))


def limited(entity: Mapping[str, str | None], *ops: OpData) -> Play:
    """AlterClientQuotas."""
    entry = EntryData([EntityData(kind, name) for kind, name in entity.items()], list(ops))
    return lambda wire: wire.call(ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest([entry]))


def granted(*acls: AclCreation) -> Play:
    """CreateAcls."""
    return lambda wire: wire.call(ApiKey.CREATE_ACLS, 3, CreateAclsRequest(acls))


def reassigned(*moves: tuple[str, int, list[int] | None]) -> Play:
    """AlterPartitionReassignments."""
    topics = [ReassignableTopic(name, [ReassignablePartition(index, to)]) for name, index, to in moves]
    return lambda wire: wire.call(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, AlterPartitionReassignmentsRequest(30_000, topics)
    )


def asked(key: ApiKey, version: int, request: Any) -> Play:
    """Any request."""
    return lambda wire: wire.call(key, version, request)


MANY = (
    "segment.bytes",
    "retention.ms",
    "max.message.bytes",
    "flush.messages",
    "segment.ms",
    "retention.bytes",
    "flush.ms",
)
READ, ALLOW, LITERAL, PREFIXED, ANY = 3, 3, 3, 4, 1
STEPS: Mapping[str, Play] = {
    "a topic": created(CreatableTopic("a", 2, 1)),
    "a topic with settings": created(
        CreatableTopic("b", 1, 1, (), [CreatableTopicConfig("cleanup.policy", "compact"),
                                       CreatableTopicConfig("retention.ms", "5")])),
    "a topic that is placed by hand": created(
        CreatableTopic("c", -1, -1, [CreatableReplicaAssignment(0, [1]), CreatableReplicaAssignment(1, [1])])),
    "a topic with many settings": created(
        CreatableTopic("f", 1, 1, (), [CreatableTopicConfig(key, "100000000") for key in MANY])),
    "two topics, one of them twice": created(CreatableTopic("d", 1, 1), CreatableTopic("a", 1, 1),
                                            CreatableTopic("e", 1, 1)),
    "more partitions": asked(ApiKey.CREATE_PARTITIONS, 3,
                             CreatePartitionsRequest([CreatePartitionsTopic("a", 4, None)], 30_000)),
    "settings of a topic": altered(TOPIC, "a", ("retention.ms", 0, "7"), ("cleanup.policy", 2, "compact"),
                                   ("segment.ms", 0, "99")),
    "many settings of a topic": altered(TOPIC, "b", *((key, 0, "100000000") for key in MANY)),
    "settings of several": asked(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest([
        AlterConfigsResource(kind, name, [AlterableConfig(key, 0, "100000000") for key in keys])
        for kind, name, keys in ((TOPIC, "d", MANY[:2]), (BROKER, "", ["log.retention.bytes"]), (TOPIC, "b", MANY[:2]),
                                 (TOPIC, "c", MANY[2:4]), (BROKER, "1", ["log.retention.bytes"]))])),
    "all settings at once": asked(ApiKey.ALTER_CONFIGS, 2, AlterConfigsRequest([
        OldResource(TOPIC, "b", [OldConfig(key, "90000000") for key in (MANY[0], MANY[2], MANY[6])])])),
    "a setting that stays": altered(TOPIC, "a", ("retention.ms", 0, "7")),
    "a setting less": altered(TOPIC, "a", ("retention.ms", 1, None), ("flush.ms", 1, None)),
    "a setting of all brokers": altered(BROKER, "", ("log.retention.ms", 0, "1000000"),
                                        ("min.insync.replicas", 0, "1")),
    "a setting of one broker": altered(BROKER, "1", ("log.cleaner.threads", 0, "2")),
    "a setting of a group": altered(GROUP, "g", ("consumer.session.timeout.ms", 0, "46000")),
    "a subscription of metrics": altered(CLIENT_METRICS, "m", ("interval.ms", 0, "1000"), ("metrics", 0, "x.,y.")),
    "no setting of a group": altered(GROUP, "g", ("consumer.session.timeout.ms", 1, None)),
    "ACLs": granted(AclCreation(2, "a", LITERAL, "User:u", "*", READ, ALLOW),
                    AclCreation(2, "b", PREFIXED, "User:u", "10.0.0.1", READ, ALLOW)),
    "an ACL again": granted(AclCreation(2, "a", LITERAL, "User:u", "*", READ, ALLOW)),
    "fewer ACLs": asked(ApiKey.DELETE_ACLS, 3,
                        DeleteAclsRequest([DeleteAclsFilter(2, "a", LITERAL, None, None, ANY, ANY)])),
    "quotas": limited({"user": "u", "client-id": None}, OpData("producer_byte_rate", 1000.0),
                      OpData("request_percentage", 50.0)),
    "the same quota": limited({"user": "u", "client-id": None}, OpData("producer_byte_rate", 1000.0)),
    "a quota less": limited({"user": "u", "client-id": None}, OpData("producer_byte_rate", 0.0, remove=True)),
    "a quota of an address": limited({"ip": "10.0.0.1"}, OpData("connection_creation_rate", 5.0)),
    "credentials": asked(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, AlterUserScramCredentialsRequest(
        (), [ScramCredentialUpsertion("u", 1, 4096, b"salt", b"password"),
             ScramCredentialUpsertion("u", 2, 4096, b"salt", b"password")])),
    "no credentials": asked(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0,
                            AlterUserScramCredentialsRequest([ScramCredentialDeletion("u", 1)], ())),
    "producer ids": asked(ApiKey.INIT_PRODUCER_ID, 5, InitProducerIdRequest(None, 60_000)),
    "a reassignment to where it is": reassigned(("a", 0, [1])),
    "a cancelled reassignment": reassigned(("a", 0, None)),
    "an election": asked(ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(None, 30_000, 0)),
    "an unclean election": asked(ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(None, 30_000, 1)),
    "a feature less": moved(("group.version", 0, UNSAFE)),
    "a feature back": moved(("group.version", 1, UP)),
    "two features": moved(("transaction.version", 1, SAFE), ("streams.version", 0, SAFE)),
    "a feature as it is": moved(("transaction.version", 1, UP)),
    "a feature off as it is": moved(("streams.version", 0, SAFE)),
    "the metadata version as it is": moved(("metadata.version", 33, UP)),
    "the quorum's version as it is": moved(("kraft.version", 0, UP)),
    "many features": moved(("transaction.version", 2, UP), ("share.version", 1, SAFE), ("streams.version", 1, UP),
                           ("group.version", 0, SAFE), ("metadata.version", 33, UP)),
    "eligible replicas as they are": moved(("eligible.leader.replicas.version", 1, UP)),
    "no eligible replicas": moved(("eligible.leader.replicas.version", 0, SAFE)),
    "eligible replicas": moved(("eligible.leader.replicas.version", 1, UP)),
    "a broker that is not there": asked(ApiKey.UNREGISTER_BROKER, 0, UnregisterBrokerRequest(9)),
    "a topic less": asked(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(
        (), 30_000, [DeleteTopicState("a", UUID(int=0))])),
    "two topics less": asked(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(
        (), 30_000, [DeleteTopicState("b", UUID(int=0)), DeleteTopicState("c", UUID(int=0))])),
    "a topic again": created(CreatableTopic("a", 1, 1)),
}  # fmt: skip


def shown(batch: RecordBatch) -> list[str]:
    """Its records, without those that mean nothing."""
    if batch.is_control:
        return []
    return [line for record in read_records(batch) if (line := _line(record.value)).split(" ")[0] not in _ALONE]


def _line(value: bytes | None) -> str:
    assert value is not None
    _, at = read_uvarint(value, 0)
    kind, at = read_uvarint(value, at)
    version, _ = read_uvarint(value, at)
    record = decode(None, value)
    if record is None:
        return f"kind {kind} v{version}"
    plain = {each.name: _plain(getattr(record, each.name), each.name) for each in fields(record)}
    return f"{type(record).__name__} v{version} {json.dumps(plain)}"


def _plain(value: Any, name: str = "") -> Any:
    if isinstance(value, UUID):
        return "an id" if value.int > 1 else str(value.int)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, tuple):
        found = [_plain(each, name) for each in value]
        return sorted(found, key=str) if name == "features" else found
    if hasattr(value, "__dataclass_fields__"):
        return {
            each.name: _plain(getattr(value, each.name), each.name) for each in fields(value) if each.name not in _OWN
        }
    return "-" if name in _OWN and value else value


def log(folder: Path) -> list[tuple[int, list[str]]]:
    """The offset and the records of each batch of the controller's log that has any."""
    found = []
    for file in sorted((folder / "__cluster_metadata-0").glob("*.log")):
        data = file.read_bytes()
        whole = data[: _whole(data)]
        found += [(batch.base_offset, lines) for batch in batches(whole) if (lines := shown(batch))]
    return found


def _whole(data: bytes) -> int:
    """Where the last whole batch ends: the one behind it may be being written."""
    at = 0
    while at + 12 <= len(data) and at + 12 + (size := struct.unpack_from(">i", data, at + 8)[0]) <= len(data) and size:
        at += 12 + size
    return at


def played(wire: Wire, folder: Path) -> dict[str, Step]:
    """Begin, and every step: what it appended."""
    play = STEPS["producer ids"]
    play(wire)  # the test of its readiness may have got some
    seen = log(folder)
    steps = {"begin": [lines for _, lines in seen]}
    for name, play in STEPS.items():
        play(wire)
        now = log(folder)
        steps[name] = [lines for _, lines in now[len(seen) :]]
        seen = now
    return steps


def load() -> dict[str, dict[str, Step]]:
    """Release -> step -> batches."""
    found: dict[str, dict[str, Step]] = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    return found


def main() -> None:
    """Play it on a real broker."""
    release, os.environ["KAFKA_LIBS"] = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        cluster = KafkaCluster(Path(folder), settings=SETTINGS)
        cluster.start()
        try:
            with Wire(cluster.addresses[0], "test") as wire:
                found = played(wire, Path(folder) / "data-1")
        finally:
            cluster.stop(clean=False)
    RECORDED.write_text(json.dumps({**load(), release: found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
