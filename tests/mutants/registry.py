"""The mutants of the product: one registry for the rows, the differential run and the simulator.

Those of transactions, which rows notice, are in ``transactions.py``.
"""

from typing import Any

from broker.cluster import reset
from broker.cluster.cluster import Cluster
from broker.cluster.lifecycle import Lifecycle
from broker.cluster.snapshots import Snapshots
from broker.coordination.coordinators import ProducerIds
from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.classic.membership import Membership
from broker.coordination.group.classic.rebalance import Rebalances
from broker.coordination.group.modern.consumer.group import ConsumerGroup
from broker.coordination.group.modern.consumer.heartbeat import Heartbeats
from broker.coordination.group.modern.consumer.reconciliation import _next
from broker.coordination.group.modern.streams import heartbeat, reconciliation
from broker.coordination.group.modern.streams.assignor import _Assignment
from broker.coordination.group.modern.streams.owners import TaskOwners
from broker.coordination.group.modern.timers import MemberTimers
from broker.coordination.group.offsets.commit import Commits
from broker.coordination.group.offsets.store import Offsets
from broker.coordination.metadata import features
from broker.coordination.metadata.machine import MetadataMachine
from broker.coordination.runtime import Runtime
from broker.coordination.share_state.state import ShareState
from broker.coordination.transaction import completion
from broker.coordination.transaction.completion import Completions
from broker.coordination.transaction.transitions import Transitions
from broker.partitions import produce
from broker.partitions.share_partition.machine import acknowledge
from broker.partitions.share_partition.machine.states import InFlightState
from broker.partitions.share_partition.partition import SharePartition
from broker.partitions.transactions import markers
from broker.replication.coordinator_log import CoordinatorLog
from broker.replication.partition import ReplicatedPartition
from storage.log import recovery, truncation
from storage.log.offsets import LeaderEpochs
from storage.log.partition_log import PartitionLog
from storage.producers.state import ProducerStates
from tests.mutants.mutant import Mutant
from tests.mutants.transactions import TRANSACTIONS


def _getter(prop: Any) -> Any:
    """The function behind a property."""
    return prop.fget


REGISTRY = {
    each.mistake: each
    for each in (
        *TRANSACTIONS,
        # --- replication
        Mutant(
            "followers keep records that the leader does not have",
            ReplicatedPartition._cut_to,
            "if end < follower",
            "if 0 > follower",
            simulated=("consumer,share,lag", 801),
        ),
        Mutant(
            "a new leader starts no leader epoch",
            ReplicatedPartition._lead,
            "leader.epochs.assign(",
            "(lambda *_: None)(",
            simulated=("none", 94000),
        ),
        Mutant(
            "the high watermark does not wait for followers",
            ReplicatedPartition.replicate,
            "min(ends, default=lowest)",
            "lowest",
            simulated=("consumer,share,lag", 803),
        ),
        Mutant(
            "min.insync.replicas is not enforced",
            ReplicatedPartition.append,
            "self.short_of_replicas",
            "False",
            simulated=("rules,hold", 92014),
        ),
        Mutant(
            "a coordinator does not wait for the high watermark",
            Runtime._do,
            "self._log.high_watermark < end",
            "False",
            simulated=("consumer,share,lag", 70025),
        ),
        Mutant(
            "a returning leader does not truncate its followers",
            ReplicatedPartition.host,
            "self._lead(self.state)",
            "log.epochs.assign(self.state.leader_epoch, log.log_end_offset)",
            simulated=("consumer,share,lag", 81000312),
        ),
        Mutant(
            "a follower that goes on after a pause does not rejoin the ISR",
            Lifecycle.resume,
            "expand(self._cluster",
            "partition.state.leader == node.id and expand(self._cluster",
            simulated=("lag", 1042),
        ),
        Mutant(
            "acks=all does not wait for replicas",
            produce._settled,
            "high_watermark > info",
            "high_watermark >= 0 * info",
            simulated=("consumer,share,lag", 803),
        ),
        Mutant(
            "followers copy one batch too few",
            ReplicatedPartition._copy,
            "follower.append_as_follower(piece.buffers,",
            "follower.append_as_follower(piece.buffers[:-1] or piece.buffers,",
        ),
        # --- logs
        Mutant(
            "truncation keeps producer state",
            truncation._forget_producers,
            "log.producer_log.rebuild(",
            "(lambda *_: None)(",
            simulated=("consumer,share,lag,change,rules,hold", 92103),
        ),
        Mutant(
            "truncation keeps leader epochs",
            LeaderEpochs.truncate_from_end,
            "entry.start_offset < offset",
            "True",
            simulated=("coordinators,lag", 1118),
        ),
        Mutant(
            "a restart forgets open transactions",
            ProducerStates.restore,
            "sorted(",
            "(lambda _: ())(",
            simulated=("consumer,share,lag,change,rules,hold", 92104),
        ),
        Mutant(
            "log recovery drops producer state",
            recovery._restore_producers,
            "if states.producers:",
            "if False:",
            simulated=("none", 202),
        ),
        Mutant(
            "log recovery skips batches of idempotent producers",
            recovery.rebuild,
            "if batch.producer_id >= 0:",
            "if False:",
            simulated=("none", 204),
        ),
        Mutant(
            "an ended transaction still holds back the last stable offset",
            ProducerStates._apply_marker,
            "self._ongoing.pop(first, None)",
            "pass",
            simulated=("none", 204),
        ),
        Mutant(
            "a marker does not end its producer's transaction",
            ProducerStates._apply_marker,
            "entry.transaction_first_offset = None",
            "pass",
            simulated=("none", 500),
        ),
        Mutant(
            "a follower keeps no producer state",
            PartitionLog.append_as_follower,
            "if batch.producer_id >= 0:",
            "if False:",
            simulated=("none", 500),
        ),
        # --- coordinators' runtime
        Mutant(
            "loading a coordinator skips markers",
            Runtime._replay_log,
            "self.machine.replay_marker(",
            "(lambda *_: None)(",
            simulated=("none", 501),
        ),
        Mutant(
            "loading a coordinator commits pending offsets",
            Runtime._replay_log,
            "if batch.is_transactional:",
            "if False:",
            simulated=("none", 600),
        ),
        Mutant(
            "a coordinator's records ignore min.insync.replicas",
            CoordinatorLog.append,
            "all_in_sync=self._all_in_sync()",
            "all_in_sync=False",
        ),
        Mutant(
            "a coordinator does not act on what it has written",
            Runtime._do,
            "self._effects(outcome.effects)",
            "outcome.records or self._effects(outcome.effects)",
            simulated=("none", 500),
        ),
        # --- transactions
        Mutant(
            "a marker counts as written although its broker did not answer",
            markers.Markers._write,
            "ErrorCode.NETWORK_EXCEPTION",
            "ErrorCode.NONE",
            simulated=("coordinators", 3005),
        ),
        Mutant(
            "failed markers are not sent again",
            Completions._send_again,
            "effects=(markers_of(stored[0], stored[1].take_retries()),)",
            "effects=()",
            simulated=("rules,hold", 92011),
        ),
        Mutant(
            "group coordinators ignore transaction markers",
            markers.write_marker,
            "if shard is not None:",
            "if False:",
            simulated=("none", 204),
        ),
        Mutant(
            "only the first partition gets its marker",
            markers.Markers._send,
            "places.pop(0), report)",
            "places.pop(0), report) or places.clear()",
            simulated=("none", 500),
        ),
        Mutant(
            "a commit completes as an abort",
            Transitions.completed,
            "COMPLETED_BY[old.state]",
            "max(COMPLETED_BY.values())",
            simulated=("none", 500),
        ),
        Mutant(
            "an open transaction is aborted before its timeout",
            completion.timed_out,
            "record.start_ms + record.timeout_ms <",
            "record.start_ms <",
            simulated=("none", 500),
        ),
        # --- producer ids
        Mutant(
            "a producer id is assigned twice",
            ProducerIds.next,
            "return self._left.pop()",
            "return self._left[-1]",
            simulated=("none", 500),
        ),
        Mutant(
            "blocks of producer ids overlap",
            Cluster.allocate_producer_ids,
            "range(start, self",
            "range(max(start - 998, 0), self",
            simulated=("rules,hold", 94000),
        ),
        # --- groups
        Mutant(
            "a member of an old generation may commit",
            ClassicGroup.check_generation,
            "generation != self.generation",
            "False",
            simulated=("rules,hold", 92000),
        ),
        Mutant(
            "members keep the assignment of the previous generation",
            ClassicGroup.finished,
            "member.assignment = stored.assignment",
            "pass",
            simulated=("none", 507),
        ),
        Mutant(
            "a rebalance does not increment the generation",
            ClassicGroup.next_generation,
            "self.generation += 1",
            "self.generation = max(self.generation, 1)",
            simulated=("none", 501),
        ),
        Mutant(
            "loading a group forgets its generation",
            ClassicGroup.restored,
            "group.generation = record.generation",
            "pass",
            simulated=("none", 505),
        ),
        Mutant(
            "all members get the same assignment",
            Membership._assign,
            'leader_assignments.get(member_id, b"")',
            'max(leader_assignments.values(), default=b"")',
            simulated=("none", 502),
        ),
        Mutant(
            "SyncGroup returns assignments that are not replicated",
            Membership.sync,
            "group.group_id not in self.unreplicated",
            "True",
            simulated=("coordinators,share", 4),
        ),
        Mutant(
            "a member that did not rejoin stays in the group",
            Rebalances.complete,
            "group.remove(member.member_id)",
            "pass",
            simulated=("rules,hold", 92000),
        ),
        Mutant(
            "a rebalance never completes",
            Rebalances.complete,
            "if group.state is State.EMPTY:",
            "if True:",
            simulated=("none", 501),
        ),
        Mutant(
            "OffsetFetch ignores require_stable",
            Commits.fetch,
            "if require_stable else",
            "if False else",
            simulated=("rules,hold", 92000),
        ),
        Mutant(
            "committed offsets are stored one too low",
            Commits._store,
            "partition.committed_offset,",
            "partition.committed_offset - 1,",
            simulated=("none", 204),
        ),
        Mutant(
            "only the first commit of a partition is kept",
            Offsets.commit,
            "[commit.partition] = CommittedOffset(commit, at)",
            ".setdefault(commit.partition, CommittedOffset(commit, at))",
            simulated=("none", 204),
        ),
        # --- consumer groups
        Mutant(
            "a partition is assigned before its owner has revoked it",
            _next,
            "goal.owner_epoch(topic_id, at) is None",
            "True",
            simulated=("consumer,share,lag", 904),
        ),
        Mutant(
            "no member is asked to revoke partitions",
            _next,
            "if revoke and goal.owns_any(revoke):",
            "if False:",
            simulated=("consumer,share,lag", 904),
        ),
        Mutant(
            "an unknown member may commit",
            ConsumerGroup.check_commit,
            "if member is None:",
            "if member is None and (member := next(iter(self.members.values()), None)) is None:",
            simulated=("rules,hold", 92000),
        ),
        Mutant(
            "a silent member of a consumer group stays in it",
            MemberTimers._fired,
            "self._expire(",
            "(lambda *_: None)(",
            simulated=("consumer,share,lag,change,rules,hold", 92524),
        ),
        Mutant(
            "heartbeats of a consumer group do not renew the session",
            Heartbeats.handle,
            "self._timers.arm_session(",
            "request.member_epoch or self._timers.arm_session(",
            simulated=("consumer,share,lag", 903),
        ),
        Mutant(
            "a member of a consumer group has too little time to revoke partitions",
            MemberTimers.limit_revocation,
            "member.rebalance_timeout_ms, ",
            "member.rebalance_timeout_ms // 6, ",
            simulated=("consumer,share,lag", 96027),
        ),
        # --- share groups
        Mutant(
            "the delivery count stays at 1",
            InFlightState.acquire,
            "self.delivery_count + 1",
            "max(self.delivery_count, 1)",
            simulated=("consumer,share,lag", 900),
        ),
        Mutant(
            "an acquired record is acquired again",
            _getter(InFlightState.acquirable),
            "is RecordState.AVAILABLE",
            "is not None",
            simulated=("consumer,share,lag", 900),
        ),
        Mutant(
            "a rejected record is released",
            acknowledge._Verdicts._begin,
            "limit.then if rejected",
            "_STATES[AcknowledgeType.RELEASE] if rejected",
            simulated=("consumer,share,lag", 900),
        ),
        Mutant(
            "acknowledgements are not persisted",
            SharePartition.write,
            "self._persist(change.batches)",
            "self._persist(())",
            simulated=("consumer,share,lag", 900),
        ),
        Mutant(
            "a failed write of share state counts",
            SharePartition.write,
            "roll_back(self.inflight, change, self._cluster.clock.now_ms())",
            "commit(self.inflight, change)",
            simulated=("coordinators,share", 308),
        ),
        Mutant(
            "an update of share state drops earlier ones",
            ShareState.updated,
            "(*self.batches, *read_batches",
            "(*(), *read_batches",
            simulated=("consumer,share,lag", 900),
        ),
        # --- streams groups
        Mutant(
            "a task is assigned before its owner has revoked it",
            reconciliation._TakenInPlace.as_active,
            "self.owners.active(task) is not None or",
            "False or",
            simulated=("streams", 50000),
        ),
        Mutant(
            "no member is asked to revoke tasks",
            reconciliation._next,
            "waits = bool(revoke) and goal.owns_any(revoke)",
            "waits = False",
            simulated=("streams", 50000),
        ),
        Mutant(
            "a silent member of a streams group keeps its tasks",
            MemberTimers._fired,
            "self._expire(",
            "(lambda *_: None)(",
            simulated=("streams", 60000),
        ),
        Mutant(
            "the owner of an active task is not recorded",
            TaskOwners.add,
            "for task in _each(tasks.active):",
            "for task in ():",
            simulated=("streams", 50000),
        ),
        Mutant(
            "a heartbeat returns an epoch below the member's",
            heartbeat.Heartbeats._result,
            "member_epoch=member.epoch,",
            "member_epoch=max(member.epoch - 1, 1),",
            simulated=("streams", 50000),
        ),
        Mutant(
            "a task is assigned to no member",
            _Assignment.run,
            "_by_subtopology(self._process(member).active[member.member_id]),",
            "_by_subtopology(sorted(self._process(member).active[member.member_id])[1:]),",
            simulated=("streams", 50000),
        ),
        # --- states to go back to
        Mutant(
            "later writes change a snapshot",
            Snapshots._copy,
            "return files.snapshot()",
            "return files",
            simulated=("world", 51001),
        ),
        Mutant(
            "a snapshot can be restored only once",
            Snapshots.put_back,
            "[each.snapshot() for each in snapshot.files",
            "[each for each in snapshot.files",
            simulated=("world", 51005),
        ),
        Mutant(
            "restoring a snapshot changes nothing",
            Snapshots.put_back,
            "node.files = tuple(kept)",
            "pass",
            simulated=("world", 51001),
        ),
        Mutant(
            "only one broker is restored",
            Snapshots.put_back,
            "if kept:",
            "if node.id == 1:",
            simulated=("world", 51001),
        ),
        Mutant(
            "a reset keeps the logs",
            reset._throw_away,
            "clear_directories(cluster.all_nodes)",
            "pass",
            simulated=("world", 51000),
        ),
        # --- features
        Mutant(
            "a downgrade may lose metadata",
            features._loses,
            "if not any(",
            "if True or not any(",
            simulated=("release", 52001),
        ),
        Mutant(
            "an upgrade may lower a feature level",
            features._reason,
            "if update.level < current and upgrade:",
            "if False:",
            simulated=("release", 52001),
        ),
        Mutant(
            "a downgrade may raise a feature level",
            features._reason,
            "if update.level > current and not upgrade:",
            "if False:",
            simulated=("release", 52005),
        ),
        Mutant(
            "an accepted feature level is not stored",
            MetadataMachine.update_features,
            "if name != features.KRAFT_VERSION",
            "if False",
            simulated=("release", 52001),
        ),
        Mutant(
            "features are not checked against what brokers support",
            features._unsupported,
            "for node in nodes:",
            "for node in ():",
            simulated=("release", 52000),
        ),
    )
}
"""Mistake -> its mutant."""
