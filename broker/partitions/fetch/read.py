"""Reads the partitions of a fetch within the limits of one response, and waits until there is enough data.

Rules: one partition (core E.2), waiting (core E.3), diverging epochs (core E.6), preferred replicas (core E.7).
"""

from collections.abc import Sequence
from typing import Final

from broker.replication.partition import ReplicatedPartition
from broker.request import message_format
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.fetch_sessions import Interest
from broker.request.topology import may_on_cluster
from broker.time.clock import Watched, wait_until
from protocol import features
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import AbortedTransaction, EpochEndOffset, LeaderIdAndEpoch, PartitionData
from storage.log.offsets import LogBounds
from storage.log.partition_log import PartitionLog

RACK_AWARE: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""The one selector that is supported; with any other class, or none, consumers read from the leader."""
NO_REPLICA: Final = -1
READ_COMMITTED: Final = 1
_FUTURE_REPLICA: Final = -3
"""The replica id for a log that is being moved to another directory (FetchRequest.FUTURE_LOCAL_REPLICA_ID)."""
NO_EPOCH: Final = -1
"""Any negative current leader epoch means none (FetchRequest.optionalEpoch)."""
_NONE: Final = ErrorCode.NONE


class Limits:
    """The limits of one response; its first batch may exceed them (KIP-74)."""

    def __init__(self, max_bytes: int, min_bytes: int, isolation: int, replica_id: int, rack_id: str = "") -> None:
        self.max_bytes, self.min_bytes, self.isolation = max_bytes, min_bytes, isolation
        self.replica_id, self.rack_id = replica_id, rack_id

    @property
    def follower(self) -> bool:
        """Whether the fetcher is a follower."""
        return self.replica_id >= 0

    @property
    def consumer(self) -> bool:
        """Whether the fetcher is a consumer: any id that is not a replica's (FetchRequest.isConsumer)."""
        return self.replica_id < 0 and self.replica_id != _FUTURE_REPLICA

    def bound(self, bounds: LogBounds, stable_offset: int) -> int:
        """Return the offset up to which a log is read: its end, unless a consumer fetches (FetchIsolation.of)."""
        if not self.consumer:
            return bounds.log_end_offset
        return stable_offset if self.isolation == READ_COMMITTED else bounds.high_watermark


class Reading:
    """A partition of the request: the partition to read, or the response that refuses it."""

    def __init__(
        self, interest: Interest, partition: ReplicatedPartition | None, refused: PartitionData | None = None
    ) -> None:
        self.interest, self.partition, self.refused = interest, partition, refused


def find(
    ctx: RequestContext, interests: Sequence[Interest], uses_topic_ids: bool, *, follower: bool = False
) -> list[Reading]:
    """Resolve topic ids, and check authorization and existence (core E.1 F3); refused partitions are listed last.

    A session keeps the topic name that it once resolved for an id: after a deletion the partition is unknown, not the
    id. Ids without a name are listed before the other refused partitions. A follower may read all topics or none.
    """
    if follower and not may_on_cluster(ctx, AclOperation.CLUSTER_ACTION):
        return [Reading(each, None, _refused(each, ErrorCode.TOPIC_AUTHORIZATION_FAILED)) for each in interests]
    readings = []
    for interest in interests:
        if uses_topic_ids and not interest.topic:
            topic = ctx.cluster.image.topics_by_id.get(interest.topic_id) if interest.topic_id else None
            if topic is None:
                readings.append(Reading(interest, None, _refused(interest, ErrorCode.UNKNOWN_TOPIC_ID)))
                continue
            interest.topic, interest.topic_id = topic.name, topic.id  # the same object compares faster
        if not follower and not ctx.authorized(AclOperation.READ, ResourceType.TOPIC, interest.topic):
            readings.append(Reading(interest, None, _refused(interest, ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
            continue
        partition = ctx.cluster.partitions.get((interest.topic, interest.wanted.partition))
        refused = None if partition else _refused(interest, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        readings.append(Reading(interest, partition, refused))
    if len(readings) > 1 and any(reading.refused for reading in readings):
        readings.sort(key=_is_refused if follower else _place)
    return readings


def _is_refused(reading: Reading) -> bool:
    """Sort key in a follower's response: readable partitions first, then refused ones."""
    return reading.refused is not None


def _place(reading: Reading) -> int:
    """Sort key in the response: readable partitions, then unknown topic ids, then other refused ones."""
    if reading.refused is None:
        return 0
    return 1 if reading.refused.error_code is ErrorCode.UNKNOWN_TOPIC_ID else 2


def _refused(interest: Interest, code: ErrorCode) -> PartitionData:
    """Build the response for a partition refused before the read: empty aborted transactions (transactions D.11)."""
    return PartitionData(interest.wanted.partition, code, high_watermark=-1, records=b"")


def failed(interest: Interest, code: ErrorCode) -> PartitionData:
    """Build the response for a partition whose read failed: no offsets, aborted transactions null (core E.2)."""
    return PartitionData(interest.wanted.partition, code, high_watermark=-1, aborted_transactions=None, records=b"")


class Reader:
    """Reads a request's partitions, repeatedly while the request waits."""

    def __init__(self, ctx: RequestContext, readings: Sequence[Reading], limits: Limits) -> None:
        self._ctx, self._limits = ctx, limits
        self.readings = readings
        self.size = 0
        self._left = limits.max_bytes  # may be negative until the first partition is read, as in ReplicaManager
        self.final = False  # an error, a diverging epoch or a preferred replica: answer now (core E.3)

    def read(self) -> list[tuple[Interest, PartitionData]]:
        """Read all partitions, in the order of the readings."""
        self.size, self._left, self.final = 0, self._limits.max_bytes, False
        answers = []
        for each in self.readings:
            before = self.size
            answers.append((each.interest, each.refused or self._partition(each)))
            if each.refused is None:
                self._left = max(0, self._left - (self.size - before))
        return answers

    def _partition(self, reading: Reading) -> PartitionData:
        try:
            assert reading.partition is not None
            return self._data(reading.interest, reading.partition)
        except KafkaError as error:
            self.final = True
            data = failed(reading.interest, error.code)
            if error.code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH) and (
                features.fetch_has_current_leader(self._ctx.version)
            ):
                state = reading.partition.state if reading.partition else None
                if state is not None:
                    data.current_leader = LeaderIdAndEpoch(state.leader, state.leader_epoch)
            return data

    def _data(self, interest: Interest, partition: ReplicatedPartition) -> PartitionData:
        wanted, limits, topic_id = interest.wanted, self._limits, interest.topic_id
        if topic_id is not None and topic_id is not partition.topic_id and topic_id != partition.topic_id:
            partition.hosted_by(self._ctx.node.id)  # no replica here, or an offline one, comes first (core E.2)
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
        log = self._log(interest, partition)
        bounds, stable_offset = log.bounds, log.last_stable_offset
        bound = limits.bound(bounds, stable_offset)
        data = PartitionData(wanted.partition, _NONE, bounds.high_watermark, stable_offset, None, b"")
        data.log_start_offset = bounds.log_start_offset
        if limits.rack_id and not limits.follower and partition.state.leader == self._ctx.node.id:
            data.preferred_read_replica = preferred_replica(
                self._ctx, limits.rack_id, partition, log, wanted.fetch_offset
            )
            if data.preferred_read_replica != NO_REPLICA:
                self.final = True
                return data
        if wanted.last_fetched_epoch >= 0 and self._diverges(wanted.last_fetched_epoch, wanted.fetch_offset, log, data):
            return data
        is_tiered = log.tier is not None and bounds.log_start_offset <= wanted.fetch_offset < log.local_log_start_offset
        if is_tiered and not limits.consumer:
            raise KafkaError(ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE)
        max_bytes = min(wanted.partition_max_bytes, self._left)
        has_data = bounds.log_start_offset <= wanted.fetch_offset < bound
        if max_bytes < 0 and has_data:  # LogSegment.read refuses it, but is called only if there is data
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        piece = log.reader.read(wanted.fetch_offset, max(max_bytes, 0), bound=bound, min_one=self.size == 0)
        data.records = message_format.downconvert(piece.buffers, interest.topic, wanted.fetch_offset, self._ctx)
        # A remote read is answered when it is done, and counts as what it may have (ReplicaManager.readFromLog).
        self.final = self.final or is_tiered
        self.size += max_bytes if is_tiered else piece.size
        cut = (
            max_bytes > 0 and has_data and not piece.size
        )  # FetchDataInfo.firstEntryIncomplete: null instead of a list
        if limits.isolation == READ_COMMITTED and limits.consumer and not cut:
            aborted = log.reader.aborted_within(piece, wanted.fetch_offset, bound)
            data.aborted_transactions = [AbortedTransaction(*each) for each in aborted] if aborted else []
        return data

    def _log(self, interest: Interest, partition: ReplicatedPartition) -> PartitionLog:
        node, epoch = self._ctx.node.id, max(interest.wanted.current_leader_epoch, NO_EPOCH)
        # The epoch before leadership (core B.2.5): a client with old metadata gets 74, not 6.
        partition.check_epoch(node, epoch)
        replica_id = self._limits.replica_id
        elsewhere = replica_id < 0 and partition.state.leader != node
        if elsewhere and (replica_id == _FUTURE_REPLICA or features.fetch_may_ask_any_replica(self._ctx.version)):
            return partition.hosted_by(node)
        log = partition.led_by(node)
        if replica_id < 0:
            return log
        if replica_id == node or replica_id not in partition.state.replicas:
            # Partition.followerReplicaOrThrow
            unknown = ErrorCode.NOT_LEADER_OR_FOLLOWER if epoch == NO_EPOCH else ErrorCode.UNKNOWN_LEADER_EPOCH
            raise KafkaError(unknown)
        return log

    def _diverges(self, epoch: int, offset: int, log: PartitionLog, data: PartitionData) -> bool:
        """Whether the fetcher's log diverges from this one (core E.6)."""
        end_epoch, end = log.epochs.end_offset_for(epoch, log.log_end_offset)
        if end_epoch < 0 or offset < log.log_start_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        if end_epoch < epoch or end < offset:
            data.diverging_epoch = EpochEndOffset(end_epoch, end)
            self.final = True
            return True
        return False

    # --- waiting -----------------------------------------------------------------------------------------------------

    async def wait(self, deadline_ms: int) -> None:
        """Wait until there may be enough data to answer, or until the deadline (core E.3)."""
        connection = self._ctx.connection
        watched: list[Watched] = [connection]
        watched += [each.partition for each in self.readings if each.partition is not None]
        await wait_until(lambda: connection.lost or self._enough(), watched, self._ctx.cluster.clock, deadline_ms)

    def _enough(self) -> bool:
        """Whether to answer now, because of new data or of a change such as a new leader."""
        available = 0
        for each in self.readings:
            if each.partition is None or each.refused is not None:
                continue
            wanted = each.interest.wanted
            try:
                log = self._log(each.interest, each.partition)
            except KafkaError:
                return True
            if self._ctx.cluster.partitions.get((each.interest.topic, wanted.partition)) is not each.partition:
                return True
            bound = self._limits.bound(log.bounds, log.last_stable_offset)
            # The leader was truncated since, or another one has less: waiting brings nothing (DelayedFetch).
            if wanted.fetch_offset > bound and log.reader.batch_start(wanted.fetch_offset) > bound:
                return True
            if wanted.fetch_offset < bound:
                any_is_enough = self._limits.min_bytes <= 1 <= wanted.partition_max_bytes  # as for most consumers
                # Behind the active segment, or it was just rolled: answered, however few bytes that are.
                if any_is_enough or log.reader.in_older_segment(wanted.fetch_offset, bound):
                    return True
                try:
                    available += log.reader.bytes_available(wanted.fetch_offset, bound, wanted.partition_max_bytes)
                except KafkaError:
                    return True
            if available >= self._limits.min_bytes:
                return True
        return False


# --- the preferred read replica of a consumer: one in its own rack (KIP-392, ReplicaManager) -------------------------


def preferred_replica(
    ctx: RequestContext, rack_id: str, partition: ReplicatedPartition, leader: PartitionLog, offset: int
) -> int:
    """Return the broker from which a consumer in this rack should read this offset; -1: from the leader.

    A candidate is in sync, has the offset, and has the listener of the request. Of several in the rack, the one with
    the highest end offset is chosen, then the one with the highest id.
    """
    if not features.fetch_may_ask_any_replica(ctx.version):
        return NO_REPLICA
    if ctx.node.settings.optional_string("replica.selector.class") != RACK_AWARE or ctx.node.rack == rack_id:
        return NO_REPLICA
    brokers, candidates = ctx.cluster.image.brokers, []
    for broker_id in partition.state.isr:
        log, broker = partition.logs.get(broker_id), brokers.get(broker_id)
        if log is None or log is leader or broker is None or broker.fenced or ctx.listener not in broker.listeners:
            continue
        if broker.rack == rack_id and log.log_start_offset <= offset <= log.log_end_offset:
            candidates.append((log.log_end_offset, broker_id))
    return max(candidates)[1] if candidates else NO_REPLICA
