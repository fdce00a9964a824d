"""Dead-letter queues of share groups: topics for records that are rejected or exceed the delivery limit (KIP-1191).

After Kafka 4.4's ``ShareGroupDLQStateManager``: the topic is checked, created if the cluster allows it, and written to
at its leader. A failure is logged and not retried; the records are archived anyway.
"""

import asyncio
from collections.abc import Iterator, Mapping

from broker.coordination.metadata.topics import CreatedTopic, NewTopic
from broker.coordination.share_state.persister import SharePartitionKey
from broker.logs import Logger
from broker.partitions.share_partition.machine.acknowledge import DeadRecords
from broker.partitions.share_partition.settings import dead_letter_topic
from broker.replication.partition import ReplicatedPartition
from broker.request.context import ClusterView
from broker.settings import BrokerSettings, groups
from broker.settings import topics as topic_settings
from broker.settings.model import ConfigResourceType
from broker.time.clock import Waiter, wait_until
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import BATCH_HEADER_SIZE, RecordBatch, batches
from protocol.records.errors import RecordsError
from protocol.records.records import Record, build_batch, read_records, write_record
from storage.append_info import AppendInfo

MOST_ATTEMPTS = 5
"""After so many failures the record is archived all the same, without a dead letter (groups D.7)."""
FIRST_BACKOFF_MS, LONGEST_BACKOFF_MS, JITTER = 2000, 30_000, 0.2
"""REQUEST_BACKOFF_MS, REQUEST_BACKOFF_MAX_MS and RETRY_BACKOFF_JITTER of Kafka's ``ShareGroupDLQStateManager``.

The first is 1000, doubled before the first pause; four pauses do not reach the longest.
"""
REPLICATED_WITHIN_MS = 30_000
"""The timeout of Kafka's Produce to the queue (``ShareGroupDLQStateManager``)."""
_COPIED_BYTES = 1 << 20
"""Largest read of a source log: arbitrary, as it is held in memory."""
_TOPIC_CONFIGS: Mapping[str, str | None] = {
    "errors.deadletterqueue.group.enable": "true",
    "message.timestamp.type": "CreateTime",
}
_AGAIN_LATER = frozenset(
    {ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.NOT_CONTROLLER}
)
_log = Logger(__name__)


class DeadLetters:
    """Writes to the dead-letter queues of share groups, for the share partitions of one broker."""

    def __init__(self, cluster: ClusterView, broker_id: int, settings: BrokerSettings) -> None:
        self._cluster, self._broker_id, self._settings = cluster, broker_id, settings

    async def write(self, key: SharePartitionKey, source: ReplicatedPartition, dead: DeadRecords) -> None:
        """Write a range of records to the group's queue; return when they are replicated or the write has failed."""
        try:
            destination = await self._destination(key)
            for batch in self._batches(key, source, destination, dead):
                await self._append(destination, batch)
        except KafkaError as error:
            _log.warning(
                "could not write to the dead-letter queue: the records are archived without it",
                group=key.group_id,
                partition=source.name,
                first_offset=dead.first,
                last_offset=dead.last,
                error=error.message or error.code.name,
            )

    # --- the topic ---------------------------------------------------------------------------------------------------

    async def _destination(self, key: SharePartitionKey) -> ReplicatedPartition:
        """Return the partition of the queue: the source's index modulo the queue's number of partitions.

        Raises:
            KafkaError: if the queue cannot be used or created, or has no leader.
        """
        for attempt in range(MOST_ATTEMPTS):
            name = self._checked_topic(key.group_id)
            topic = self._cluster.image.topics.get(name)
            if topic is None:
                error = self._create(name)
                if error is not None and error.code not in _AGAIN_LATER:
                    raise error
                topic = self._cluster.image.topics.get(name)
            if topic is not None:
                index = key.partition % len(topic.partitions)
                partition = self._cluster.partitions.get((name, index))
                if partition is not None and partition.state.leader >= 0:
                    return partition
            await self._back_off(attempt)
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the dead-letter queue could not be created in five attempts")

    def _checked_topic(self, group_id: str) -> str:
        """Return the queue's name after Kafka's checks (``validateDlqTopic``).

        Raises:
            KafkaError: INVALID_CONFIG, with the setting to change.
        """
        name = dead_letter_topic(self._cluster, group_id)
        settings = self._settings
        prefix = settings.string("errors.deadletterqueue.topic.name.prefix")
        exists = name in self._cluster.image.topics
        reason = None
        if not name:
            reason = f"the group {group_id} has no errors.deadletterqueue.topic.name any more"
        elif name.startswith("__"):
            reason = f"errors.deadletterqueue.topic.name of {group_id} begins with __: {name}"
        elif exists and not self._topic_setting(name, "errors.deadletterqueue.group.enable"):
            reason = f"the topic {name} does not have errors.deadletterqueue.group.enable=true"
        elif not exists and not settings.boolean("errors.deadletterqueue.auto.create.topics.enable"):
            reason = f"the topic {name} does not exist and errors.deadletterqueue.auto.create.topics.enable is false"
        elif prefix and not name.startswith(prefix):
            reason = f"the name {name} does not begin with errors.deadletterqueue.topic.name.prefix={prefix}"
        if reason is not None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, reason)
        return name

    def _topic_setting(self, topic: str, name: str) -> object:
        stored = self._cluster.image.config(ConfigResourceType.TOPIC, topic)
        return topic_settings.effective(stored, self._settings)[name]

    def _create(self, name: str) -> KafkaError | None:
        """Create the queue with the broker's defaults; return the error, if any."""
        if not self._cluster.metadata.active:
            return KafkaError(ErrorCode.NOT_CONTROLLER)
        settings = self._settings
        topic = NewTopic(name, configs=_TOPIC_CONFIGS)
        answer: asyncio.Future[list[CreatedTopic]] = self._cluster.metadata.begin(
            lambda machine, _now_ms, token: machine.create_topics(
                [topic], token, check_configs=lambda configs: topic_settings.validate(configs, settings)
            )
        )
        (created,) = answer.result()
        return created.error

    async def _back_off(self, attempt: int) -> None:
        """Wait 2 s after the first attempt, then twice as long each time, at most 30 s; with 20 % jitter."""
        if attempt + 1 < MOST_ATTEMPTS:
            backoff_ms = min(FIRST_BACKOFF_MS << attempt, LONGEST_BACKOFF_MS)
            backoff_ms = int(backoff_ms * self._cluster.random.uniform(1 - JITTER, 1 + JITTER))
            await Waiter().wait(self._cluster.clock, self._cluster.clock.now_ms() + backoff_ms)

    # --- the records -------------------------------------------------------------------------------------------------

    def _batches(
        self, key: SharePartitionKey, source: ReplicatedPartition, destination: ReplicatedPartition, dead: DeadRecords
    ) -> Iterator[bytearray]:
        """Build record batches within the queue's ``max.message.bytes``; a larger record is a batch by itself."""
        now_ms = self._cluster.clock.now_ms()
        most_bytes = int(str(self._topic_setting(destination.topic, "max.message.bytes")))
        copies = self._copies(key.group_id, source, dead, most_bytes)
        copy = next(copies, None)
        group, size = list[Record](), BATCH_HEADER_SIZE
        for offset in range(dead.first, dead.last + 1):
            while copy is not None and copy.offset < offset:
                copy = next(copies, None)
            record_key, value = (copy.key, copy.value) if copy is not None and copy.offset == offset else (None, None)
            record = Record(len(group), now_ms, record_key, value, _headers(key, source.topic, offset, dead))
            encoded = bytearray()
            write_record(encoded, record, 0, now_ms)
            if group and size + len(encoded) > most_bytes:
                yield build_batch(group)
                group, size = [], BATCH_HEADER_SIZE
                record = record._replace(offset=0)
            group.append(record)
            size += len(encoded)
        yield build_batch(group)

    def _copies(
        self, group_id: str, source: ReplicatedPartition, dead: DeadRecords, most_bytes: int
    ) -> Iterator[Record]:
        """Read the records of the range lazily, if the group copies keys and values.

        Records above ``most_bytes``, and those deleted from the log, are omitted.
        """
        stored = self._cluster.image.config(ConfigResourceType.GROUP, group_id)
        if not groups.effective(stored, self._settings)["errors.deadletterqueue.copy.record.enable"]:
            return
        offset = dead.first
        while offset <= dead.last:
            log = source.led_by(self._broker_id)  # checked for each read: other tasks run in between
            if offset < log.log_start_offset:
                return
            fetched = log.reader.read(offset, _COPIED_BYTES, bound=log.high_watermark, min_one=True)
            read = list(batches(memoryview(b"".join(fetched.buffers))))
            if not read:
                return
            for batch in read:
                yield from _copied(batch, dead, most_bytes)
                offset = batch.last_offset + 1

    async def _append(self, destination: ReplicatedPartition, batch: bytearray) -> None:
        """Append a batch at the queue's leader, with acks=all.

        Raises:
            KafkaError: if the log refuses the batch; NOT_LEADER_OR_FOLLOWER or REQUEST_TIMED_OUT after five attempts.
        """
        for attempt in range(MOST_ATTEMPTS):
            leader = destination.state.leader
            try:
                info = destination.append(leader, bytearray(batch), self._cluster.clock.now_ms(), all_in_sync=True)
                await self._replicated(destination, leader, info)
            except KafkaError as error:
                if error.code not in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT):
                    raise
                if attempt + 1 == MOST_ATTEMPTS:
                    raise
                await self._back_off(attempt)
            else:
                return

    async def _replicated(self, destination: ReplicatedPartition, leader: int, info: AppendInfo) -> None:
        """Wait until the appended batch is below the high watermark.

        Raises:
            KafkaError: NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT.
        """
        clock = self._cluster.clock

        def done() -> bool:
            return destination.led_by(leader).high_watermark > info.last_offset

        if not await wait_until(done, (destination,), clock, clock.now_ms() + REPLICATED_WITHIN_MS):
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)


def _headers(key: SharePartitionKey, topic: str, offset: int, dead: DeadRecords) -> tuple[tuple[str, bytes], ...]:
    """Return the headers that describe the origin of a dead-lettered record (KIP-1191)."""
    values = {
        "topic": topic,
        "partition": key.partition,
        "offset": offset,
        "group": key.group_id,
        "delivery.count": dead.delivery_count,
        "message": dead.cause,
    }
    return tuple((f"__dlq.errors.{name}", str(value).encode()) for name, value in values.items())


def _copied(batch: RecordBatch, dead: DeadRecords, most_bytes: int) -> Iterator[Record]:
    try:
        for record in read_records(batch, most_bytes):
            if dead.first <= record.offset <= dead.last:
                yield record
    except RecordsError:
        return  # larger than max.message.bytes of the queue: written without key and value
