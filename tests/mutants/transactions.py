"""The mistakes that mocks make with transactions, made on purpose: each is noticed by the row that speaks of it."""

from broker.coordination.group.offsets.store import Offsets
from broker.coordination.transaction import completion, listing, rules, transitions
from broker.coordination.transaction.completion import Completion, markers_of
from broker.coordination.transaction.machine import TransactionMachine
from broker.coordination.transaction.transitions import Transitions
from broker.handlers import add_partitions_to_txn, end_txn, init_producer_id
from broker.partitions.transactions import verification
from broker.partitions.transactions.markers import Markers
from protocol.log_records import transaction as log_records
from storage.log.partition_log import PartitionLog
from storage.producers.state import ProducerStates, Verifications, _find_duplicate
from tests.coordination.transaction import test_recovery, test_scans
from tests.mutants.mutant import Mutant
from tests.scenarios.transactions import (
    test_add,
    test_admin,
    test_end,
    test_idempotence,
    test_init,
    test_isolation,
    test_offsets,
    test_verification,
)


async def offsets_of_an_abort() -> None:
    """An abort leaves the old offset (transactions GRP-03)."""
    await test_offsets.test_GRP_01_02_03_pending_until_the_marker(commit=False)


async def offsets_of_a_commit() -> None:
    """A commit makes pending offsets visible (transactions GRP-02)."""
    await test_offsets.test_GRP_01_02_03_pending_until_the_marker(commit=True)


async def zombie_of_version_1() -> None:
    """An epoch that is not the stored one is refused (transactions ADD-08)."""
    await test_add.test_ADD_08_strangers_and_zombies(version=1)


async def ended_by_a_zombie() -> None:
    """A stale producer ends nothing (transactions E1-06)."""
    await test_end.test_E1_06_strangers_and_zombies(version=1)


async def overtaken_by_a_marker() -> None:
    """A marker between verification and append fails the append (transactions VER-11)."""
    await test_verification.test_VER_11_a_marker_overtakes_the_append(overtaken=True)


TRANSACTIONS = [
    # --- fencing
    Mutant(
        "the transaction coordinator accepts a lower producer epoch",
        rules.check_epoch,
        "producer_epoch != stored",
        "producer_epoch > stored",
        zombie_of_version_1,
        simulated=("none", 204),
    ),
    Mutant(
        "the transaction coordinator accepts a higher producer epoch",
        rules.check_epoch,
        "!= stored",
        "< stored",
        zombie_of_version_1,
        simulated=("none", 501),
    ),
    Mutant(
        "the transaction coordinator accepts any producer id",
        rules.check_producer_id,
        "producer_id != stored.producer_id",
        "producer_id < 0",
        zombie_of_version_1,
        simulated=("none", 501),
    ),
    Mutant(
        "EndTxn returns PRODUCER_FENCED to older clients",
        end_txn.refuse,
        "and not",
        "and",
        ended_by_a_zombie,
        simulated=("none", 501),
    ),
    Mutant(
        "InitProducerId v3 returns PRODUCER_FENCED",
        init_producer_id.refuse,
        "and not",
        "and",
        test_init.test_IPI_08_09_10_a_known_producer_bumps_once,
        simulated=("none", 501),
    ),
    Mutant(
        "InitProducerId accepts a foreign producer id",
        transitions.check_expected,
        "if expected == NO_PRODUCER or",
        "if True or",
        test_init.test_IPI_11_strangers_and_the_future,
        simulated=("rules,hold", 92000),
    ),
    Mutant(
        "a partition accepts a lower producer epoch",
        ProducerStates._check_epoch,
        "producer_epoch < entry",
        "producer_epoch < 0 * entry",
        test_idempotence.test_SEQ_06_07_epochs,
        simulated=("none", 501),
    ),
    Mutant(
        "a partition accepts a marker of an older coordinator epoch",
        ProducerStates._check_marker,
        "marker.coordinator_epoch < entry.coordinator_epoch",
        "marker.coordinator_epoch < 0",
        test_admin.test_MRK_04_coordinator_epochs_do_not_go_back,
        simulated=("rules,hold", 92000),
    ),
    Mutant(
        "with transaction.version 2, a marker may have its data's epoch",
        ProducerStates._check_marker,
        "transaction_version >= 2",
        "transaction_version >= 3",
        test_admin.test_MRK_06_07_the_stricter_rule,
        simulated=("rules,hold", 92000),
    ),
    # --- epochs
    Mutant(
        "EndTxn v5 does not bump the producer epoch",
        Transitions._bumped,
        "epoch=min(old.producer_epoch + 1, most)",
        "epoch=old.producer_epoch",
        test_end.test_E2_01_to_05_an_epoch_serves_one_transaction,
        simulated=("none", 500),
    ),
    Mutant(
        "fencing bumps the epoch twice, as in 4.0.0",
        Transitions._bumped,
        "old.producer_epoch + 1",
        "old.producer_epoch + 2",
        test_init.test_IPI_14_a_newer_cluster_lets_it_come_back,
        simulated=("rules,hold", 92000),
    ),
    Mutant(
        "a retried InitProducerId bumps the epoch again",
        transitions.assign,
        "Assignment(stored.producer_id, epoch, stored",
        "Assignment(stored.producer_id, epoch + 1, stored",
        test_init.test_IPI_08_09_10_a_known_producer_bumps_once,
        simulated=("rules,hold", 92000),
    ),
    Mutant(
        "a producer is assigned epoch 32767",
        transitions.is_exhausted,
        ">= LAST_GIVEN_EPOCH",
        "> LAST_GIVEN_EPOCH",
        test_init.test_IPI_16_17_18_26_the_end_of_the_epochs,
        simulated=("rules,hold", 92000),
    ),
    Mutant(
        "after the last epoch, a retried EndTxn is not recognised",
        rules.end_by_newer_client,
        "stored.producer_epoch == 0",
        "stored.producer_epoch == 1",
        test_end.test_E2_09_10_the_last_epoch,
        simulated=("rules,hold", 92000),
    ),
    Mutant(
        "the next producer id is not logged",
        log_records._tags,
        "record.next_producer_id != NO_PRODUCER_ID",
        "False",
        test_end.test_E2_11_the_rotation_survives_the_coordinator_before_the_markers,
        simulated=("coordinators", 100),
    ),
    Mutant(
        "after the last epoch, markers carry the next producer id",
        markers_of,
        "record.producer_id",
        "max(record.producer_id, record.next_producer_id)",
        test_end.test_E2_09_10_the_last_epoch,
        simulated=("none", 610),
    ),
    # --- the window between prepare and complete
    Mutant(
        "a new transaction may begin before the markers are written",
        TransactionMachine.add_partitions,
        "self._in_transition(name)",
        "False",
        test_add.test_ADD_09_10_before_the_markers_are_written,
        simulated=("coordinators", 2031),
    ),
    Mutant(
        "a transaction completes before its markers are written",
        Completion.note,
        "if not self.outstanding",
        "if True",
        test_admin.test_MRK_10_a_silent_leader_is_waited_for,
        simulated=("coordinators", 3005),
    ),
    Mutant(
        "a new coordinator does not send pending markers",
        TransactionMachine.loaded,
        "for name in self.completions",
        "for name in ()",
        test_end.test_LOAD_02_the_next_coordinator_writes_the_markers,
        simulated=("consumer,share,lag,change,rules,hold", 91000),
    ),
    Mutant(
        "a transaction waits for partitions without a leader",
        Markers._write,
        "partition is None or partition.leader == NO_LEADER",
        "partition is None",
        test_admin.test_MRK_10_a_fenced_leader_is_left_out,
    ),
    Mutant(
        "an abort writes commit markers",
        markers_of,
        "record.state is TransactionState.PREPARE_COMMIT",
        "True",
        test_isolation.test_FET_01_02_03_an_aborted_transaction,
        simulated=("none", 500),
    ),
    # --- timeouts
    Mutant(
        "a transaction is aborted at its deadline, not after it",
        completion.timed_out,
        "< now_ms",
        "<= now_ms",
        test_scans.test_a_scan_leaves_alone_what_is_due_at_its_very_instant,
    ),
    Mutant(
        "adding partitions extends the transaction timeout",
        Transitions.added,
        "now_ms if begins else old.start_ms",
        "now_ms",
        test_end.test_TMO_05_work_does_not_extend_the_timeout,
        simulated=("rules,hold", 93000),
    ),
    Mutant(
        "a transactional id with an open transaction expires",
        completion.Scans._idle,
        "record.state in IDLE",
        "True",
        test_end.test_EXP_01_02_an_unused_id_expires,
        simulated=("none", 501),
    ),
    Mutant(
        "a failed fence bumps the epoch again",
        Transitions.fenced,
        "old.producer_epoch if keep_epoch else",
        "",
        test_init.test_a_refused_fence_bumps_once,
    ),
    # --- partitions and verification
    Mutant(
        "AddPartitionsToTxn adds known partitions beside unknown ones",
        add_partitions_to_txn._refused_partitions,
        "if not refused:",
        "if True:",
        test_add.test_ADD_04_all_or_nothing,
        simulated=("none", 501),
    ),
    Mutant(
        "aborting an empty transaction is refused, as before 4.0",
        rules.end_by_newer_client,
        "or not request.committed",
        "",
        test_end.test_E2_06_07_nothing_to_end,
        simulated=("none", 500),
    ),
    Mutant(
        "Produce v12 verifies partitions but does not add them",
        verification.verify,
        "Mode.ADD if",
        "Mode.VERIFY if",
        test_verification.test_VER_13_the_partition_joins_even_if_the_batch_fails,
        simulated=("none", 500),
    ),
    Mutant(
        "transactional batches are not verified",
        verification.verify,
        "if mode is Mode.VERIFY and not",
        "if mode is Mode.VERIFY or not",
        test_verification.test_VER_01_02_a_partition_that_was_not_added,
        simulated=("none", 500),
    ),
    Mutant(
        "a verification guard outlives the marker",
        Verifications.ended,
        "del self._entries[producer_id]",
        "pass",
        overtaken_by_a_marker,
        simulated=("coordinators", 300),
    ),
    # --- sequences
    Mutant(
        "duplicate batches are appended again",
        _find_duplicate,
        "known.first_sequence == first",
        "known.first_sequence == -2",
        test_idempotence.test_DUP_01_a_duplicate,
        simulated=("none", 504),
    ),
    Mutant(
        "a sequence gap is accepted",
        ProducerStates._check_sequence,
        "sequence != last + 1",
        "sequence < last + 1",
        test_idempotence.test_SEQ_02_a_gap,
        simulated=("none", 501),
    ),
    Mutant(
        "a new producer epoch may begin at any sequence",
        ProducerStates._check_sequence,
        "if sequence != 0:",
        "if False:",
        test_idempotence.test_SEQ_06_07_epochs,
        simulated=("none", 501),
    ),
    Mutant(
        "a new producer epoch keeps the batches of the previous one",
        ProducerStates._entry,
        "entry.batches = ()",
        "pass",
        test_verification.test_VER_15_each_transaction_counts_from_0,
        simulated=("none", 500),
    ),
    # --- what consumers see
    Mutant(
        "the last stable offset is the high watermark",
        PartitionLog.last_stable_offset.fget,  # type: ignore[attr-defined]
        "if first is None or",
        "if True or",
        test_isolation.test_LSO_01_an_open_transaction,
        simulated=("none", 500),
    ),
    Mutant(
        "an aborted transaction is not reported to consumers",
        ProducerStates._apply_marker,
        "not marker.committed",
        "False",
        test_isolation.test_FET_01_02_03_an_aborted_transaction,
        simulated=("none", 500),
    ),
    # --- offsets
    Mutant(
        "an abort commits the transaction's offsets",
        Offsets.end_transaction,
        "if not committed",
        "if False",
        offsets_of_an_abort,
        simulated=("none", 204),
    ),
    Mutant(
        "a commit drops the transaction's offsets",
        Offsets.end_transaction,
        "if not committed",
        "if True",
        offsets_of_a_commit,
        simulated=("none", 501),
    ),
    # --- recovery and lists
    Mutant(
        "the first record of a transactional id overrides later ones",
        TransactionMachine.replay,
        "self.transactions[name] = record",
        "self.transactions.setdefault(name, record)",
        test_recovery.test_a_later_value_replaces_an_earlier_one,
        simulated=("none", 500),
    ),
    Mutant(
        "a ListTransactions pattern matches part of an id",
        listing.TransactionFilter.accepts,
        "fullmatch",
        "search",
        test_admin.test_LIST_04_patterns,
        simulated=("none", 501),
    ),
]
