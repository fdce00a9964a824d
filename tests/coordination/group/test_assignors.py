"""The server's assignors (groups C.7): the specification's vectors, and what holds for every assignment."""

import base64
from collections.abc import Mapping
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.coordination.group.modern.assignor.range import Assignment, Assignor, Job, Subscriber, assign_ranges
from broker.coordination.group.modern.assignor.uniform import assign_uniformly
from protocol.java import HashMap, copied_capacity, string_hash, table_order

NAMES = {"f": "foo", "b": "bar", "z": "zar"}
IDS = {
    name: UUID(bytes=base64.urlsafe_b64decode(text + "=="))
    for name, text in (
        ("f", "Zm9vZm9vZm9vZm9vZm9vMQ"),
        ("b", "YmFyYmFyYmFyYmFyYmFyMg"),
        ("z", "emFyemFyemFyemFyemFyMw"),
    )
}
TOPICS = {topic_id: name for name, topic_id in IDS.items()}
LONG = ("6b1d1b8e-2f0c-4c5b-9d57-0a5f3b1f7c01", "0f3c2d1a-7a41-4a7e-8f2e-5f0d9c6e2b02",
        "c1e7a9d4-54b3-4e0d-b8a9-3d2f6a7b8c03")  # fmt: skip
Assigned = Mapping[str, Assignment]


def job(
    counts: Mapping[str, int], subscribed: Mapping[str, str], target: Assigned, instances: Mapping[str, str]
) -> Job:
    """Members with the topics that they subscribe to, by their first letters."""
    members = []
    for member_id in HashMap((member_id, None) for member_id in subscribed):
        names = sorted(NAMES[letter] for letter in subscribed[member_id])
        ordered = table_order(names, string_hash, copied_capacity(len(names)))
        topics = tuple(IDS[name[0]] for name in ordered)
        members.append(Subscriber(member_id, instances.get(member_id), topics, len(names), target.get(member_id, {})))
    alike = len({frozenset(letters) for letters in subscribed.values()}) == 1
    return Job(members, {IDS[letter]: count for letter, count in counts.items()}, alike)


def written(assigned: Assigned) -> dict[str, str]:
    """The assignment as the specification writes it: ``b0 f1``."""
    return {
        member_id: " ".join(sorted(f"{TOPICS[topic]}{at}" for topic, partitions in mine.items() for at in partitions))
        for member_id, mine in assigned.items()
    }


ALIKE, UNLIKE = {"f": 3, "b": 2}, {"f": 3, "b": 2, "z": 4}
UNIFORM = [
    (ALIKE, [
        ({"A": "fb"}, {"A": "b0 b1 f0 f1 f2"}),
        ({"A": "fb", "B": "fb"}, {"A": "b0 b1 f0", "B": "f1 f2"}),
        ({"A": "fb", "B": "fb", "C": "fb"}, {"A": "b0 b1", "B": "f1 f2", "C": "f0"}),
        ({"B": "fb", "C": "fb"}, {"B": "f1 f2", "C": "b0 b1 f0"}),
        (dict.fromkeys("BCDEF", "fb"), {"B": "f1", "C": "b0", "D": "f2", "E": "b1", "F": "f0"}),
    ]),
    ({"f": 10}, [
        (dict.fromkeys(LONG, "f"), dict(zip(LONG, ("f3 f4 f5", "f6 f7 f8 f9", "f0 f1 f2"), strict=True))),
    ]),
    (UNLIKE, [
        ({"A": "fz", "B": "fb", "C": "bz"}, {"A": "z0 z2 z3", "B": "f0 f1 f2", "C": "b0 b1 z1"}),
        ({"A": "fz", "B": "fb", "C": "z"}, {"A": "f2 z0 z2", "B": "b0 b1 f0 f1", "C": "z1 z3"}),
        ({"A": "fz", "C": "z"}, {"A": "f0 f1 f2 z0", "C": "z1 z2 z3"}),
    ]),
    ({"f": 6, "b": 6}, [
        ({"A": "f", "B": "fb"}, {"A": "f0 f1 f2 f3 f4 f5", "B": "b0 b1 b2 b3 b4 b5"}),
        ({"A": "f", "B": "fb", "C": "fb"}, {"A": "f0 f1 f2 f3", "B": "b0 b1 b2 f5", "C": "b3 b4 b5 f4"}),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("counts", "steps"), UNIFORM)
def test_KIP848_35_uniform(counts: dict[str, int], steps: list[tuple[dict[str, str], dict[str, str]]]) -> None:
    """Each step goes on from the one before."""
    target: Assigned = {}
    for subscribed, expected in steps:
        target = assign_uniformly(job(counts, subscribed, target, {}))
        assert written(target) == expected


@pytest.mark.parametrize(
    ("counts", "subscribed", "instances", "expected"),
    [
        ({"f": 5, "b": 2}, dict.fromkeys("ABC", "fb"), {}, {"A": "b0 f0 f1", "B": "b1 f2 f3", "C": "f4"}),
        ({"f": 5}, dict.fromkeys("ABC", "f"), {"B": "i2", "C": "i1"}, {"A": "f4", "B": "f2 f3", "C": "f0 f1"}),
        (UNLIKE, {"A": "fb", "B": "f", "C": "bz"}, {}, {"A": "b0 f0 f1", "B": "f2", "C": "b1 z0 z1 z2 z3"}),
    ],
)
def test_KIP848_35_range(
    counts: dict[str, int], subscribed: dict[str, str], instances: dict[str, str], expected: dict[str, str]
) -> None:
    """Static members come first, by instance id; member ids do not matter to them."""
    assert written(assign_ranges(job(counts, subscribed, {}, instances))) == expected


SUBSCRIBED = st.dictionaries(
    st.sampled_from("ABCDEFGH"), st.sampled_from(["f", "b", "z", "fb", "bz", "fbz"]), min_size=1
)


@pytest.mark.slow
@pytest.mark.parametrize("assign", [assign_uniformly, assign_ranges])
@settings(max_examples=60, deadline=None)
@given(
    counts=st.fixed_dictionaries(dict.fromkeys("fbz", st.integers(1, 40))),
    turns=st.lists(SUBSCRIBED, min_size=1, max_size=4),
)
def test_everything_is_assigned_once(assign: Assignor, counts: dict[str, int], turns: list[dict[str, str]]) -> None:
    """Each partition goes to one subscriber; with equal subscriptions, sizes differ by one partition at most."""
    target: Assigned = {}
    for subscribed in turns:
        now = job(counts, subscribed, target, {})
        target = assign(now)
        assert target.keys() == subscribed.keys()
        given_out = [(topic, at) for mine in target.values() for topic, held in mine.items() for at in held]
        read = {letter for letters in subscribed.values() for letter in letters}
        assert sorted(given_out) == sorted((IDS[letter], at) for letter in read for at in range(counts[letter]))
        for member_id, mine in target.items():
            assert {TOPICS[topic] for topic in mine} <= set(subscribed[member_id])
        if assign is assign_uniformly and now.homogeneous:
            sizes = [sum(map(len, mine.values())) for mine in target.values()]
            assert max(sizes) - min(sizes) <= 1


@settings(max_examples=60, deadline=None)
@given(counts=st.fixed_dictionaries(dict.fromkeys("fbz", st.integers(1, 40))), subscribed=SUBSCRIBED)
def test_uniform_moves_nothing_without_a_reason(counts: dict[str, int], subscribed: dict[str, str]) -> None:
    """An assignment that the assignor made itself stays as it is."""
    target = assign_uniformly(job(counts, subscribed, {}, {}))
    assert written(assign_uniformly(job(counts, subscribed, target, {}))) == written(target)
