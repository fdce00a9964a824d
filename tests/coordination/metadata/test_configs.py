"""Settings, features and producer ids in the metadata log."""

from uuid import UUID

import pytest

from broker.coordination.metadata.configs import NewConfigs
from broker.coordination.metadata.effects import ConfigChanged, PartitionChanged, ShareGroupsDisabled
from broker.coordination.metadata.features import FeatureUpdate, Node, decide, fresh_levels
from broker.coordination.metadata.reassignments import elect_uncleanly
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.metadata import ClearElrRecord, ConfigRecord, FeatureLevelRecord, ProducerIdsRecord
from protocol.log_records.metadata_security import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    QuotaEntity,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from tests.coordination.metadata.harness import TOKEN, Bench, answer, changes

TOPIC, BROKER, GROUP = 2, 4, 32
MIN_ISR = "min.insync.replicas"
FAILED = "The update failed for all features since the following feature had an error: "
LEVELS = {"metadata.version": 30, "transaction.version": 2, "eligible.leader.replicas.version": 1}
_ID = UUID(int=5)
CONTROLLER = Node("Local controller", 1, {"metadata.version": (7, 30), "transaction.version": (0, 2)})


def test_only_what_differs_is_written() -> None:
    """A key less is a null; a resource without keys is gone."""
    bench = Bench()
    first = bench.do(bench.machine.alter_configs([NewConfigs(GROUP, "g", {"a": "1", "b": "2"})]))
    assert first == (ConfigRecord(GROUP, "g", "a", "1"), ConfigRecord(GROUP, "g", "b", "2"))
    outcome = bench.machine.alter_configs([NewConfigs(GROUP, "g", {"b": "3", "c": "4"})], TOKEN)
    assert outcome.records == (
        ConfigRecord(GROUP, "g", "b", "3"),
        ConfigRecord(GROUP, "g", "a", None),
        ConfigRecord(GROUP, "g", "c", "4"),
    )
    assert (changes(outcome), answer(outcome)) == ([ConfigChanged(GROUP, "g")], None)
    bench.do(outcome)
    assert bench.machine.alter_configs([NewConfigs(GROUP, "g", {"b": "3", "c": "4"})]).effects == ()
    bench.do(bench.machine.alter_configs([NewConfigs(GROUP, "g", {})]))
    assert (GROUP, "g") not in bench.image.configs


@pytest.mark.parametrize(("resource_type", "name", "cleared"), [(TOPIC, "t", "t"), (BROKER, "", "")])
def test_another_min_insync_replicas_clears_eligible_replicas(resource_type: int, name: str, cleared: str) -> None:
    """They were counted by the old value (core C.3); brokers follow the partitions that had some."""
    bench = Bench(2)
    bench.create("t", [1, 2], configs={"min.insync.replicas": "2"})
    bench.create("u", [1])
    bench.do(bench.machine.broker_stopped(2))
    assert bench.partition("t").elr == (2,)
    outcome = bench.machine.alter_configs([NewConfigs(resource_type, name, {"min.insync.replicas": "3"})])
    assert changes(outcome) == [ConfigChanged(resource_type, name), PartitionChanged("t", 0)]
    records = bench.do(outcome)
    assert records[-1] == ClearElrRecord(cleared)
    assert (bench.partition("t").elr, bench.partition("t").partition_epoch) == ((), 2)


@pytest.mark.parametrize(("name", "leader"), [("t", 2), ("no", -1)])
def test_unclean_elections_that_are_allowed_come_with_the_next_round(name: str, leader: int) -> None:
    """Where a leader is missing and a replica lives; none at once (seen on 4.4.0)."""
    bench = Bench(2)
    bench.create("t", [1, 2])
    for broker_id in (2, 1):
        bench.do(bench.machine.broker_stopped(broker_id))
    bench.arrive(2)
    bench.do(bench.machine.alter_configs([NewConfigs(TOPIC, name, {"unclean.leader.election.enable": "true"})]))
    assert bench.partition("t").leader == -1
    bench.do(bench.machine.periodic(elect_uncleanly))
    assert bench.partition("t").leader == leader


# --- features --------------------------------------------------------------------------------------------------------


def test_a_fresh_cluster_has_the_levels_of_4_4() -> None:
    """As kafka-storage formats it; 0 takes a feature away, kraft.version is not of them."""
    assert Bench().image.features == {
        "metadata.version": 33,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 2,
        "streams.version": 1,
        "transaction.version": 2,
    }
    assert "share.version" not in fresh_levels({"share.version": 0, "kraft.version": 1})
    assert Bench(levels={"transaction.version": 1}).image.features["transaction.version"] == 1


@pytest.mark.parametrize(
    ("update", "sentence"),
    [
        (
            FeatureUpdate("transaction.version", 99),
            "Invalid update version 99 for feature transaction.version. Local controller 1 only supports versions 0-2",
        ),
        (
            FeatureUpdate("nope", 1),
            "Invalid update version 1 for feature nope. Local controller 1 does not support this feature.",
        ),
        (
            FeatureUpdate("transaction.version", 1, 7),
            (
                "Invalid update version 1 for feature transaction.version. "
                "The controller does not support the given upgrade type."
            ),
        ),
        (
            FeatureUpdate("transaction.version", -1),
            "Invalid update version -1 for feature transaction.version. A feature version cannot be less than 0.",
        ),
        (
            FeatureUpdate("transaction.version", 1),
            (
                "Invalid update version 1 for feature transaction.version. Can't downgrade the version of this feature "
                "without setting the upgrade type to either safe or unsafe downgrade."
            ),
        ),
        (
            FeatureUpdate("metadata.version", 29, 2),
            (
                "Unsupported metadata.version downgrade from 30 to 29. Refusing to perform the requested downgrade "
                "because it might delete metadata information."
            ),
        ),
        (
            FeatureUpdate("metadata.version", 29, 3),
            (
                "Unsupported metadata.version downgrade from 30 to 29. Unsafe metadata downgrade is not supported in "
                "this version."
            ),
        ),
    ],
)
def test_impossible_levels_fail_all(update: FeatureUpdate, sentence: str) -> None:
    """Kafka's messages, as 4.3.1 answers; the updates before it are not made either."""
    with pytest.raises(KafkaError) as refused:
        decide([FeatureUpdate("transaction.version", 2), update], LEVELS, [CONTROLLER])
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_UPDATE_VERSION, FAILED + sentence)


def test_other_reasons_to_refuse_a_level() -> None:
    """A downgrade upwards, a broker that cannot, a feature that must come first."""
    broker = Node("Broker", 2, {"metadata.version": (7, 30), "transaction.version": (1, 1)})
    elr = Node("Local controller", 1, {"eligible.leader.replicas.version": (0, 1)})
    cases = [
        (FeatureUpdate("transaction.version", 2, 2), {"transaction.version": 1}, [CONTROLLER]),
        (FeatureUpdate("transaction.version", 2), {}, [CONTROLLER, broker]),
        (FeatureUpdate("eligible.leader.replicas.version", 1), {"metadata.version": 22}, [elr]),
    ]
    sentences = []
    for update, levels, nodes in cases:
        with pytest.raises(KafkaError) as refused:
            decide([update], levels, nodes)
        sentences.append((refused.value.message or "").removeprefix(FAILED).partition(". ")[2])
    assert sentences == [
        "Can't downgrade to a newer version.",
        "Broker 2 only supports versions 1",
        "eligible.leader.replicas.version could not be set to 1 because it depends on metadata.version level 23",
    ]


def test_levels_move_both_ways() -> None:
    """Down where no metadata is lost, in the order of Kafka's map; validated only, nothing is written."""
    bench = Bench()
    updates = [FeatureUpdate("transaction.version", 1, 2), FeatureUpdate("share.version", 0, 3)]
    assert bench.machine.update_features(updates, validate_only=True).records == ()
    outcome = bench.machine.update_features(updates, TOKEN)
    assert outcome.records == (FeatureLevelRecord("share.version", 0), FeatureLevelRecord("transaction.version", 1))
    assert answer(outcome) == {"transaction.version": 1, "share.version": 0}
    assert changes(outcome) == [ShareGroupsDisabled()]  # brokers ask for a level when they need it
    bench.do(outcome)
    assert "share.version" not in bench.image.features
    assert decide([FeatureUpdate("metadata.version", 23, 2)], {"metadata.version": 29}, [CONTROLLER]) == {
        "metadata.version": 23
    }


# --- the rest --------------------------------------------------------------------------------------------------------


def test_producer_ids_come_in_blocks_that_are_given_once() -> None:
    """A block of producer ids is allocated once, also after a reload (KIP-730)."""
    bench = Bench()
    epoch = bench.image.brokers[1].epoch
    assert bench.do(bench.machine.allocate_producer_ids()) == (ProducerIdsRecord(1, epoch, 1000),)
    outcome = bench.reloaded().allocate_producer_ids(0, TOKEN)
    assert answer(outcome) == range(1000, 2000)


def test_records_of_security_are_kept_and_taken_away() -> None:
    """Other modules judge them; the image holds them."""
    bench = Bench()
    acl = AccessControlEntryRecord(_ID, 2, "t")
    scram, token = UserScramCredentialRecord("u", 1), DelegationTokenRecord(token_id="k")
    entity = (QuotaEntity("user", None), QuotaEntity("client-id", "c"))
    outcome = bench.machine.remember([acl, scram, token, ClientQuotaRecord(entity, "rate", 1.5)], TOKEN, "done")
    assert answer(outcome) == "done"
    bench.do(outcome)
    image = bench.image
    assert (image.acls, image.scram, image.tokens) == ({_ID: acl}, {("u", 1): scram}, {"k": token})
    assert image.quotas == {(("client-id", "c"), ("user", None)): {"rate": 1.5}}
    removed = [
        RemoveAccessControlEntryRecord(_ID),
        RemoveUserScramCredentialRecord("u", 1),
        RemoveDelegationTokenRecord("k"),
        ClientQuotaRecord(entity, "rate", 0.0, remove=True),
    ]
    bench.do(bench.machine.remember(removed))
    assert (image.acls, image.scram, image.tokens, dict(image.quotas)) == ({}, {}, {}, {})


def test_settings_of_several_resources_are_one_change() -> None:
    """First all settings, those that go in the order of Kafka's map; then what follows from them (core C.4)."""
    bench = Bench()
    bench.create("t", [1])
    keys = ("segment.bytes", "retention.ms", "max.message.bytes", "flush.messages", "segment.ms", "retention.bytes")
    bench.do(bench.machine.alter_configs([NewConfigs(TOPIC, "t", dict.fromkeys((*keys, "flush.ms"), "5"), keys)]))
    wanted = [NewConfigs(TOPIC, "t", {MIN_ISR: "2"}, [MIN_ISR]), NewConfigs(GROUP, "g", {"a": "1"}, ["a"])]
    records = bench.machine.alter_configs(wanted).records
    gone = [each.name for each in records if isinstance(each, ConfigRecord) and each.value is None]
    assert gone[:4] == ["flush.ms", "flush.messages", "retention.bytes", "segment.bytes"]
    assert records[0] == ConfigRecord(TOPIC, "t", MIN_ISR, "2")
    assert records[-2:] == (ConfigRecord(GROUP, "g", "a", "1"), ClearElrRecord("t"))
