"""Records that are given up, and how acquisitions and sessions end, in memory (groups D.4, D.7, KIP-1191)."""

from broker.coordination.share_state.persister import StateBatch
from broker.partitions.share_partition.machine.acknowledge import (
    LIMIT_REACHED,
    LOCK_ENDED,
    REJECTED,
    SESSION_CLOSED,
    Acknowledgement,
    acknowledge,
    archive_dead,
    commit,
    dead_records,
    expire,
    release,
    roll_back,
)
from broker.partitions.share_partition.machine.acquire import Span
from broker.partitions.share_partition.machine.states import RecordState
from broker.partitions.share_partition.sessions import SessionKey, ShareSessions
from broker.request.connection import Connection
from protocol.messages.share_fetch import ShareFetchRequest
from tests.broker.partitions.share_partition.test_machine import LOCK_MS, REJECT, RELEASE, Bench


def test_rejected_records_are_archiving_until_the_queue_has_them() -> None:
    """The start does not pass them, no member acquires them, and they do not count as done (KIP-1191)."""
    bench = Bench(dead_letters=True)
    bench.fetch()
    change = acknowledge(bench.partition, "m1", [Acknowledgement(0, 2, [REJECT])], 0)
    commit(bench.partition, change)
    assert [tuple(each) for each in change.dead] == [(n, n, 1, REJECTED) for n in range(3)]
    assert (bench.partition.start_offset, bench.partition.delivery_complete_count) == (0, 0)
    assert bench.fetch("m2") == []
    for dead in change.dead:
        assert archive_dead(bench.partition, dead).delivery_state == RecordState.ARCHIVED
    assert bench.partition.delivery_complete_count == 3
    assert bench.partition.move_start()
    assert bench.partition.start_offset == 3


def test_the_last_lock_ends_in_the_dead_letter_queue() -> None:
    """A lock that ends, a release, and a session that is closed, at the delivery limit."""
    for end in ("lock", "release", "close"):
        bench = Bench([Span(0, 0)], dead_letters=True, max_delivery_count=2)
        for _ in range(2):
            assert bench.fetch()
            if end == "lock":
                bench.now_ms += LOCK_MS
                change = expire(bench.partition, bench.now_ms)
            elif end == "release":
                change = acknowledge(bench.partition, "m1", [Acknowledgement(0, 0, [RELEASE])], bench.now_ms)
            else:
                change = release(bench.partition, "m1", bench.now_ms)
            commit(bench.partition, change)
        assert [tuple(each) for each in change.dead] == [(0, 0, 2, LIMIT_REACHED)], end


def test_a_rejection_that_is_not_written_is_taken_back() -> None:
    """The record is acquired again, and goes to no queue."""
    bench = Bench([Span(0, 0)], dead_letters=True)
    bench.fetch()
    change = acknowledge(bench.partition, "m1", [Acknowledgement(0, 0, [REJECT])], 0)
    roll_back(bench.partition, change, 0)
    assert [state.state for _, _, state in bench.partition.runs()] == [RecordState.ACQUIRED]


def test_a_failed_write_of_a_record_whose_lock_has_ended_archives_it() -> None:
    """Without the queue, as in Kafka: no one would go on with an ARCHIVING record."""
    bench = Bench([Span(0, 0)], dead_letters=True, max_delivery_count=1)
    bench.fetch()
    change = acknowledge(bench.partition, "m1", [Acknowledgement(0, 0, [RELEASE])], 0)
    roll_back(bench.partition, change, LOCK_MS)
    assert [state.state for _, _, state in bench.partition.runs()] == [RecordState.ARCHIVED]
    assert bench.bounds == (0, 0, 1)
    assert bench.partition.move_start()
    assert bench.bounds == (1, 1, 0)


def test_a_new_leader_goes_on_with_archiving_records() -> None:
    """The cause follows from the delivery count, as in Kafka."""
    stored = [StateBatch(0, 1, 3, 1), StateBatch(2, 2, 3, 5), StateBatch(3, 3, 4, 1)]
    bench = Bench(stored=stored, dead_letters=True)
    assert [tuple(each) for each in dead_records(bench.partition)] == [(0, 1, 1, REJECTED), (2, 2, 5, LIMIT_REACHED)]
    assert bench.partition.start_offset == 0


def test_how_the_last_acquisition_ended_is_remembered() -> None:
    """By its lock, by its member, or with the member's session; also of a single offset of a batch."""
    bench = Bench()
    bench.fetch()
    bench.now_ms = LOCK_MS
    commit(bench.partition, expire(bench.partition, bench.now_ms))
    assert [state.last for _, _, state in bench.partition.runs()] == [("m1", 0, LOCK_MS, LOCK_ENDED)]
    bench.fetch("m2")
    bench.now_ms += 5
    bench.ack(3, 3, RELEASE, member="m2")
    commit(bench.partition, release(bench.partition, "m2", bench.now_ms))
    last_acquisitions = {first: state.last for first, _, state in bench.partition.runs()}
    assert last_acquisitions[3] == ("m2", LOCK_MS, LOCK_MS + 5, "released by its member")
    assert last_acquisitions[4] == ("m2", LOCK_MS, LOCK_MS + 5, SESSION_CLOSED)


def test_an_end_that_is_not_written_is_forgotten() -> None:
    """The record is with its member again."""
    bench = Bench([Span(0, 0)])
    bench.fetch()
    roll_back(bench.partition, acknowledge(bench.partition, "m1", [Acknowledgement(0, 0, [RELEASE])], 1), 1)
    assert [state.last for _, _, state in bench.partition.runs()] == [None]


def test_a_session_ends_with_its_connection_and_does_not_begin_after_it() -> None:
    """A request that was read before is served all the same, and its session would count for good."""
    sessions = ShareSessions(lambda: 1, lambda _session: None, lambda _group_id: None)
    connection = Connection("c1", "PLAINTEXT", "127.0.0.1", 40_000)
    for member_id, count in (("m1", 1), ("m2", 0)):
        request = ShareFetchRequest("g", member_id, 0, topics=())
        assert sessions.begin(request, SessionKey("g", member_id), connection, lambda _id: None).session is None
        assert len(sessions) == count
        connection.lose()
        assert len(sessions) == 0
