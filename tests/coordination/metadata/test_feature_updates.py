"""Features that move up and down: their order in a request, what is written before them, and the quorum's version.

Every answer is that of a real 4.3.1 and 4.4.0.
"""

import pytest

from broker.coordination.metadata.configs import NewConfigs
from broker.coordination.metadata.effects import KraftVersionChanged
from broker.coordination.metadata.features import FeatureUpdate, UpgradeType
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.metadata import ConfigRecord, FeatureLevelRecord
from tests.coordination.metadata.harness import TOKEN, Bench, answer, changes

BROKER = 4
ELR, METADATA, KRAFT = "eligible.leader.replicas.version", "metadata.version", "kraft.version"
MIN_ISR = "min.insync.replicas"
OLD = {METADATA: 22, ELR: 0, "group.version": 0, "transaction.version": 0, "share.version": 0, "streams.version": 0}


@pytest.mark.parametrize("updates", [[(ELR, 1), (METADATA, 23)], [(METADATA, 23), (ELR, 1)]], ids=["before", "behind"])
def test_a_feature_may_come_with_the_one_that_it_needs(updates: list[tuple[str, int]]) -> None:
    """In either order of the request; alone it has to wait."""
    bench = Bench(levels=OLD)
    with pytest.raises(KafkaError, match="depends on metadata\\.version level 23"):
        bench.machine.update_features([FeatureUpdate(ELR, 1)])
    bench.do(bench.machine.update_features([FeatureUpdate(*each) for each in updates]))
    assert (bench.image.features[METADATA], bench.image.features[ELR]) == (23, 1)


def test_eligible_replicas_make_min_insync_replicas_the_clusters() -> None:
    """Before the level goes up: the value of the file for all, and no value of single brokers (KIP-966)."""
    bench = Bench(levels={ELR: 0})
    bench.do(bench.machine.alter_configs([NewConfigs(BROKER, "2", {MIN_ISR: "3", "x": "y"})]))
    first = bench.do(bench.machine.update_features([FeatureUpdate(ELR, 1)]))
    assert first == (
        ConfigRecord(BROKER, "", MIN_ISR, "1"),
        ConfigRecord(BROKER, "2", MIN_ISR, None),
        FeatureLevelRecord(ELR, 1),
    )
    assert bench.image.config(BROKER, "2") == {"x": "y"}
    down = [FeatureUpdate(ELR, 0, UpgradeType.SAFE_DOWNGRADE)]
    assert bench.do(bench.machine.update_features(down)) == (FeatureLevelRecord(ELR, 0),)
    bench.do(bench.machine.alter_configs([NewConfigs(BROKER, "", {MIN_ISR: "4"})]))
    assert bench.do(bench.machine.update_features([FeatureUpdate(ELR, 1)])) == (FeatureLevelRecord(ELR, 1),)
    assert bench.image.config(BROKER, "") == {MIN_ISR: "4"}


def test_the_quorums_version_is_no_record_of_the_metadata() -> None:
    """It is an effect, and goes up alone; the rest of the request is written (KIP-853)."""
    bench = Bench()
    updates = [FeatureUpdate(KRAFT, 1), FeatureUpdate("group.version", 0, UpgradeType.UNSAFE_DOWNGRADE)]
    assert changes(bench.machine.update_features(updates, validate_only=True)) == []
    outcome = bench.machine.update_features(updates, TOKEN)
    assert outcome.records == (FeatureLevelRecord("group.version", 0),)
    assert KraftVersionChanged(1) in changes(outcome)
    assert answer(outcome) == {KRAFT: 1, "group.version": 0}
    assert bench.machine.update_features([FeatureUpdate(KRAFT, 1)], kraft_version=1).effects == ()
    for kind, reason in (
        (UpgradeType.UPGRADE, "without setting the upgrade type to either safe or unsafe downgrade."),
        (UpgradeType.UNSAFE_DOWNGRADE, "Can't downgrade the version of this feature."),
    ):
        with pytest.raises(KafkaError, match=reason) as refused:
            bench.machine.update_features([FeatureUpdate(KRAFT, 0, kind)], kraft_version=1)
        assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION


# MetadataVersion.didMetadataChange, asked of 4.4.0.
CHANGED = (7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33)


@pytest.mark.parametrize("level", range(8, 34))
def test_metadata_version_goes_down_only_where_no_record_changed(level: int) -> None:
    """Down to the last level that changed a record, safely or not; below it neither way."""
    bench = Bench(levels={**OLD, METADATA: level})
    floor = max(each for each in CHANGED if each <= level)
    for target in range(7, level):
        for kind in (UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE):
            update = [FeatureUpdate(METADATA, target, kind)]
            if target >= floor:
                assert answer(bench.machine.update_features(update, TOKEN, validate_only=True)) == {METADATA: target}
            else:
                with pytest.raises(KafkaError, match=f"downgrade from {level} to {target}"):
                    bench.machine.update_features(update)
