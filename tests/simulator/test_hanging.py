"""Which transactions the simulator excuses as those that hang in Kafka, too; planted mistakes are found beside them."""

from types import SimpleNamespace
from typing import Any, cast

from broker.partitions.transactions.markers import MarkerNote
from protocol.log_records.transaction import TransactionRecord, TransactionState, encode
from protocol.records.records import Record, build_batch
from simulator.checker import check
from simulator.cluster import Servers
from simulator.hanging import SKIPPED, UNREPLICATED, HangingTransactions, Uncertain, unreplicated
from simulator.history import History, Place, Sent, Transaction
from storage.append_info import AppendOrigin
from storage.log.partition_log import PartitionLog
from tests.storage.logs import NOW_MS, Tree

A, B = ("a", 0), ("b", 0)


def history(*transactions: Transaction) -> History:
    """A history of transactions, each of which lost a record that was acknowledged."""
    trace = History(lambda: 0)
    for each in transactions:
        each.outcome = "committed"
        value = str(each).encode()
        trace.transactions.append(each)
        trace.records[value] = Sent(value, A, each.instance, 1, each, "acked", 0)
    return trace


def judged(history: History, servers: object, *loaded: Uncertain) -> tuple[list[str], list[str]]:
    """What is broken, and what is excused, if coordinators had loaded these transactions."""
    hanging = HangingTransactions(cast("Servers", servers))
    hanging.note(loaded)
    hanging.settle(history)
    check(history, {A: []})
    return hanging.judged(history)


def never_raised(_producer_id: int, _epoch: int) -> tuple[int, ...]:
    """No fault has raised an epoch."""
    return ()


def cluster(*, lost: bool, **fields: Any) -> object:
    """A cluster whose log of transactions has the leader epoch 5 up to offset 10, or nothing of it."""
    epochs = SimpleNamespace(end_offset_for=lambda epoch, end: (epoch, end) if not lost else (epoch - 1, 4))
    leader = SimpleNamespace(epochs=epochs, log_end_offset=10)
    partition = SimpleNamespace(logs={1: leader}, state=SimpleNamespace(leader=1))
    partitions = {("__transaction_state", 0): partition}
    own = SimpleNamespace(partitions=partitions)
    return SimpleNamespace(cluster=own, left_out_markers=[], epochs_before=never_raised, **fields)


def test_one_transaction_is_excused_and_each_other_one_counts() -> None:
    """The one of that id, producer id and epoch that had begun; not those before it or after it, nor of another id."""
    own = [Transaction("x", "x.1", n, producer_id=7, epoch=3, begun_ms=n * 10) for n in (1, 2, 3)]
    others = [
        Transaction("y", "y.1", 1, producer_id=7, epoch=3, begun_ms=5),
        Transaction("x", "x.2", 1, producer_id=7, epoch=4, begun_ms=5),
        Transaction("x", "x.3", 1, producer_id=8, epoch=3, begun_ms=5),
    ]
    loaded = Uncertain("x", 7, (3,), frozenset({A}), 25, (0, 8, 5))
    broken, excused = judged(history(*own, *others), cluster(lost=True), loaded)
    assert [each.partition(" of x.1 ")[0] for each in excused] == ["transaction 2"]
    assert excused[0].endswith(UNREPLICATED)
    assert len(broken) == 5


def test_nothing_is_excused_if_the_record_is_still_there() -> None:
    """It was replicated later: the next coordinator knows the transaction."""
    own = Transaction("x", "x.1", 1, producer_id=7, epoch=3)
    broken, excused = judged(history(own), cluster(lost=False), Uncertain("x", 7, (3,), frozenset({A}), 25, (0, 8, 5)))
    assert (len(broken), excused) == (1, [])


def test_a_skipped_marker_excuses_its_transaction() -> None:
    """The marker has the epoch after that of the data; the client may have begun the next transaction meanwhile."""
    own = [Transaction("x", "x.1", n, producer_id=7, epoch=n, begun_ms=n * 10) for n in (1, 2, 3, 4)]
    note = MarkerNote(30, "x", "left out", 7, 3, True, A)
    servers = SimpleNamespace(left_out_markers=[note], epochs_before=never_raised)
    broken, excused = judged(history(*own), servers)
    assert [each.partition(" of x.1 ")[0] for each in excused] == ["transaction 2", "transaction 3"]
    assert excused[0].endswith(SKIPPED)
    assert [each.partition(" of x.1 ")[0] for each in broken] == ["transaction 1", "transaction 4"]


def test_a_transaction_whose_epoch_was_raised_is_excused_by_the_epoch_of_its_records() -> None:
    """A fault raised it from 3 to 32765 while it was open (seed 318758334); one of epoch 2 counts."""
    own = [Transaction("x", "x.1", n, producer_id=7, epoch=n, begun_ms=n * 10) for n in (2, 3)]
    note = MarkerNote(40, "x", "left out", 7, 32_766, False, A)
    raised = {(7, 32_765): (3,)}
    servers = SimpleNamespace(left_out_markers=[note], epochs_before=lambda *at: raised.get(at, ()))
    broken, excused = judged(history(*own), servers)
    assert [each.partition(" of x.1 ")[0] for each in excused] == ["transaction 3"]
    assert [each.partition(" of x.1 ")[0] for each in broken] == ["transaction 2"]
    servers.epochs_before = never_raised
    assert len(judged(history(*own), servers)[0]) == 2


def log_of(*states: tuple[str, TransactionState, int, frozenset[Place]], replicated: int) -> PartitionLog:
    """A log of transactional ids with their states, epochs and partitions, and with that high watermark."""
    log = Tree(None).log("__transaction_state")
    for name, state, epoch, places in states:
        record = Record(0, NOW_MS, *encode(TransactionRecord(name, 7, epoch, 10_000, state, places, NOW_MS)))
        log.append_as_leader(build_batch([record]), leader_epoch=5, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR)
    log.advance_high_watermark(replicated)
    return log


def test_what_is_not_replicated_of_a_transaction() -> None:
    """Partitions that only those records have; a decision may be lost, too; what has completed cannot be."""
    state, both = TransactionState, frozenset({A, B})
    log = log_of(
        ("x", state.ONGOING, 3, frozenset({A})),
        ("y", state.ONGOING, 3, frozenset({A})),
        ("x", state.ONGOING, 3, both),
        ("y", state.PREPARE_COMMIT, 4, frozenset({A})),
        ("z", state.COMPLETE_COMMIT, 4, frozenset()),
        replicated=2,
    )
    assert unreplicated(log, 1, 20) == [
        Uncertain("x", 7, (3,), frozenset({B}), 20, (1, 2, 5)),
        Uncertain("y", 7, (3, 4), frozenset(), 20, (1, 3, 5)),
    ]
    log.advance_high_watermark(5)
    assert unreplicated(log, 1, 20) == []


def test_only_what_the_coordinator_does_not_know_hangs_in_kafka_too() -> None:
    """Open in that partition, by that producer in that epoch: each other transaction that stays open is a mistake."""
    opened = {
        7: SimpleNamespace(transaction_first_offset=10, producer_epoch=3, coordinator_epoch=6),
        8: SimpleNamespace(transaction_first_offset=2, producer_epoch=3, coordinator_epoch=6),
    }
    servers: Any = cluster(lost=True)
    leader = SimpleNamespace(producers=SimpleNamespace(producers=opened))
    servers.cluster.partitions[A] = SimpleNamespace(logs={2: leader}, state=SimpleNamespace(leader=2))
    known: dict[str, object] = {}
    shard = SimpleNamespace(machine=SimpleNamespace(transactions=known))
    servers.cluster.nodes = {1: SimpleNamespace(coordinators=SimpleNamespace(transactions={0: shard}))}
    hanging = HangingTransactions(servers)
    hanging.note([Uncertain("x", 7, (3,), frozenset({A, B}), 25, (0, 8, 5))])
    (transaction,) = hanging.hanging()
    assert (
        transaction.place,
        transaction.offset,
        transaction.producer_id,
        transaction.epoch,
        transaction.coordinator_epoch,
    ) == (A, 10, 7, 3, 6)
    known["x"] = SimpleNamespace(producer_id=7, partitions=frozenset({A}))  # it will be ended by its coordinator
    assert hanging.hanging() == []
    known["x"] = SimpleNamespace(producer_id=9, partitions=frozenset({A}))  # a marker of another id does not end it
    assert hanging.hanging() == [transaction]
    known["x"], opened[7].producer_epoch = SimpleNamespace(producer_id=7, partitions=frozenset({B})), 4
    assert hanging.hanging() == []
