"""Periodic work of the brokers: retention, compaction, checkpoints, expiry, elections.

Each round is a timer on the cluster's clock that sets the next one, so pushing the clock runs the rounds in their
order; the ``run`` methods let the control plane run a round now.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any

from broker.cluster.base import ClusterBase
from broker.coordination.metadata import reassignments, tokens
from broker.coordination.metadata.controller import Controller
from broker.coordination.metadata.image import Partition, Topic
from broker.logs import Logger
from broker.replication.partition import ReplicatedPartition
from broker.time.clock import Slices
from broker.time.timers import Rhythm, Timer
from protocol.deferred import dataclass
from protocol.errors import KafkaError
from storage.cleaner.cleaner import LogCleaner
from storage.log import tiering
from storage.log.partition_log import PartitionLog
from storage.log_dir import LogDir

_log = Logger(__name__)
_CLEANED_AT_ONCE = 256 * 1024
"""Bytes that the cleaner reads before other requests are served: a few hundredths of a second.

Ours: a client that waits for so long does not notice.
"""
_CLEANER_RESTS_MS = 10
"""The pause after each piece: the cleaner, in Kafka a thread of its own, takes part of the loop here.

Ours, so that others are served between two pieces.
"""


def _never() -> int | None:
    """Return that time alone gives a round nothing to do."""
    return None


@dataclass(slots=True)
class _Round:
    """A round of the cleaner over all brokers: the remaining steps, and the number of logs cleaned."""

    steps: Iterator[PartitionLog | None]
    cleaned: int = 0


class Maintenance:
    """The periodic work of all brokers."""

    def __init__(self, cluster: ClusterBase) -> None:
        self._cluster = cluster
        self._timers: dict[str, Timer] = {}
        self._cleaner_of: dict[LogDir, LogCleaner] = {}
        self._cleaning: _Round | None = None
        self.expired_records = self.expired_producer_ids = 0
        """What time alone has ended at leaders since the start; records are counted by their offsets."""

    def start(self) -> None:
        """Set all timers."""
        settings = self._cluster.settings
        # Kafka's first round comes after log.initial.task.delay.ms, 30 s; a shorter interval, if configured, does not
        # wait for that here.
        interval_ms = settings.long("log.retention.check.interval.ms")
        first_ms = min(settings.int("log.initial.task.delay.ms"), interval_ms)
        self._every(interval_ms, self._retention_round, self._retention_is_quiet_until_ms, first_ms)
        if settings.boolean("remote.log.storage.system.enable"):
            tiers_ms = settings.long("remote.log.manager.task.interval.ms")
            self._every(tiers_ms, self.run_tiers, self._tiers_are_quiet_until_ms)
        if settings.boolean("log.cleaner.enable"):
            self._every(settings.long("log.cleaner.backoff.ms"), self._begin_cleaning, self._cleaner_is_quiet_until_ms)
        producers_ms = settings.int("producer.id.expiration.check.interval.ms")
        self._every(producers_ms, self.expire_producers, self._producers_are_quiet_until_ms)
        tokens_ms = settings.long("delegation.token.expiry.check.interval.ms")
        self._every(tokens_ms, self.expire_tokens, self._tokens_are_quiet_until_ms)
        if settings.boolean("auto.leader.rebalance.enable"):
            balance_ms = 1000 * settings.long("leader.imbalance.check.interval.seconds")
            self._every(balance_ms, self.balance_leaders, _never)
        self._every(settings.long("unclean.leader.election.interval.ms"), self.elect_uncleanly, _never)
        if self._cluster.options.data_dirs and not self._cluster.options.read_only:
            checkpoints_ms = settings.long("replica.high.watermark.checkpoint.interval.ms")
            self._every(checkpoints_ms, self._checkpoint_round, self._next_removal_ms)

    def stop(self) -> None:
        """Cancel all timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._cleaning = None

    def _every(
        self,
        interval_ms: int,
        run: Callable[[], bool],
        quiet_until_ms: Callable[[], int | None],
        first_ms: int | None = None,
    ) -> None:
        clock, name, rhythm = self._cluster.clock, run.__name__, Rhythm(max(interval_ms, 1), quiet_until_ms)

        def play() -> None:
            self._timers[name] = clock.call_at(clock.now_ms() + rhythm.interval_ms, play, rhythm)
            try:
                if run():
                    clock.note_work()
            except (KafkaError, OSError) as error:
                _log.error("upkeep failed", what=name.strip("_"), error=str(error))
                clock.note_work()

        at_ms = clock.now_ms() + (interval_ms if first_ms is None else first_ms)
        self._timers[name] = clock.call_at(at_ms, play, rhythm)

    # --- the rounds --------------------------------------------------------------------------------------------------

    def flush_at(self, at_ms: int) -> None:
        """Sync at that time the logs whose `flush.ms` will have passed."""
        planned = self._timers.get("flush")
        if planned is None or planned.call is None or at_ms < planned.at_ms:
            if planned is not None:
                planned.cancel()
            self._timers["flush"] = self._cluster.clock.call_at(at_ms, self._flush)

    def _flush(self) -> None:
        now_ms = self._cluster.clock.now_ms()
        for log_dir in self._log_dirs():
            with suppress(KafkaError):  # the log directory went offline, which the cluster has noted
                due_ms = log_dir.flush_due(now_ms)
                if due_ms is not None:
                    self.flush_at(due_ms)

    def _log_dirs(self) -> list[LogDir]:
        """Return the log directories of all brokers that are up."""
        return [log_dir for node in self._cluster.nodes.values() for log_dir in node.log_dirs]

    def expire_tokens(self) -> bool:
        """Remove expired delegation tokens (core G.12.6); return whether there were any."""
        records = tokens.expired(self._cluster.image, self._cluster.clock.now_ms())
        if records and not self._cluster.options.read_only:
            machine = self._cluster.metadata.machine
            self._cluster.metadata.submit(lambda _now_ms: machine.remember(records))
        return bool(records)

    def balance_leaders(self) -> bool:
        """Elect preferred replicas, except where a command has moved the leader; return whether there were any."""
        moved = self._cluster.moved_leaders

        def stays(topic: Topic, index: int, partition: Partition) -> bool:
            return moved.get((topic.id, index)) == partition.leader_epoch

        return self._elect(lambda controller: reassignments.balance(controller, stays))

    def elect_uncleanly(self) -> bool:
        """Elect leaders where unclean elections were allowed meanwhile; return whether there were any."""
        return self._elect(reassignments.elect_uncleanly)

    def _elect(self, decide: Callable[[Controller], list[Any]]) -> bool:
        cluster = self._cluster
        if cluster.options.read_only:
            return False
        return cluster.metadata.submit(lambda _now_ms: cluster.metadata.machine.periodic(decide))

    def _tokens_are_quiet_until_ms(self) -> int | None:
        return self._cluster.clock.now_ms() if self._cluster.image.tokens else None

    def _retention_round(self) -> bool:
        return self.run_retention() > 0

    def _retention_is_quiet_until_ms(self) -> int | None:
        due_ms = [log_dir.retention_due_ms() for log_dir in self._log_dirs()]
        return min((at_ms for at_ms in (*due_ms, self._next_removal_ms()) if at_ms is not None), default=None)

    def _next_removal_ms(self) -> int | None:
        due_ms = (log_dir.context.next_removal_ms for log_dir in self._log_dirs())
        return min((at_ms for at_ms in due_ms if at_ms is not None), default=None)

    def run_retention(self) -> int:
        """Delete segments by time, size and log start offset (core F.4); return how many."""
        now_ms, gone = self._cluster.clock.now_ms(), 0
        before = self._log_starts()
        for log_dir in self._log_dirs():
            with suppress(KafkaError):  # the log directory went offline, which the cluster has noted
                gone += log_dir.run_retention(now_ms)
            log_dir.remove_due(now_ms)
        for partition, start in before if gone else ():
            after = partition.logs[partition.state.leader].log_start_offset
            partition.moved("retention", start, after)
            self.expired_records += after - start
        return gone

    def _log_starts(self) -> list[tuple[ReplicatedPartition, int]]:
        partitions = self._cluster.partitions.values()
        return [(each, log.log_start_offset) for each in partitions if (log := each.logs.get(each.state.leader))]

    def run_tiers(self) -> bool:
        """Copy closed segments to the remote tier, and expire what is in it (core F.10); return whether it changed."""
        now_ms, changed = self._cluster.clock.now_ms(), False
        for partition in self._cluster.partitions.values():
            leader = partition.logs.get(partition.state.leader)
            if leader is None or leader.offline or not leader.config.tiered:
                continue
            tier, start = tiering.tier_of(leader), leader.log_start_offset
            copied = tier.copied
            if leader.config.copied:
                tiering.copy(leader, now_ms)
            tiering.expire(leader, now_ms)
            partition.moved("retention", start, leader.log_start_offset)
            partition.replicate()
            for log in partition.logs.values():
                if not log.offline:
                    tiering.follow(log, tier.copied)
            changed = changed or (copied, start) != (tier.copied, leader.log_start_offset)
        return changed

    def _tiers_are_quiet_until_ms(self) -> int | None:
        logs = (log for each in self._cluster.partitions.values() if (log := each.logs.get(each.state.leader)))
        due_ms = (tiering.due_ms(log) for log in logs if log.config.tiered)
        return min((at_ms for at_ms in due_ms if at_ms is not None), default=None)

    async def run_cleaner(self, *, force: bool = False) -> int:
        """Compact the logs that are due (core F.6), serving requests in between; return how many were cleaned.

        Two rounds at a time would remove each other's files, so a round in progress is completed first.
        """
        slices = Slices()
        while (others := self._cleaning) is not None:
            self._piece(others, at_once=1)
            await slices.pause()
        mine = self._cleaning = self._round(force=force)
        while self._cleaning is mine:
            self._piece(mine, at_once=1)
            await slices.pause()
        return mine.cleaned

    def forget(self, log_dir: LogDir, topic: str, index: int) -> None:
        """Forget a deleted log's cleaner offset: a new log of the same name is not cleaned yet."""
        self._cleaner(log_dir).forget(topic, index)

    def _begin_cleaning(self) -> bool:
        """Begin a round of the cleaner in pieces, so that requests are served in between; return if it found work."""
        if self._cleaning is not None:
            return True
        work = self._cleaning = self._round(force=False)
        self._clean_on(work)
        return self._cleaning is not None or work.cleaned > 0

    def _cleaner_is_quiet_until_ms(self) -> int | None:
        due_ms = [cleaner.due_ms(self._cluster.clock.now_ms()) for cleaner in self._cleaners()]
        return min((at_ms for at_ms in due_ms if at_ms is not None), default=None)

    def _clean_on(self, work: "_Round") -> None:
        """Do the next piece of a round, and set a timer for the one after it."""
        self._piece(work)
        if self._cleaning is work:
            clock = self._cluster.clock
            self._timers["cleaning"] = clock.call_at(clock.now_ms() + _CLEANER_RESTS_MS, partial(self._clean_on, work))

    def _round(self, *, force: bool) -> "_Round":
        now_ms = self._cluster.clock.now_ms()
        return _Round(chain.from_iterable(cleaner.steps(now_ms, force=force) for cleaner in self._cleaners()))

    def _piece(self, work: "_Round", at_once: int = _CLEANED_AT_ONCE) -> None:
        """Do the next piece of a round that is still the current one: clean until ``at_once`` more bytes are read."""
        if self._cleaning is not work:
            return
        cleaners = self._cleaners()
        enough = sum(cleaner.worked_bytes for cleaner in cleaners) + at_once
        for log in work.steps:
            work.cleaned += log is not None
            if sum(cleaner.worked_bytes for cleaner in cleaners) >= enough:
                return
        self._cleaning = None

    def _cleaners(self) -> list[LogCleaner]:
        """Return the cleaner of each log directory of the brokers that are up."""
        self._cleaner_of = {log_dir: self._cleaner(log_dir) for log_dir in self._log_dirs()}
        return list(self._cleaner_of.values())

    def _cleaner(self, log_dir: LogDir) -> LogCleaner:
        return self._cleaner_of.get(log_dir) or LogCleaner(log_dir)

    def expire_producers(self) -> bool:
        """Remove producers idle for ``producer.id.expiration.ms`` (transactions D.7); return whether there were any."""
        now_ms, any_expired = self._cluster.clock.now_ms(), False
        for partition in self._cluster.partitions.values():
            for broker_id, log in partition.logs.items():
                gone = log.producer_log.expire(now_ms)
                any_expired = any_expired or bool(gone)
                if gone and broker_id == partition.state.leader:
                    self.expired_producer_ids += len(gone)
                    self._cluster.producer_timelines.expired(gone, partition)
        return any_expired

    def _producers_are_quiet_until_ms(self) -> int | None:
        logs = (log for partition in self._cluster.partitions.values() for log in partition.logs.values())
        return min((at_ms for log in logs if (at_ms := log.producer_log.expiry_due_ms()) is not None), default=None)

    def _checkpoint_round(self) -> bool:
        self.checkpoint()
        return False  # without other changes the next one would write the same

    def checkpoint(self) -> None:
        """Write recovery points, log start offsets, high watermarks (core F.7); remove deleted files that are due."""
        now_ms = self._cluster.clock.now_ms()
        for log_dir in self._log_dirs():
            log_dir.checkpoint_recovery_points()
            log_dir.checkpoint_log_starts()
            log_dir.checkpoint_high_watermarks()
            log_dir.remove_due(now_ms)
