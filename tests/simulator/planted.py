"""Mistakes in coordinators, logs, markers and replication that the simulator has to find, beside tests/mutants.

Each is a change of a few characters in the product; ``SEEDS`` has the seeds that find them.
"""

from broker.cluster.cluster import Cluster
from broker.coordination.coordinators import ProducerIds
from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.classic.membership import Membership
from broker.coordination.group.classic.rebalance import Rebalances
from broker.coordination.group.offsets.commit import Commits
from broker.coordination.group.offsets.store import Offsets
from broker.coordination.runtime import Runtime
from broker.coordination.transaction import completion
from broker.coordination.transaction.completion import Completions
from broker.coordination.transaction.transitions import Transitions
from broker.partitions import produce
from broker.partitions.transactions import markers
from broker.replication.coordinator_log import CoordinatorLog
from broker.replication.partition import ReplicatedPartition
from storage.log import recovery, truncation
from storage.log.offsets import LeaderEpochs
from storage.log.partition_log import PartitionLog
from storage.producers.state import ProducerStates
from tests.mutants.mutant import Mutant


def by_the_simulator() -> None:
    """No other test is named here."""


def mistake(text: str, function: object, old: str, new: str) -> Mutant:
    """A mistake, and where it is."""
    return Mutant(text, function, old, new, by_the_simulator)


PLANTED = [
    # --- replication
    mistake(
        "followers keep records that the leader does not have",
        ReplicatedPartition._cut_to,
        "if end < follower",
        "if 0 > follower",
    ),
    mistake(
        "a new leader starts no leader epoch", ReplicatedPartition._lead, "leader.epochs.assign(", "(lambda *_: None)("
    ),
    mistake(
        "the high watermark does not wait for followers",
        ReplicatedPartition.replicate,
        "lowest = min(ends, default=lowest)",
        "pass",
    ),
    mistake("min.insync.replicas is not enforced", ReplicatedPartition.append, "self.short_of_replicas", "False"),
    mistake(
        "a coordinator does not wait for the high watermark", Runtime._do, "self._log.high_watermark < end", "False"
    ),
    mistake(
        "a returning leader does not truncate its followers",
        ReplicatedPartition.host,
        "self._lead(self.state)",
        "log.epochs.assign(self.state.leader_epoch, log.log_end_offset)",
    ),
    mistake(
        "acks=all does not wait for replicas", produce._settled, "high_watermark > info", "high_watermark >= 0 * info"
    ),
    mistake(
        "followers copy one batch too few",
        ReplicatedPartition._copy,
        "follower.append_as_follower(piece.buffers,",
        "follower.append_as_follower(piece.buffers[:-1] or piece.buffers,",
    ),
    # --- logs
    mistake(
        "truncation keeps producer state",
        truncation._forget_producers,
        "log.producer_log.rebuild(",
        "(lambda *_: None)(",
    ),
    mistake("truncation keeps leader epochs", LeaderEpochs.truncate_from_end, "entry.start_offset < offset", "True"),
    mistake("a restart forgets open transactions", ProducerStates.restore, "sorted(", "(lambda _: ())("),
    mistake("log recovery drops producer state", recovery._restore_producers, "if states.producers:", "if False:"),
    mistake(
        "log recovery skips batches of idempotent producers",
        recovery.rebuild,
        "if batch.producer_id >= 0:",
        "if False:",
    ),
    mistake(
        "an ended transaction still holds back the last stable offset",
        ProducerStates._apply_marker,
        "self._ongoing.pop(first, None)",
        "pass",
    ),
    mistake(
        "a marker does not end its producer's transaction",
        ProducerStates._apply_marker,
        "entry.transaction_first_offset = None",
        "pass",
    ),
    mistake(
        "a follower keeps no producer state", PartitionLog.append_as_follower, "if batch.producer_id >= 0:", "if False:"
    ),
    # --- coordinators' runtime
    mistake(
        "loading a coordinator skips markers", Runtime._replay_log, "self.machine.replay_marker(", "(lambda *_: None)("
    ),
    mistake(
        "loading a coordinator commits pending offsets",
        Runtime._replay_log,
        "if batch.is_transactional:",
        "if False:",
    ),
    mistake(
        "a coordinator's records ignore min.insync.replicas",
        CoordinatorLog.append,
        "all_in_sync=self._all_in_sync()",
        "all_in_sync=False",
    ),
    mistake(
        "a coordinator does not act on what it has written",
        Runtime._do,
        "self._effects(outcome.effects)",
        "outcome.records or self._effects(outcome.effects)",
    ),
    # --- transactions
    mistake(
        "a marker counts as written although its broker did not answer",
        markers.Markers._write,
        "ErrorCode.NETWORK_EXCEPTION",
        "ErrorCode.NONE",
    ),
    mistake(
        "failed markers are not sent again",
        Completions._send_again,
        "effects=(markers_of(stored[0], stored[1].take_retries()),)",
        "effects=()",
    ),
    mistake(
        "group coordinators ignore transaction markers", markers.write_marker, "if shard is not None:", "if False:"
    ),
    mistake(
        "only the first partition gets its marker",
        markers.Markers._send,
        "places.pop(0), report)",
        "places.pop(0), report) or places.clear()",
    ),
    mistake(
        "a commit completes as an abort", Transitions.completed, "COMPLETED_BY[old.state]", "max(COMPLETED_BY.values())"
    ),
    mistake(
        "an open transaction is aborted before its timeout",
        completion.timed_out,
        "record.start_ms + record.timeout_ms <",
        "record.start_ms <",
    ),
    # --- producer ids
    mistake("a producer id is assigned twice", ProducerIds.next, "return self._left.pop()", "return self._left[-1]"),
    mistake(
        "blocks of producer ids overlap",
        Cluster.allocate_producer_ids,
        "range(start, self",
        "range(max(start - 998, 0), self",
    ),
    # --- groups
    mistake(
        "a member of an old generation may commit",
        ClassicGroup.check_generation,
        "generation != self.generation",
        "False",
    ),
    mistake(
        "members keep the assignment of the previous generation",
        ClassicGroup.finished,
        "member.assignment = stored.assignment",
        "pass",
    ),
    mistake(
        "a rebalance does not increment the generation",
        ClassicGroup.next_generation,
        "self.generation += 1",
        "self.generation = max(self.generation, 1)",
    ),
    mistake(
        "loading a group forgets its generation",
        ClassicGroup.restored,
        "group.generation = record.generation",
        "pass",
    ),
    mistake(
        "all members get the same assignment",
        Membership._assign,
        'leader_assignments.get(member_id, b"")',
        'max(leader_assignments.values(), default=b"")',
    ),
    mistake(
        "SyncGroup returns assignments that are not replicated",
        Membership.sync,
        "group.group_id not in self.unreplicated",
        "True",
    ),
    mistake(
        "a member that did not rejoin stays in the group", Rebalances.complete, "group.remove(member.member_id)", "pass"
    ),
    mistake("a rebalance never completes", Rebalances.complete, "if group.state is State.EMPTY:", "if True:"),
    mistake("OffsetFetch ignores require_stable", Commits.fetch, "if require_stable else", "if False else"),
    mistake(
        "committed offsets are stored one too low",
        Commits._store,
        "partition.committed_offset,",
        "partition.committed_offset - 1,",
    ),
    mistake(
        "only the first commit of a partition is kept",
        Offsets.commit,
        "[commit.partition] = CommittedOffset(commit, at)",
        ".setdefault(commit.partition, CommittedOffset(commit, at))",
    ),
]

SEEDS: dict[str, int] = {
    "log recovery drops producer state": 202,
    "log recovery skips batches of idempotent producers": 204,
    "an ended transaction still holds back the last stable offset": 204,
    "group coordinators ignore transaction markers": 204,
    "committed offsets are stored one too low": 204,
    "only the first commit of a partition is kept": 204,
    "the transaction coordinator accepts a lower producer epoch": 204,
    "an abort commits the transaction's offsets": 204,
    "EndTxn v5 does not bump the producer epoch": 500,
    "a follower keeps no producer state": 500,
    "a marker does not end its producer's transaction": 500,
    "a producer id is assigned twice": 500,
    "a commit completes as an abort": 500,
    "an abort writes commit markers": 500,
    "an aborted transaction is not reported to consumers": 500,
    "aborting an empty transaction is refused, as before 4.0": 500,
    "a new producer epoch keeps the batches of the previous one": 500,
    "Produce v12 verifies partitions but does not add them": 500,
    "a coordinator does not act on what it has written": 500,
    "transactional batches are not verified": 500,
    "only the first partition gets its marker": 500,
    "the first record of a transactional id overrides later ones": 500,
    "the last stable offset is the high watermark": 500,
    "an open transaction is aborted before its timeout": 500,
    "InitProducerId v3 returns PRODUCER_FENCED": 501,
    "a commit drops the transaction's offsets": 501,
    "a sequence gap is accepted": 501,
    "loading a coordinator skips markers": 501,
    "the transaction coordinator accepts a higher producer epoch": 501,
    "a new producer epoch may begin at any sequence": 501,
    "a partition accepts a lower producer epoch": 501,
    "a ListTransactions pattern matches part of an id": 501,
    "a rebalance never completes": 501,
    "the transaction coordinator accepts any producer id": 501,
    "EndTxn returns PRODUCER_FENCED to older clients": 501,
    "a transactional id with an open transaction expires": 501,
    "a rebalance does not increment the generation": 501,
    "AddPartitionsToTxn adds known partitions beside unknown ones": 501,
    "all members get the same assignment": 502,
    "duplicate batches are appended again": 504,
    "loading a group forgets its generation": 505,
    "members keep the assignment of the previous generation": 507,
    "loading a coordinator commits pending offsets": 600,
    "after the last epoch, markers carry the next producer id": 610,
    "a new leader starts no leader epoch": 94000,
}
"""Mistake -> a seed whose run finds it; the others were not found yet."""
