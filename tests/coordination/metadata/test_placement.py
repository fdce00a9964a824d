"""Where replicas of new partitions go (core B.7.6)."""

import random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.coordination.metadata.image import Broker
from broker.coordination.metadata.placement import Placer
from protocol.errors import ErrorCode, KafkaError


def brokers(*racks: str | None, fenced: tuple[int, ...] = ()) -> list[Broker]:
    """Brokers 1.. in these racks."""
    return [
        Broker(number, 0, UUID(int=number), rack=rack, fenced=number in fenced)
        for number, rack in enumerate(racks, start=1)
    ]


def test_leaders_rotate_and_replicas_follow() -> None:
    """From the chosen start, each partition begins one broker further."""
    placer = Placer(brokers(None, None, None), lambda _n: 0)
    assert [placer.place(2) for _ in range(3)] == [(1, 2), (2, 3), (3, 1)]


def test_after_a_round_the_brokers_are_shuffled_again() -> None:
    """Else partition n+1 would have the replicas of partition 1; leaders stay spread evenly."""
    placer = Placer(brokers(None, None, None, None), random.Random(1).randrange)
    first, second = [placer.place(2) for _ in range(4)], [placer.place(2) for _ in range(4)]
    assert set(first) != set(second)
    assert sorted(leader for leader, _ in first) == sorted(leader for leader, _ in second) == [1, 2, 3, 4]


def test_racks_alternate() -> None:
    """Leaders go from rack to rack, and two replicas never share one while there is another."""
    placer = Placer(brokers("a", "a", "b", "b"), lambda _n: 0)
    placed = [placer.place(2) for _ in range(4)]
    assert [{"aabb"[broker - 1] for broker in assignment} for assignment in placed] == [{"a", "b"}] * 4
    assert placed == [(1, 3), (4, 2), (1, 3), (4, 2)]


def test_fenced_brokers_only_fill_up_and_never_lead() -> None:
    """The unfenced one leads everything, the fenced ones hold the rest."""
    placer = Placer(brokers(None, None, None, fenced=(1, 3)), lambda _n: 0)
    assert [placer.place(2)[0] for _ in range(4)] == [2] * 4
    assert sorted(placer.place(3)) == [1, 2, 3]


@pytest.mark.parametrize(
    ("fenced", "factor", "message"),
    [
        (
            (),
            3,
            (
                "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached "
                "because only 2 broker(s) are registered or some brokers have all their log directories cordoned."
            ),
        ),
        (
            (1, 2),
            3,
            (
                "Unable to replicate the partition 3 time(s): All brokers are currently fenced, or have all their log "
                "directories cordoned."
            ),
        ),
    ],
)
def test_T17_too_few_brokers(fenced: tuple[int, ...], factor: int, message: str) -> None:
    """INVALID_REPLICATION_FACTOR with Kafka's sentence."""
    with pytest.raises(KafkaError) as refused:
        Placer(brokers(None, None, fenced=fenced), lambda _n: 0).place(factor)
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_REPLICATION_FACTOR, message)


@given(
    racks=st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=9),
    factor=st.integers(1, 9),
    seed=st.integers(0, 2**32),
)
def test_no_broker_holds_a_partition_twice(racks: list[str | None], factor: int, seed: int) -> None:
    """With any racks and any seed; without racks, leaders are spread evenly over one round."""
    factor = min(factor, len(racks))
    placer = Placer(brokers(*racks), random.Random(seed).randrange)
    placed = [placer.place(factor) for _ in range(len(racks))]
    assert all(len(set(assignment)) == factor for assignment in placed)
    if len(set(racks)) == 1:
        assert sorted(assignment[0] for assignment in placed) == list(range(1, len(racks) + 1))
