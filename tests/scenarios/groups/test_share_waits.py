"""What ends the wait of a ShareFetch, and what does not (groups D.5 SF6)."""

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from tests.conftest import BrokerWith
from tests.scenarios.groups.sharers import (
    ACCEPT,
    RECORD_LIMIT,
    RELEASE,
    SHARE_SETTINGS,
    Sharer,
    acquired_of,
)
from tests.scenarios.groups.test_share_fetch import Queue
from tests.server import until

WAIT_MS = 3_000
LOCK_MS = "25000"


@pytest.fixture
def queue(broker_with: BrokerWith) -> Queue:
    """Ten records, and a clock that moves only when it is pushed."""
    server = broker_with(settings=SHARE_SETTINGS)
    server.freeze()
    return Queue(server, share_record_lock_duration_ms=LOCK_MS)


def waiting(queue: Queue) -> Sharer:
    """A member whose fetch waits."""
    peer = queue.peer()
    peer.wire.send(ApiKey.SHARE_FETCH, 2, peer.request(max_wait_ms=WAIT_MS))
    return peer


def test_released_records_do_not_end_a_wait(queue: Queue) -> None:
    """The next fetch gets them, even the releaser's."""
    member = queue.holder()
    peer = waiting(queue)
    assert member.ack(3, 4, RELEASE) is ErrorCode.NONE
    assert until(member.acquired, "the released records") == [(3, 4, 2)]
    queue.server.advance(WAIT_MS)
    assert acquired_of(peer.wire.answer()) == []


def test_records_that_are_released_meanwhile_are_acquired_when_the_wait_is_over(queue: Queue) -> None:
    """They were not taken by another member."""
    member = queue.holder()
    peer = waiting(queue)
    assert member.ack(3, 4, RELEASE) is ErrorCode.NONE
    assert not peer.wire.has_answer()
    queue.server.advance(WAIT_MS)
    assert acquired_of(peer.wire.answer()) == [(3, 4, 2)]


@pytest.mark.parametrize("accepted", [0, 8])
def test_an_acknowledgement_ends_the_wait_for_records_released_before(queue: Queue, accepted: int) -> None:
    """A waiting fetch gets released records, whether or not the start offset moved."""
    member = queue.holder()
    peer = waiting(queue)
    assert member.ack(3, 4, RELEASE) is ErrorCode.NONE
    assert not peer.wire.has_answer()
    assert member.ack(accepted, accepted, ACCEPT) is ErrorCode.NONE
    assert acquired_of(peer.wire.answer()) == [(3, 4, 2)]


def test_a_fetch_that_leaves_records_ends_the_wait_for_them(queue: Queue) -> None:
    """It holds the partition's lock while it acquires, and wakes the others when it gives it back."""
    member = queue.holder()
    peer = waiting(queue)
    assert member.ack(3, 4, RELEASE) is ErrorCode.NONE
    assert not peer.wire.has_answer()
    assert member.acquired(max_records=1, share_acquire_mode=RECORD_LIMIT) == [(3, 3, 2)]
    assert acquired_of(peer.wire.answer()) == [(4, 4, 2)]


def test_a_session_that_ends_does_not_end_the_waits_of_others(queue: Queue) -> None:
    """Its records are for the fetch that comes next."""
    member = queue.holder()
    peer = waiting(queue)
    assert member.acknowledge(share_session_epoch=-1, topics=()).error_code is ErrorCode.NONE
    third = queue.member("m3")
    assert until(third.acquired, "the released records") == [(0, 9, 2)]
    queue.server.advance(WAIT_MS)
    assert acquired_of(peer.wire.answer()) == []


def test_a_connection_that_closes_does_not_end_the_waits_of_others(queue: Queue) -> None:
    """Its session ends, and releases its records."""
    member = queue.holder()
    peer = waiting(queue)
    member.wire.close()
    third = queue.member("m3")
    assert until(third.acquired, "the released records") == [(0, 9, 2)]
    queue.server.advance(WAIT_MS)
    assert acquired_of(peer.wire.answer()) == []
