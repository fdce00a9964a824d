"""Which partitions the simulator excuses as those that stay without a leader in Kafka, too; others are found."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from broker.coordination.metadata.elections import PartitionChange
from broker.coordination.metadata.image import NO_LEADER, Partition
from simulator.leaderless import REMOVED, is_stranded
from simulator.result import Result
from simulator.run import KINDS, run
from tests.mutants.mutant import Mutant

SEED = 526461987
"""Partition b-0 is moved away from broker 1 while it has too few in-sync replicas; then all brokers are killed."""
STRANDED = Partition(
    replicas=(3, 2), isr=(), leader=NO_LEADER, leader_epoch=7, partition_epoch=9, elr=(1,), last_known_elr=(3,),
    directories=(UUID(int=3), UUID(int=2)),
)  # fmt: skip
NOT_ELECTED = Mutant(
    "the last known leader is not elected", PartitionChange._elect, "len(now.last_known_elr) == 1", "False"
)
NOT_ELIGIBLE = Mutant(
    "eligible replicas are not elected", PartitionChange._valid, "(not self.isr and replica in self._elr)", "False"
)


def test_only_a_removed_replica_keeps_the_last_known_leader_away() -> None:
    """It was removed from the replicas, and no other broker may lead."""
    assert is_stranded(STRANDED)


@pytest.mark.parametrize(
    "changed",
    [
        {"leader": 3},
        {"isr": (2,)},
        {"elr": ()},
        {"elr": (2,)},
        {"elr": (1, 2)},
        {"last_known_elr": ()},
        {"last_known_elr": (1,)},
    ],
    ids=str,
)
def test_any_other_partition_is_not_excused(changed: Mapping[str, Any]) -> None:
    """It has a leader or an in-sync replica, an eligible one that is a replica, or no last known leader to elect."""
    assert not is_stranded(replace(STRANDED, **changed))


def played() -> Result:
    """The run that found it."""
    return run(SEED, 0.5, kinds=KINDS)


@pytest.mark.slow
def test_a_partition_that_kafka_leaves_without_a_leader_too_is_excused_alone() -> None:
    """An operator elects its last known leader once the faults are over, and then all promises are kept."""
    result = played()
    assert result.violations == []
    (excused,) = result.excused
    assert excused == f"b-0 has no leader until an operator elects broker 3, since {REMOVED}"


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("planted", [NOT_ELECTED, NOT_ELIGIBLE], ids=lambda each: each.mistake)
def test_a_planted_mistake_is_found_beside_the_excuse(planted: Any) -> None:
    """Other partitions that stay without a leader break promises."""
    with planted.alive():
        result = played()
    assert any(each.startswith("b-0 has no leader") for each in result.excused)
    assert any("made no progress" in each for each in result.violations)
