"""What counts as two owners of a partition, and as a commit of one that is none (KIP-848)."""

from simulator.ownership import Ownership

A, B = frozenset({("t", 0)}), frozenset({("t", 1)})


def ownership() -> tuple[Ownership, list[str]]:
    """Of members with timeouts of 6 s, and the promises that it finds broken."""
    found: list[str] = []
    return Ownership(found.append, 6_000), found


def test_a_partition_has_one_owner_in_each_epoch() -> None:
    """An instance that comes back with another member id is the same owner; another member is not."""
    group, broken = ownership()
    group.given("g", "instance", "m1", 5, A, 0, 1)
    group.ends("g", "instance", "m1")
    group.given("g", "instance", "m2", 5, A, 10_000, 10_001)
    assert broken == []
    group.given("g", "m3", "m3", 5, A, 30_000, 30_001)
    assert broken == ["g, epoch 5: t-0 belongs to instance and to m3"]


def test_a_partition_is_free_once_its_owner_confirms_it_or_has_been_silent() -> None:
    """Not before: that would be two readers at once."""
    group, broken = ownership()
    group.given("g", "m1", "m1", 5, A | B, 1_000, 1_001)
    group.given("g", "m1", "m1", 5, A, 2_000, 2_001)  # asked to give up t-1, which it still has
    group.given("g", "m2", "m2", 6, B, 3_000, 3_001)
    assert broken == ["g: t-1 was given to m2 while m1 held it, 1001 ms after its last heartbeat"]
    broken.clear()
    group.keeps("g", "m1", "m1", A)
    group.given("g", "m3", "m3", 7, B, 3_500, 9_100)
    group.given("g", "m4", "m4", 8, A, 8_001, 8_002)
    assert broken == []


def test_a_commit_needs_the_partition() -> None:
    """One that was sent before another member had it may be answered later."""
    group, broken = ownership()
    group.given("g", "m1", "m1", 5, A, 0, 1)
    group.ends("g", "m1", "m1")
    group.given("g", "m2", "m2", 6, A, 100, 101)
    group.commits("g", "m1", A, 90)
    group.commits("g", "m2", A, 200)
    assert broken == []
    group.commits("g", "m1", A, 150)
    assert broken == ["g: m1 committed t-0 at 150 ms, which m2 had since 101 ms"]


def test_the_epoch_of_a_member_never_goes_back() -> None:
    """Until it has left, or has heard that it is none."""
    group, broken = ownership()
    group.given("g", "m1", "m1", 5, A, 0, 1)
    group.given("g", "m1", "m1", 5, A, 10, 11)
    assert broken == []
    group.given("g", "m1", "m1", 4, A, 20, 21)
    assert broken == ["g: m1 has epoch 4, and had 5"]
    broken.clear()
    group.ends("g", "m1", "m1")
    group.given("g", "m1", "m1", 1, A, 30, 31)
    assert broken == []
