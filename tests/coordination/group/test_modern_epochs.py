"""Rules of epochs that all groups share whose partitions the coordinator assigns."""

import pytest

from broker.coordination.group.modern.epochs import JOINING, check_member_epoch, target_is_due
from protocol.errors import ErrorCode, KafkaError


@pytest.mark.parametrize(("epoch", "owns_subset"), [(JOINING, False), (5, False), (4, True)])
def test_epochs_that_a_heartbeat_may_have(epoch: int, *, owns_subset: bool) -> None:
    """To join, the member's own, and the previous one where its last answer was lost."""
    check_member_epoch(5, 4, epoch, owns_subset=owns_subset, kind="share")


@pytest.mark.parametrize(
    ("epoch", "owns_subset", "size"), [(6, True, "greater"), (4, False, "smaller"), (3, True, "smaller")]
)
def test_epochs_that_are_fenced(epoch: int, size: str, *, owns_subset: bool) -> None:
    """The message names the kind, the epoch and the one that is known."""
    with pytest.raises(KafkaError) as refused:
        check_member_epoch(5, 4, epoch, owns_subset=owns_subset, kind="share")
    assert refused.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert refused.value.message == (
        f"The share group member has a {size} member epoch ({epoch}) than the one known by the group coordinator (5). "
        "The member must abandon all its partitions and rejoin."
    )


@pytest.mark.parametrize(
    ("last_ms", "interval_ms", "now_ms", "due"),
    [(0, 1000, 1, True), (100, 0, 100, True), (100, 50, 149, False), (100, 50, 150, True)],
)
def test_when_the_next_target_is_due(last_ms: int, interval_ms: int, now_ms: int, *, due: bool) -> None:
    """The first one at once, the others after the interval."""
    assert target_is_due(last_ms, interval_ms, now_ms) is due
