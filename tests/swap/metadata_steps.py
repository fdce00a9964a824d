"""Administrative requests whose metadata records are compared: see ``metadata_records``."""

import threading
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from protocol.apis import ApiKey
from protocol.messages.add_raft_voter import AddRaftVoterRequest
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
from protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.elect_leaders import ElectLeadersRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.unregister_broker import UnregisterBrokerRequest
from protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.wire import Wire

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
UP, SAFE, UNSAFE = 1, 2, 3
Play = Callable[[Wire], Any]


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


def sends(key: ApiKey, version: int, request: Any) -> Play:
    """Any request."""
    return lambda wire: wire.call(key, version, request)


def _ready(ask: Callable[[Wire], Any]) -> Play:
    """Ask until there is no error: what is missing is made on the first request, in the background."""

    def play(wire: Wire) -> None:
        pause = threading.Event()
        while any(each.error_code for each in ask(wire)):
            pause.wait(0.05)

    return play


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
    "more partitions": sends(ApiKey.CREATE_PARTITIONS, 3,
                             CreatePartitionsRequest([CreatePartitionsTopic("a", 4, None)], 30_000)),
    "settings of a topic": altered(TOPIC, "a", ("retention.ms", 0, "7"), ("cleanup.policy", 2, "compact"),
                                   ("segment.ms", 0, "99")),
    "many settings of a topic": altered(TOPIC, "b", *((key, 0, "100000000") for key in MANY)),
    "settings of several": sends(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest([
        AlterConfigsResource(kind, name, [AlterableConfig(key, 0, "100000000") for key in keys])
        for kind, name, keys in ((TOPIC, "d", MANY[:2]), (BROKER, "", ["log.retention.bytes"]), (TOPIC, "b", MANY[:2]),
                                 (TOPIC, "c", MANY[2:4]), (BROKER, "1", ["log.retention.bytes"]))])),
    "all settings at once": sends(ApiKey.ALTER_CONFIGS, 2, AlterConfigsRequest([
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
    "fewer ACLs": sends(ApiKey.DELETE_ACLS, 3,
                        DeleteAclsRequest([DeleteAclsFilter(2, "a", LITERAL, None, None, ANY, ANY)])),
    "quotas": limited({"user": "u", "client-id": None}, OpData("producer_byte_rate", 1000.0),
                      OpData("request_percentage", 50.0)),
    "the same quota": limited({"user": "u", "client-id": None}, OpData("producer_byte_rate", 1000.0)),
    "a quota less": limited({"user": "u", "client-id": None}, OpData("producer_byte_rate", 0.0, remove=True)),
    "a quota of an address": limited({"ip": "10.0.0.1"}, OpData("connection_creation_rate", 5.0)),
    "credentials": sends(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, AlterUserScramCredentialsRequest(
        (), [ScramCredentialUpsertion("u", 1, 4096, b"salt", b"password"),
             ScramCredentialUpsertion("u", 2, 4096, b"salt", b"password")])),
    "no credentials": sends(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0,
                            AlterUserScramCredentialsRequest([ScramCredentialDeletion("u", 1)], ())),
    "producer ids": sends(ApiKey.INIT_PRODUCER_ID, 5, InitProducerIdRequest(None, 60_000)),
    "a reassignment to where it is": reassigned(("a", 0, [1])),
    "a cancelled reassignment": reassigned(("a", 0, None)),
    "an election": sends(ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(None, 30_000, 0)),
    "an unclean election": sends(ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(None, 30_000, 1)),
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
    "a broker that is not there": sends(ApiKey.UNREGISTER_BROKER, 0, UnregisterBrokerRequest(9)),
    "a topic less": sends(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(
        (), 30_000, [DeleteTopicState("a", UUID(int=0))])),
    "two topics less": sends(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(
        (), 30_000, [DeleteTopicState("b", UUID(int=0)), DeleteTopicState("c", UUID(int=0))])),
    "a topic again": created(CreatableTopic("a", 1, 1)),
    # More than the first recording asked for.
    "all settings go": sends(ApiKey.ALTER_CONFIGS, 2, AlterConfigsRequest([OldResource(TOPIC, "f", [])])),
    "settings of a broker at once": sends(ApiKey.ALTER_CONFIGS, 2, AlterConfigsRequest([
        OldResource(BROKER, "1", [OldConfig("log.cleaner.threads", "2"), OldConfig("log.retention.ms", "5000000")])])),
    "the same settings of a broker": sends(ApiKey.ALTER_CONFIGS, 2, AlterConfigsRequest([
        OldResource(BROKER, "1", [OldConfig("log.cleaner.threads", "2")])])),
    "settings of two at once": sends(ApiKey.ALTER_CONFIGS, 2, AlterConfigsRequest([
        OldResource(TOPIC, "d", [OldConfig("retention.ms", "5")]), OldResource(TOPIC, "no", [OldConfig("x", "5")])])),
    "a setting of a broker stays": altered(BROKER, "1", ("log.cleaner.threads", 0, "2")),
    "a list longer and shorter": altered(TOPIC, "d", ("cleanup.policy", 2, "compact"),
                                         ("leader.replication.throttled.replicas", 2, "0:1,1:1")),
    "a list shorter": altered(TOPIC, "d", ("leader.replication.throttled.replicas", 3, "0:1"),
                              ("follower.replication.throttled.replicas", 3, "0:1")),
    "least in-sync replicas": altered(TOPIC, "d", ("min.insync.replicas", 0, "1"), ("retention.ms", 0, "6")),
    "least in-sync replicas of several": sends(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest([
        AlterConfigsResource(TOPIC, "e", [AlterableConfig("min.insync.replicas", 0, "1"),
                                          AlterableConfig("retention.ms", 0, "6")]),
        AlterConfigsResource(BROKER, "", [AlterableConfig("min.insync.replicas", 0, "2")])])),
    "unclean leaders": altered(TOPIC, "d", ("unclean.leader.election.enable", 0, "true")),
    "settings that are only checked": sends(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest(
        [AlterConfigsResource(TOPIC, "d", [AlterableConfig("retention.ms", 0, "8")])], validate_only=True)),
    "settings of a group of streams": altered(GROUP, "s", ("streams.num.standby.replicas", 0, "1"),
                                              ("share.auto.offset.reset", 0, "earliest")),
    "settings with blanks": altered(TOPIC, "d", ("retention.ms", 0, " 12 "), ("preallocate", 0, "TRUE")),
    "a topic with odd settings": created(CreatableTopic("g", 1, 1, (), [
        CreatableTopicConfig("retention.ms", " 5 "), CreatableTopicConfig("min.cleanable.dirty.ratio", ".3"),
        CreatableTopicConfig("cleanup.policy", "compact,delete"), CreatableTopicConfig("retention.ms", "7")])),
    "topics that are only checked": sends(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(
        [CreatableTopic("h", 1, 1)], 30_000, validate_only=True)),
    "topics, some with settings": created(
        CreatableTopic("i", 2, 1, (), [CreatableTopicConfig("retention.ms", "5")]), CreatableTopic("j", 1, 1),
        CreatableTopic("bad/", 1, 1), CreatableTopic("k", 1, 1, (), [CreatableTopicConfig("flush.ms", "5")])),
    "partitions of several": sends(ApiKey.CREATE_PARTITIONS, 3, CreatePartitionsRequest([
        CreatePartitionsTopic("i", 3, [CreatePartitionsAssignment([1])]), CreatePartitionsTopic("no", 3, None),
        CreatePartitionsTopic("j", 2, None), CreatePartitionsTopic("k", 1, None)], 30_000)),
    "topics by name, some are not there": sends(ApiKey.DELETE_TOPICS, 6, DeleteTopicsRequest(
        (), 30_000, [DeleteTopicState(name, UUID(int=0)) for name in ("k", "no", "j")])),
    "quotas of several": sends(ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest([
        EntryData([EntityData("user", None)], [OpData("consumer_byte_rate", 10.0)]),
        EntryData([EntityData("client-id", "c"), EntityData("user", "u")],
                  [OpData("producer_byte_rate", 3.0), OpData("consumer_byte_rate", 2.0),
                   OpData("controller_mutation_rate", 1.0)]),
        EntryData([EntityData("ip", None)], [OpData("connection_creation_rate", 9.0)])])),
    "a quota set and removed": limited({"user": "w"}, OpData("producer_byte_rate", 5.0),
                                       OpData("producer_byte_rate", 0.0, remove=True)),
    "no quotas": sends(ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest([
        EntryData([EntityData("user", None)], [OpData("consumer_byte_rate", 0.0, remove=True)]),
        EntryData([EntityData("user", "nouser")], [OpData("consumer_byte_rate", 0.0, remove=True)])])),
    "quotas that are only checked": sends(ApiKey.ALTER_CLIENT_QUOTAS, 1, AlterClientQuotasRequest([
        EntryData([EntityData("user", "x")], [OpData("consumer_byte_rate", 10.0)])], validate_only=True)),
    "ACLs of many kinds": granted(
        AclCreation(4, "kafka-cluster", LITERAL, "User:v", "*", 12, ALLOW),
        *[AclCreation(3, "*", LITERAL, "User:v", "*", READ, ALLOW)] * 2,
        AclCreation(5, "t", PREFIXED, "User:v", "*", 8, 2), AclCreation(2, "", LITERAL, "User:v", "*", READ, ALLOW)),
    "ACLs of a subnet": granted(AclCreation(2, "a", LITERAL, "User:u", "10.0.0.0/8", READ, ALLOW)),
    "no ACLs": sends(ApiKey.DELETE_ACLS, 3, DeleteAclsRequest([
        DeleteAclsFilter(3, None, ANY, "User:v", None, ANY, ANY),
        DeleteAclsFilter(2, None, ANY, "User:no", None, ANY, ANY),
        DeleteAclsFilter(4, None, ANY, None, None, ANY, ANY)])),
    "credentials of several": sends(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, AlterUserScramCredentialsRequest(
        [ScramCredentialDeletion("u", 2), ScramCredentialDeletion("no", 1)],
        [ScramCredentialUpsertion("v", 1, 8192, b"salt", b"password"),
         ScramCredentialUpsertion("a", 2, 4096, b"salt", b"password"),
         ScramCredentialUpsertion("u", 1, 4096, b"other", b"password")])),
    "features that are only checked": sends(ApiKey.UPDATE_FEATURES, 2, UpdateFeaturesRequest(
        30_000, [FeatureUpdateKey("group.version", 1, upgrade_type=UP)], validate_only=True)),
    "a feature with one that is refused": moved(("group.version", 1, UP), ("transaction.version", 9, UP)),
    "a group's coordinator": _ready(lambda wire: wire.call(
        ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])).coordinators),
    "a transaction's coordinator": _ready(lambda wire: wire.call(
        ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=1, coordinator_keys=["t"])).coordinators),
    "a topic by its first use": _ready(lambda wire: wire.call(
        ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic(name="auto")], True)).topics),
    "a voter more": sends(ApiKey.ADD_RAFT_VOTER, 1, AddRaftVoterRequest(None, 1000, 2, UUID(int=5), ())),
}  # fmt: skip
OLD = 7
"""The oldest metadata.version that 4.3 and 4.4 support."""
STEPS_OF_OLD: Mapping[str, Play] = {
    "a topic": created(CreatableTopic("a", 1, 1)),
    "credentials": STEPS["credentials"],
    "a feature too early": moved(("group.version", 1, UP), ("eligible.leader.replicas.version", 1, UP)),
    **{f"metadata version {level}": moved(("metadata.version", level, UP)) for level in (8, 11, 14, 15, 19, 23, 28)},
    "credentials now": STEPS["credentials"],
    "an election": STEPS["an election"],
    "another topic": created(CreatableTopic("b", 1, 1)),
    "features": moved(("eligible.leader.replicas.version", 1, UP), ("group.version", 1, UP)),
    "the newest metadata version": sends(ApiKey.UPDATE_FEATURES, 2, UpdateFeaturesRequest(
        30_000, [FeatureUpdateKey("metadata.version", 29, upgrade_type=UP)])),
}  # fmt: skip
"""Upgrades of a cluster that was formatted with that."""
