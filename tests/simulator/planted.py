"""Mistakes in coordinators, logs, markers and replication that the simulator has to find, beside tests/mutants.

Each is a change of a few characters in the product; docs/simulator.md has the seeds that find them.
"""

from broker.cluster.cluster import Cluster
from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.classic.membership import Membership
from broker.coordination.group.classic.rebalance import Rebalances
from broker.coordination.group.offsets.commit import Commits
from broker.coordination.group.offsets.store import Offsets
from broker.coordination.producer_ids import ProducerIds
from broker.coordination.runtime import Runtime
from broker.coordination.transaction.completion import Completions
from broker.coordination.transaction.transitions import Transitions
from broker.produce import acks
from broker.replication.coordinator_log import CoordinatorLog
from broker.replication.partition import ReplicatedPartition
from broker.transactions import markers
from storage.leader_epochs import LeaderEpochs
from storage.log import recovery, truncation
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
        "followers keep what the leader does not have",
        ReplicatedPartition._cut_to,
        "if end < follower",
        "if 0 > follower",
    ),
    mistake("a new leader begins no epoch", ReplicatedPartition._lead, "leader.epochs.assign(", "(lambda *_: None)("),
    mistake(
        "the high watermark waits for no replica",
        ReplicatedPartition.replicate,
        "lowest = min(ends, default=lowest)",
        "pass",
    ),
    mistake("too few replicas are enough", ReplicatedPartition.append, "self.short_of_replicas", "False"),
    mistake("a coordinator waits for no replica", Runtime._do, "self._log.high_watermark < end", "False"),
    mistake(
        "a leader that comes back cuts no follower",
        ReplicatedPartition.host,
        "self._lead(self.state)",
        "log.epochs.assign(self.state.leader_epoch, log.log_end_offset)",
    ),
    mistake("acks=all does not wait", acks._settled, "high_watermark > info", "high_watermark >= 0 * info"),
    mistake(
        "followers copy one batch too few",
        ReplicatedPartition._copy,
        "follower.append_as_follower(piece.buffers,",
        "follower.append_as_follower(piece.buffers[:-1] or piece.buffers,",
    ),
    # --- logs
    mistake(
        "a cut log keeps its producers", truncation._forget_producers, "log.producer_log.rebuild(", "(lambda *_: None)("
    ),
    mistake("a cut log keeps its epochs", LeaderEpochs.truncate_from_end, "entry.start_offset < offset", "True"),
    mistake("a restart forgets open transactions", ProducerStates.restore, "sorted(", "(lambda _: ())("),
    mistake("recovery forgets the producers", recovery._restore_producers, "if states.producers:", "if False:"),
    mistake(
        "recovery passes over the batches of producers", recovery.rebuild, "if batch.producer_id >= 0:", "if False:"
    ),
    mistake("an ended transaction stays open", ProducerStates._apply_marker, "self._ongoing.pop(first, None)", "pass"),
    mistake("a marker ends nothing", ProducerStates._apply_marker, "entry.transaction_first_offset = None", "pass"),
    mistake("a follower ignores producers", PartitionLog.append_as_follower, "if batch.producer_id >= 0:", "if False:"),
    # --- coordinators' runtime
    mistake("a load skips markers", Runtime._replay_log, "self.machine.replay_marker(", "(lambda *_: None)("),
    mistake(
        "a load takes pending offsets for committed ones",
        Runtime._replay_log,
        "if batch.is_transactional:",
        "if False:",
    ),
    mistake(
        "a coordinator's records need no replicas",
        CoordinatorLog.append,
        "all_in_sync=self._all_in_sync()",
        "all_in_sync=False",
    ),
    mistake(
        "nothing is done after an append",
        Runtime._do,
        "self._effects(outcome.effects)",
        "outcome.records or self._effects(outcome.effects)",
    ),
    # --- transactions
    mistake(
        "markers to a silent broker count as written",
        markers.Markers._write,
        "ErrorCode.NETWORK_EXCEPTION",
        "ErrorCode.NONE",
    ),
    mistake(
        "markers are not sent again",
        Completions._send_again,
        "effects=(markers_of(found[0], found[1].take_again()),)",
        "effects=()",
    ),
    mistake("group coordinators do not see markers", markers.write_marker, "if shard is not None:", "if False:"),
    mistake(
        "only the first partition gets its marker",
        markers.Markers._send,
        "places.pop(0), report)",
        "places.pop(0), report) or places.clear()",
    ),
    mistake(
        "an abort completes as a commit", Transitions.completed, "COMPLETED_BY[old.state]", "max(COMPLETED_BY.values())"
    ),
    # --- producer ids
    mistake("a producer id is given twice", ProducerIds.next, "return self._left.pop()", "return self._left[-1]"),
    mistake(
        "blocks of producer ids overlap",
        Cluster.allocate_producer_ids,
        "range(start, self",
        "range(max(start - 998, 0), self",
    ),
    # --- groups
    mistake("old generations may commit", ClassicGroup.check_generation, "generation != self.generation", "False"),
    mistake(
        "members keep the assignment of the last generation",
        ClassicGroup.finished,
        "member.assignment = stored.assignment",
        "pass",
    ),
    mistake(
        "the number of the generation stays",
        ClassicGroup.next_generation,
        "self.generation += 1",
        "self.generation = max(self.generation, 1)",
    ),
    mistake(
        "a restart forgets the generation",
        ClassicGroup.restored,
        "group.generation = record.generation",
        "pass",
    ),
    mistake(
        "the leader's assignments go to all",
        Membership._assign,
        'given.get(member_id, b"")',
        'max(given.values(), default=b"")',
    ),
    mistake("who did not join stays a member", Rebalances.complete, "group.remove(member.member_id)", "pass"),
    mistake("a rebalance never ends", Rebalances.complete, "if group.state is State.EMPTY:", "if True:"),
    mistake("pending offsets are shown as old ones", Commits.fetch, "if require_stable else", "if False else"),
    mistake("offsets are off by one", Commits._store, "partition.committed_offset,", "partition.committed_offset - 1,"),
    mistake(
        "an offset is kept only the first time",
        Offsets.commit,
        "[commit.partition] = CommittedOffset(commit, at)",
        ".setdefault(commit.partition, CommittedOffset(commit, at))",
    ),
]

SEEDS: dict[str, int] = {
    "recovery forgets the producers": 202,
    "recovery passes over the batches of producers": 204,
    "an ended transaction stays open": 204,
    "group coordinators do not see markers": 204,
    "offsets are off by one": 204,
    "an offset is kept only the first time": 204,
    "any epoch may add partitions": 204,
    "an abort commits the offsets": 204,
    "EndTxn v5 keeps the epoch": 500,
    "a follower ignores producers": 500,
    "a marker ends nothing": 500,
    "a producer id is given twice": 500,
    "an abort completes as a commit": 500,
    "an abort is marked as a commit": 500,
    "an abort is hidden from consumers": 500,
    "an empty abort is refused, as before 4.0": 500,
    "an epoch keeps the last one's batches": 500,
    "markers are not sent again": 574,
    "newer batches are only verified": 500,
    "nothing is done after an append": 500,
    "nothing is verified": 500,
    "only the first partition gets its marker": 500,
    "the newest record is not the one that counts": 500,
    "the stable offset is the high watermark": 500,
    "InitProducerId v3 hears PRODUCER_FENCED": 501,
    "a commit forgets the offsets": 501,
    "a gap is taken": 501,
    "a load skips markers": 501,
    "a higher epoch is taken for the current one": 501,
    "a new transaction goes on counting": 501,
    "a partition takes lower epochs": 501,
    "a pattern matches a part of the id": 501,
    "a rebalance never ends": 501,
    "any producer id may act": 501,
    "old clients hear of fencing": 501,
    "open transactions expire": 501,
    "the number of the generation stays": 501,
    "what exists is added though something is missing": 501,
    "the leader's assignments go to all": 502,
    "duplicates are appended again": 504,
    "a restart forgets the generation": 505,
    "members keep the assignment of the last generation": 507,
    "a load takes pending offsets for committed ones": 600,
    "markers to a silent broker count as written": 610,
    "the markers of a rotation have the new id": 610,
    "a transaction completes before its markers are written": 610,
    "a new leader begins no epoch": 94000,
}
"""Mistake -> a seed whose run finds it; the others were not found yet."""
