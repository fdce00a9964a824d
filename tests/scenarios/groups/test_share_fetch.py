"""Rows of share groups (groups G.4) that a partition's leader answers."""

import pytest

from broker.settings.releases import Behaviour
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import RANDOM_ID, created, produced, records_deleted
from tests.scenarios.core.batches import batch
from tests.scenarios.groups.sharers import (
    ACCEPT,
    RECORD_LIMIT,
    REJECT,
    RELEASE,
    RENEW,
    SHARE_SETTINGS,
    Sharer,
    acquired_of,
    configure,
    forget,
    initialize,
    only,
    start_and_done,
)
from tests.scenarios.on_kafka import TARGET, steered
from tests.server import Server, until

TEN = [(0, 9, 1)]
LOCK_MS = 2_000


def values(count: int) -> bytearray:
    """A batch of so many records."""
    return batch(*[b"%d" % each for each in range(count)])


class Queue:
    """A topic with ten records in one batch, whose partition 0 is initialized for the group."""

    def __init__(self, server: Server, records: int = 10, **configs: str) -> None:
        self.server, self.wire = server, server.wire()
        self.topic_id = created(self.wire, "foo", retention_ms="-1")
        if records:
            produced(self.wire, "foo", values(records))
        configure(
            self.wire,
            **{"share_auto_offset_reset": "earliest", "share_record_lock_duration_ms": str(LOCK_MS), **configs},
        )
        initialize(self.wire, self.topic_id)

    def member(self, member_id: str = "m1") -> Sharer:
        """A member with a connection of its own."""
        return Sharer(self.server.wire(), self.topic_id, member_id)

    def holder(self) -> Sharer:
        """A member that has acquired what there is."""
        member = self.member()
        assert member.first()
        return member

    def peer(self) -> Sharer:
        """Another member, whose session exists."""
        peer = self.member("m2")
        assert peer.acquired() == []
        return peer


@pytest.fixture
def server(broker_with: BrokerWith) -> Server:
    """A broker whose clock moves only when it is pushed."""
    server = broker_with(settings=SHARE_SETTINGS)
    server.freeze()
    return server


def test_SHR_07_the_first_fetch(server: Server) -> None:
    """All records are acquired, with the lock's duration."""
    member = Queue(server).member()
    response = member.fetch(max_wait_ms=5000)
    data = only(response)
    assert [(run.first_offset, run.last_offset, run.delivery_count) for run in data.acquired_records] == TEN
    assert response.acquisition_lock_timeout_ms == LOCK_MS
    assert data.records


def test_SHR_08_the_default_is_latest(server: Server) -> None:
    """Old records are not delivered, new ones are."""
    queue = Queue(server)
    configure(queue.wire, share_auto_offset_reset="latest")
    member = queue.member()
    assert member.acquired() == []
    produced(queue.wire, "foo", values(1))
    assert until(lambda: member.acquired(max_wait_ms=100), "the new record") == [(10, 10, 1)]


def test_by_duration_needs_a_record_that_is_young_enough(server: Server) -> None:
    """The first of them is where the group begins (groups D.8); without one the fetch fails until there is one."""
    queue = Queue(server, records=0, share_auto_offset_reset="by_duration:PT1H")
    member = queue.member()
    waited = member.fetch(max_wait_ms=100)
    assert only(waited).error_code is ErrorCode.OFFSET_NOT_AVAILABLE
    produced(queue.wire, "foo", batch(b"0", b"1", times_ms=[server.now_ms()] * 2))
    assert member.acquired(max_wait_ms=1000) == [(0, 1, 1)]


def test_SHR_09_accepted_in_a_fetch(server: Server) -> None:
    """Accepted records are not delivered again; the start offset is written later."""
    queue = Queue(server)
    member = queue.holder()
    data = only(member.fetch(acks=[(0, 9, [ACCEPT])]))
    assert (data.acknowledge_error_code, data.acquired_records) == (0, ())
    assert queue.peer().acquired() == []
    assert start_and_done(queue.wire, queue.topic_id) == (0, 10)


def test_SHR_11_released(server: Server) -> None:
    """Released records are delivered to others, once more."""
    queue = Queue(server)
    assert queue.holder().ack(0, 9, RELEASE) is ErrorCode.NONE
    assert queue.member("m2").acquired() == [(0, 9, 2)]


def test_SHR_12_one_type_for_each_offset(server: Server) -> None:
    """The released offsets alone come back."""
    queue = Queue(server)
    assert queue.holder().ack(0, 9, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1) is ErrorCode.NONE
    assert queue.member("m2").acquired() == [(1, 1, 2), (4, 4, 2), (7, 7, 2)]


def test_SHR_13_SHR_14_other_records(server: Server) -> None:
    """Another member's records, acknowledged ones, and offsets beyond what is in flight."""
    queue = Queue(server)
    member, peer = queue.holder(), queue.peer()
    assert peer.ack(5, 9, ACCEPT) is ErrorCode.INVALID_RECORD_STATE
    assert member.ack(5, 20, ACCEPT) is ErrorCode.INVALID_REQUEST
    assert member.ack(5, 9, ACCEPT) is ErrorCode.NONE
    assert member.ack(5, 9, ACCEPT) is ErrorCode.INVALID_RECORD_STATE
    assert member.ack(0, 4, ACCEPT) is ErrorCode.NONE
    assert member.ack(0, 9, ACCEPT) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("first", "last", "types"),
    [(0, 9, ()), (0, 9, (1, 1)), (0, 9, (5,)), (9, 0, (1,)), (0, 9, (-1,)), (0, 9, (RENEW,))],
)
def test_SHR_15_invalid_batches(server: Server, first: int, last: int, types: tuple[int, ...]) -> None:
    """The partition is refused; nothing changes."""
    member = Queue(server).holder()
    assert member.ack(first, last, *types) is ErrorCode.INVALID_REQUEST
    assert member.ack(0, 9, ACCEPT) is ErrorCode.NONE


def test_SHR_16_the_lock_ends(server: Server) -> None:
    """A fetch that waits gets the records when their lock ends."""
    queue = Queue(server)
    member, peer = queue.holder(), queue.peer()
    request = peer.request(max_wait_ms=LOCK_MS * 2)
    peer.wire.send(ApiKey.SHARE_FETCH, 2, request)
    server.advance(LOCK_MS)
    assert acquired_of(peer.wire.answer()) == [(0, 9, 2)]
    assert member.ack(0, 9, ACCEPT) is ErrorCode.INVALID_RECORD_STATE


def test_SHR_17_the_delivery_limit(server: Server) -> None:
    """A record that was delivered as often as allowed is archived, and the start offset moves."""
    queue = Queue(server, 1, share_delivery_count_limit="2")
    member = queue.holder()
    server.advance(LOCK_MS)
    assert member.first() == [(0, 0, 2)]  # a real clock may be a moment behind
    server.advance(LOCK_MS)
    assert member.acquired() == []
    produced(queue.wire, "foo", values(1))
    assert member.acquired() == [(1, 1, 1)]
    assert member.ack(1, 1, ACCEPT) is ErrorCode.NONE
    assert start_and_done(queue.wire, queue.topic_id) == (1, 1)


def test_SHR_18_rejected(server: Server) -> None:
    """Rejected records are never delivered again."""
    member = Queue(server).holder()
    assert member.ack(0, 9, REJECT) is ErrorCode.NONE
    assert member.acquired() == []


def test_SHR_19_renewed(server: Server) -> None:
    """The lock of a renewed record ends later."""
    queue = Queue(server)
    member, peer = queue.holder(), queue.peer()
    server.advance(LOCK_MS - 1)
    renewal = {"is_renew_ack": True, "max_bytes": 0, "min_bytes": 0, "max_records": 0}
    data = only(member.fetch(acks=[(0, 9, [RENEW])], **renewal))
    assert (data.acknowledge_error_code, data.acquired_records) == (0, ())
    server.advance(LOCK_MS - 1)
    assert peer.acquired() == []
    server.advance(1)
    assert peer.acquired() == [(0, 9, 2)]


def test_SHR_20_renewals_fetch_nothing(server: Server) -> None:
    """A renewal with a maximum of records is refused."""
    member = Queue(server).holder()
    response = member.fetch(acks=[(0, 9, [RENEW])], is_renew_ack=True, max_bytes=0, min_bytes=0, max_records=1)
    assert response.error_code is ErrorCode.INVALID_REQUEST


def test_a_negative_limit_of_bytes_fails_in_every_partition(server: Server) -> None:
    """At once, with records or without; nothing is acquired."""
    queue = Queue(server)
    member = queue.member()
    assert member.first() == TEN
    assert member.ack(0, 9, RELEASE) is ErrorCode.NONE
    for max_bytes, max_records in ((-1, 500), (-(2**31), -1)):
        data = only(member.fetch(max_bytes=max_bytes, max_records=max_records, max_wait_ms=60_000))
        assert (data.error_code, data.acquired_records) == (ErrorCode.UNKNOWN_SERVER_ERROR, ())
    assert member.acquired() == [(0, 9, 2)]


def test_SHR_21_SHR_22_SHR_23_SHR_24_session_epochs(server: Server) -> None:
    """Epochs that do not fit the session, and acknowledgements in its first request."""
    queue = Queue(server)
    member = queue.member()
    assert member.fetch(epoch=5).error_code is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert member.fetch(epoch=-1).error_code is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert member.fetch(acks=[(0, 9, [ACCEPT])]).error_code is ErrorCode.INVALID_REQUEST
    fields = {"share_session_epoch": 1}
    assert member.acknowledge((0, 9, [ACCEPT]), **fields).error_code is ErrorCode.SHARE_SESSION_NOT_FOUND
    member = queue.holder()
    fields = {"share_session_epoch": 0}
    assert member.acknowledge((0, 9, [ACCEPT]), **fields).error_code is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    epoch = member.epoch
    assert member.ack(0, 9, ACCEPT) is ErrorCode.NONE
    assert member.fetch(epoch=epoch).error_code is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.fetch(epoch=epoch + 1).error_code is ErrorCode.NONE


def test_SHR_25_a_closed_session(server: Server) -> None:
    """The records of the member are available again."""
    queue = Queue(server)
    member, peer = queue.holder(), queue.peer()
    response = member.fetch(epoch=-1)
    assert response.error_code is ErrorCode.NONE
    assert not response.responses
    assert until(peer.acquired, "released records") == [(0, 9, 2)]
    assert member.fetch().error_code is ErrorCode.SHARE_SESSION_NOT_FOUND


def test_SHR_26_a_closed_connection(server: Server) -> None:
    """A lost connection releases its share session's records, as closing the session does."""
    queue = Queue(server)
    member, peer = queue.holder(), queue.peer()
    member.wire.close()
    assert until(peer.acquired, "released records") == [(0, 9, 2)]


def test_SHR_28_a_limit_of_records(server: Server) -> None:
    """Whole record batches, or never more than the limit."""
    queue = Queue(server)
    member = queue.member()
    assert until(lambda: member.acquired(max_records=3, share_acquire_mode=RECORD_LIMIT), "records") == [(0, 2, 1)]
    assert member.acquired(max_records=3, share_acquire_mode=RECORD_LIMIT) == [(3, 5, 1)]
    assert member.acquired(max_records=3) == [(6, 9, 1)]


def test_SHR_29_batch_size(server: Server) -> None:
    """What is acquired is split where record batches begin."""
    queue = Queue(server, 0)
    for _ in range(20):
        produced(queue.wire, "foo", values(5))
    member = queue.member()
    assert until(lambda: member.acquired(batch_size=10), "records") == [(n, n + 9, 1) for n in range(0, 100, 10)]


def test_a_batch_size_of_0(server: Server) -> None:
    """The member gets an empty range as well; what is accepted is behind it, also when it is loaded again."""
    queue = Queue(server, 0)
    for _ in range(3):
        produced(queue.wire, "foo", values(10))
    member = queue.member()
    ranges = until(lambda: member.acquired(batch_size=0), "records")
    assert ranges == [(0, -1, 1), (0, 9, 1), (10, 19, 1), (20, 29, 1)]
    assert member.ack(0, 29, ACCEPT) is ErrorCode.NONE
    produced(queue.wire, "foo", values(10))
    assert member.acquired(batch_size=0) == [(30, 29, 1), (30, 39, 1)]
    assert member.ack(30, 39, ACCEPT) is ErrorCode.NONE
    member.wire.close()
    produced(queue.wire, "foo", values(1))
    assert queue.member("m2").first() == [(40, 40, 1)]


def test_SHR_31_an_unknown_topic_id(server: Server) -> None:
    """On its partition; the others are served."""
    queue = Queue(server)
    stranger = Sharer(queue.holder().wire, RANDOM_ID, "m3")
    assert only(stranger.fetch()).error_code is ErrorCode.UNKNOWN_TOPIC_ID
    assert stranger.ack(0, 9, ACCEPT) is ErrorCode.UNKNOWN_TOPIC_ID


def test_an_unknown_topic_id_before_4_4(broker_with: BrokerWith) -> None:
    """The whole fetch fails, also the next one, until the topic is forgotten (SHARE_FETCH_OF_UNKNOWN_TOPICS)."""
    assert Behaviour.SHARE_FETCH_OF_UNKNOWN_TOPICS.since == "4.4"
    server = broker_with(settings=SHARE_SETTINGS, as_version="4.3")
    server.freeze()
    queue = Queue(server)
    member = queue.holder()
    stranger = Sharer(member.wire, RANDOM_ID, "m3")
    assert stranger.fetch().error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    stranger.epoch = 1
    assert stranger.fetch().error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    stranger.epoch = 2
    response = stranger.fetch(forgotten_topics_data=forget(stranger.topic_id, 0))
    assert response.error_code is ErrorCode.NONE
    stranger.epoch = 3
    assert stranger.ack(0, 9, ACCEPT) is ErrorCode.UNKNOWN_TOPIC_ID


def test_SHR_41_the_log_begins_later(server: Server) -> None:
    """One fetch without records, then those from the log's start on."""
    queue = Queue(server)
    member = queue.holder()
    assert member.ack(0, 9, RELEASE) is ErrorCode.NONE
    assert records_deleted(queue.wire, "foo", 7).error_code is ErrorCode.NONE
    assert member.acquired() == []
    assert member.acquired() == [(7, 9, 2)]


def test_SHR_42_a_group_without_state(server: Server) -> None:
    """The partition fails when the wait is over."""
    queue = Queue(server)
    queue.holder()
    stranger = Sharer(server.wire(), queue.topic_id, group_id="others")
    stranger.wire.send(ApiKey.SHARE_FETCH, 2, stranger.request(max_wait_ms=LOCK_MS // 2))
    server.advance(LOCK_MS // 2)
    assert only(stranger.wire.answer()).error_code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_SHR_44_the_most_sessions(broker_with: BrokerWith) -> None:
    """One more is refused, after its wait."""
    limits = {"group.share.max.size": 1, "group.share.max.share.sessions": 1}
    server = broker_with(settings={**SHARE_SETTINGS, **limits})
    server.freeze()
    queue = Queue(server)
    queue.holder()
    member = queue.member("m2")
    member.wire.send(ApiKey.SHARE_FETCH, 2, member.request(max_wait_ms=500))
    server.advance(500)
    assert member.wire.answer().error_code is ErrorCode.SHARE_SESSION_LIMIT_REACHED


def test_a_fetch_waits_for_new_records(server: Server) -> None:
    """Records that are produced wake it."""
    queue = Queue(server)
    member = queue.holder()
    member.wire.send(ApiKey.SHARE_FETCH, 2, member.request(max_wait_ms=LOCK_MS // 2))
    produced(queue.wire, "foo", values(2))
    assert acquired_of(member.wire.answer()) == [(10, 11, 1)]


def test_a_fetch_does_not_find_what_it_releases_where_other_records_are_there(server: Server) -> None:
    """It reads before its own acknowledgements are written; the next one finds the released record."""
    if TARGET == "kafka":
        steered("that the share coordinator's write takes longer than the read, which it mostly does")
    queue = Queue(server)
    produced(queue.wire, "foo", values(2))
    member = queue.member()
    assert until(lambda: member.acquired(max_records=10), "records") == TEN
    assert member.acquired(acks=[(0, 9, [RELEASE])], max_wait_ms=LOCK_MS // 2) == [(10, 11, 1)]
    assert member.acquired(max_records=10) == [(0, 9, 2)]


def test_a_fetch_that_has_to_wait_finds_what_it_releases(server: Server) -> None:
    """When the wait is over: that its own acknowledgements are written does not end it."""
    member = Queue(server).holder()
    request = member.request(acks=[(0, 9, [RELEASE])], max_wait_ms=LOCK_MS // 2)
    member.wire.send(ApiKey.SHARE_FETCH, 2, request)
    assert not member.wire.has_answer()
    server.advance(LOCK_MS // 2)
    assert acquired_of(member.wire.answer()) == [(0, 9, 2)]


def test_a_new_session_gets_no_partition_twice(server: Server) -> None:
    """Kafka fails, and there is no session afterwards; an existing one takes a partition as often as it likes."""
    member = Queue(server).holder()
    member.partitions = (0, 0)
    assert member.fetch(acks=[(0, 9, (ACCEPT,))]).error_code is ErrorCode.NONE
    refused = member.fetch(epoch=0)
    assert (refused.error_code, list(refused.responses)) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])
    assert member.fetch().error_code is ErrorCode.SHARE_SESSION_NOT_FOUND
    member.partitions = (0,)
    assert member.fetch(epoch=0).error_code is ErrorCode.NONE
