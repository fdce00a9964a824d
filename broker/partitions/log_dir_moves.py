"""Moves of replicas between the log directories of their broker (KIP-113, KIP-858).

A move fills a future log in the other directory, beside the log that continues to serve. When there is nothing more to
copy, the controller records the new directory, and the future log takes the other one's place. Kafka:
ReplicaAlterLogDirsManager, ReplicaAlterLogDirsThread. Here a move advances by one piece in each turn of the event loop.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from broker.logs import Logger
from broker.replication.partition import ReplicatedPartition
from broker.request.context import ClusterView
from broker.request.node import Node
from protocol.errors import KafkaError
from storage.log.partition_log import PartitionLog
from storage.log_dir import Key, LogDir

if TYPE_CHECKING:
    from broker.time.timers import Timer

_log = Logger(__name__)
_PIECE_BYTES = 1024 * 1024
"""``replica.fetch.max.bytes``, whose default is the size of a piece in Kafka."""
_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


class LogDirMoves:
    """The moves of all brokers. Those under way are the future logs in the brokers' log directories."""

    def __init__(self, cluster: ClusterView, *, read_only: bool = False) -> None:
        """``read_only``: replicas remain where they are."""
        self._cluster = cluster
        self._read_only = read_only
        self._timers: dict[int, Timer] = {}

    def begin(self, node: Node, partition: ReplicatedPartition, target: LogDir) -> None:
        """Begin to move a broker's replica, unless it is there or on its way; a move to a third directory ends.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        key, log = (partition.topic, partition.index), partition.logs[node.id]
        for log_dir in node.log_dirs:
            if log_dir is not target:
                self._give_up(node, log_dir, key)
        if key not in target.logs and key not in target.futures:
            target.create_future(log, self._cluster.clock.now_ms())
        if node.id not in self._timers:
            self.resume(node)

    def resume(self, node: Node) -> None:
        """Continue a broker's moves: it has started, or hangs no longer, or its settings have changed.

        The next step comes after ``replica.fetch.backoff.ms``, as of Kafka's thread that was idle. Of a read-only
        directory the replicas remain as they are: DescribeLogDirs has the future ones with their lag.
        """
        if (timer := self._timers.pop(node.id, None)) is not None:
            timer.cancel()
        futures = [future for log_dir in node.log_dirs for future in log_dir.futures.values()]
        if self._read_only:
            for future in futures:
                _log.info("replica was being moved", broker=node.id, future=future.directory, end=future.log_end_offset)
        elif futures:
            self._continue_at(node, self._cluster.clock.now_ms() + node.settings.int("replica.fetch.backoff.ms"))

    def clear(self) -> None:
        """Cancel all timers (reset, stop); the future logs stay as they are."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _continue_at(self, node: Node, at_ms: int) -> None:
        self._timers[node.id] = self._cluster.clock.call_at(at_ms, lambda: self._step(node))

    def _step(self, node: Node) -> None:
        """Copy a piece of each future log; the next one follows when the rate permits it."""
        self._timers.pop(node.id, None)
        if node.silent:  # it continues when it starts or resumes
            return
        copied = 0
        for log_dir in node.log_dirs:
            for key in list(log_dir.futures):
                copied += self._copy(node, log_dir, key)
        if any(log_dir.futures for log_dir in node.log_dirs):
            rate = node.settings.optional_int(_RATE)
            waits_ms = 0 if rate is None else -(-copied * 1000 // max(rate, 1))
            self._continue_at(node, self._cluster.clock.now_ms() + waits_ms)

    def _copy(self, node: Node, target: LogDir, key: Key) -> int:
        """Copy a piece of a future log, or promote it; return the number of bytes."""
        partition = self._cluster.partitions.get(key)
        log, future = None if partition is None else partition.logs.get(node.id), target.futures[key]
        if partition is None or log is None or log.offline or target.is_offline:
            del target.futures[key]  # its files stay: the next start continues, or knows that it is stray
            return 0
        before = future.segments.size
        try:
            if partition.copy_to(future, log, _PIECE_BYTES):
                self._promote(node, partition, target)
        except KafkaError as error:
            _log.error("replica does not move", broker=node.id, partition=partition.name, error=str(error))
            self._give_up(node, target, key)
        return max(future.segments.size - before, 0)

    def _promote(self, node: Node, partition: ReplicatedPartition, target: LogDir) -> None:
        key, now_ms = (partition.topic, partition.index), self._cluster.clock.now_ms()
        source = node.log_dir_of(*key)
        assert source is not None, "the partition has a log"
        if target.directory_id is not None:
            self.assign(node, {(partition.topic_id, partition.index): target.directory_id})
        log: PartitionLog = target.promote_future(partition.logs[node.id], now_ms)
        partition.logs[node.id] = log
        source.hand_over_cleaned(key, target)
        source.delete_log(*key, now_ms=now_ms, delay_ms=node.settings.int("log.segment.delete.delay.ms"))
        partition.wake()

    def _give_up(self, node: Node, target: LogDir, key: Key) -> None:
        delay_ms = node.settings.int("log.segment.delete.delay.ms")
        target.delete_future(*key, now_ms=self._cluster.clock.now_ms(), delay_ms=delay_ms)

    def assign(self, node: Node, assignments: Mapping[tuple[UUID, int], UUID]) -> None:
        """Report the directories of a broker's replicas to the controller: topic id and partition -> directory id.

        Raises:
            KafkaError: the controller cannot write its log.
        """
        machine = self._cluster.metadata.machine
        self._cluster.metadata.submit(lambda _now_ms: machine.assign_directories(node.id, assignments))
