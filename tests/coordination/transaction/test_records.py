"""What each step writes, record by record: transactions B.3, with the effects that go with it."""

from broker.coordination.outcome import Reply, WriteMarkers
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.transaction import TransactionRecord
from tests.coordination.transaction.harness import BAR, FOO, START_MS, Bench, S


def record(state: S, epoch: int, **more: object) -> TransactionRecord:
    """A record of ``tx`` with producer id 1000, written at START_MS; ``more`` replaces fields."""
    fields: dict[str, object] = {
        "transactional_id": "tx",
        "producer_id": 1000,
        "producer_epoch": epoch,
        "timeout_ms": 60_000,
        "state": state,
        "partitions": None,
        "last_update_ms": START_MS,
        "start_ms": -1,
        "previous_producer_id": 1000,
        **more,
    }
    return TransactionRecord(**fields)  # type: ignore[arg-type]


def markers(epoch: int, committed: bool, version: int, *partitions: tuple[str, int]) -> WriteMarkers:
    """Markers of ``tx``."""
    return WriteMarkers("tx", 1000, epoch, committed, frozenset(partitions), version)


def test_IPI_06_a_new_id_is_written_empty() -> None:
    """A new transactional id is written as Empty with epoch 0, without partitions or start."""
    bench = Bench()
    assert bench.init(timeout_ms=45_000) == (1000, 0)
    assert bench.written == [record(S.EMPTY, 0, timeout_ms=45_000)]


def test_an_older_clients_transaction_keeps_its_epoch() -> None:
    """Begin, extend, prepare, complete: four records, one epoch, and the markers only after the reply."""
    bench = Bench()
    bench.init()
    bench.advance(10)
    bench.add((1000, 0), FOO)
    bench.advance(5)
    bench.add((1000, 0), FOO, BAR)
    bench.advance(5)
    assert bench.end((1000, 0), client_transaction_version=0) == (-1, -1)
    assert bench.effects == [Reply("me", (-1, -1)), markers(0, True, 0, FOO, BAR)]
    bench.advance(5)
    bench.write_markers()
    both = frozenset({FOO, BAR})
    begun = {"start_ms": START_MS + 10}
    assert bench.written[1:] == [
        record(S.ONGOING, 0, partitions=frozenset({FOO}), last_update_ms=START_MS + 10, **begun),
        record(S.ONGOING, 0, partitions=both, last_update_ms=START_MS + 15, **begun),
        record(S.PREPARE_COMMIT, 0, partitions=both, last_update_ms=START_MS + 20, **begun),
        record(S.COMPLETE_COMMIT, 0, partitions=frozenset(), last_update_ms=START_MS + 25, **begun),
    ]


def test_a_newer_clients_transaction_ends_one_epoch_on() -> None:
    """The Prepare record, the markers and the reply all have the next epoch (transactions E2-01)."""
    bench = Bench()
    bench.init()
    bench.add((1000, 0), FOO, client_transaction_version=2)
    assert bench.end((1000, 0)) == (1000, 1)
    assert bench.effects == [Reply("me", (1000, 1)), markers(1, True, 2, FOO)]
    bench.write_markers()
    begun = {"start_ms": START_MS, "client_transaction_version": 2}
    assert bench.written[1:] == [
        record(S.ONGOING, 0, partitions=frozenset({FOO}), **begun),
        record(S.PREPARE_COMMIT, 1, partitions=frozenset({FOO}), **begun),
        record(S.COMPLETE_COMMIT, 1, partitions=frozenset(), **begun),
    ]
    assert bench.machine.transactions["tx"].last_epoch == 0


def test_E2_05_the_abort_of_nothing_is_prepared_and_completed() -> None:
    """From Empty and from Complete: an empty set, a start of its own, the next epoch, and no marker anywhere."""
    bench = Bench()
    bench.init()
    bench.advance(7)
    assert bench.end((1000, 0), committed=False) == (1000, 1)
    assert bench.effects[1:] == [markers(1, False, 2)]
    bench.write_markers()
    begun = {"start_ms": START_MS + 7, "last_update_ms": START_MS + 7, "client_transaction_version": 2}
    assert bench.written[1:] == [
        record(S.PREPARE_ABORT, 1, partitions=frozenset(), **begun),
        record(S.COMPLETE_ABORT, 1, partitions=frozenset(), **begun),
    ]
    assert bench.end((1000, 1), committed=False) == (1000, 2), "a new operation, not a retry"


def test_E2_09_an_exhausted_epoch_rotates_the_producer_id_at_the_end() -> None:
    """The marker has the old id at 32767; the reply, and the Complete record, the new one at 0."""
    bench = Bench()
    bench.plant(S.EMPTY, 32766)
    bench.add((1000, 32766), FOO, client_transaction_version=2)
    assert bench.end((1000, 32766)) == (2000, 0)
    assert bench.effects[1:] == [markers(32767, True, 2, FOO)]
    prepared = bench.last
    bench.write_markers()
    begun = {"start_ms": START_MS, "client_transaction_version": 2}
    assert prepared == record(S.PREPARE_COMMIT, 32767, partitions=frozenset({FOO}), next_producer_id=2000, **begun)
    assert bench.last == record(S.COMPLETE_COMMIT, 0, partitions=frozenset(), producer_id=2000, **begun)
    assert bench.machine.transactions["tx"].last_epoch == 32766
    assert bench.end((1000, 32766)) == (2000, 0), "E2-10: the retry hears the same"
    assert bench.init(expected=(1000, 32766)) == (2000, 0)


def test_IPI_14_a_newer_cluster_fences_by_one_epoch_and_remembers_the_last() -> None:
    """A cluster with transaction.version 2 aborts an open transaction (transactions A.5)."""
    bench = Bench()
    bench.init()
    bench.add((1000, 0), FOO, client_transaction_version=2)
    assert bench.code(lambda: bench.init(expected=(1000, 0))) == 51
    assert bench.effects[1:] == [markers(1, False, 2, FOO)]
    assert bench.last == record(
        S.PREPARE_ABORT, 1, partitions=frozenset({FOO}), start_ms=START_MS, client_transaction_version=2
    )
    bench.write_markers()
    assert bench.init(expected=(1000, 0)) == (1000, 1)


def test_IPI_12_13_an_older_cluster_fences_and_forgets() -> None:
    """With transaction.version 1 a plain call goes on, the old producer is shut out (transactions A.5)."""
    for expected, code in (((-1, -1), 0), ((1000, 0), 90)):
        bench = Bench(version=1)
        bench.init()
        bench.add((1000, 0), FOO)
        assert bench.code(bench.init) == 51
        assert bench.effects[1:] == [markers(1, False, 0, FOO)]
        bench.write_markers()
        assert bench.state() == ("CompleteAbort", 1000, 1)
        assert bench.code(lambda e=expected, b=bench: b.init(expected=e)) == code  # type: ignore[misc]
        assert bench.state()[2] == (2 if code == 0 else 1)


def test_IPI_15_a_stale_epoch_aborts_a_live_transaction() -> None:
    """Quirk: the epoch is not compared while a transaction is open (transactions A.2 I5)."""
    bench = Bench()
    bench.plant(S.ONGOING, 5)
    assert bench.code(lambda: bench.init(expected=(1000, 2))) == 51
    bench.write_markers()
    assert bench.state() == ("CompleteAbort", 1000, 6)
    assert bench.code(lambda: bench.init(expected=(1000, 2))) == 90


def test_a_fence_at_the_last_epoch_goes_no_further() -> None:
    """32767 stays 32767; with transaction.version 2 the producer id rotates."""
    older = Bench(version=1)
    older.plant(S.ONGOING, 32767)
    assert older.code(older.init) == 51
    assert (older.last.producer_epoch, older.last.next_producer_id) == (32767, -1)
    newer = Bench()
    newer.plant(S.ONGOING, 32767)
    assert newer.code(newer.init) == 51
    assert (newer.last.producer_epoch, newer.last.next_producer_id) == (32767, 2000)
    newer.write_markers()
    assert newer.state() == ("CompleteAbort", 2000, 0)


def test_DSK_08_the_record_version_follows_the_feature() -> None:
    """transaction.version 0 writes version 0, which has no fields for what KIP-890 needs."""
    bench = Bench(version=0)
    bench.init()
    assert bench.log[-1][1] is not None
    assert bench.log[-1][1][:2] == b"\0\0"
    assert bench.code(lambda: bench.add((1000, 0), FOO, client_transaction_version=2)) == ErrorCode.UNSUPPORTED_VERSION
    bench = Bench(bench.log, version=0)  # until it is loaded again the id stays where the record failed
    bench.add((1000, 0), FOO)
    bench.version = 2
    assert bench.end((1000, 0), client_transaction_version=0) == (-1, -1)
    assert bench.log[-1][1] is not None
    assert bench.log[-1][1][:2] == b"\0\1"
    assert Bench(bench.log).state() == ("PrepareCommit", 1000, 0)


def test_an_id_is_not_begun_where_no_producer_id_is_to_be_had() -> None:
    """The allocator's error is the answer, and nothing changes."""
    bench = Bench()

    def refuse() -> int:
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    bench.machine._steps._next_producer_id = refuse
    assert bench.code(bench.init) == 14
    bench.plant(S.ONGOING, 32766)
    assert bench.code(lambda: bench.end((1000, 32766))) == 14
    assert (bench.log, bench.state()) == ([], ("Ongoing", 1000, 32766))
