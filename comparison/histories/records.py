"""Steps at the partitions: produce, fetch, offsets by time and epoch, producers."""

from typing import Any

from comparison.histories.step_request import Builder, Settle, Step, StepRequest
from comparison.target import Producer, Target
from protocol.apis import ApiKey
from protocol.messages.describe_producers import DescribeProducersRequest
from protocol.messages.describe_producers import TopicRequest as ProducersOf
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.records import Record, build_batch

ALL_REPLICAS = -1
PRODUCE_BY_ID = FETCH_BY_ID = 13
"""The versions from which Produce and Fetch name a topic by its id (KIP-516)."""
PATIENCE_MS = 10_000
"""The timeout in Produce: ours, longer than replicas take that replicate at all."""
PARTITION_BYTES, MOST_BYTES = 1 << 20, 1 << 24
"""Limits of a fetch: max.partition.fetch.bytes of Kafka's consumer, and more than all partitions together have."""
NO_PRODUCER = Producer(None, -1, -1)
COMMITTED = 1


def _batch(target: Target, step: Step, producer: Producer, sequence: int) -> bytes:
    """Build a batch of the step's records, each given as [key, value, seconds, headers...]."""
    records = [
        Record(
            index,
            target.names.base_ms + 1000 * seconds,
            None if key is None else key.encode(),
            None if value is None else value.encode(),
            [(name, text.encode()) for name, text in headers],
        )
        for index, (key, value, seconds, *headers) in enumerate(step["records"])
    ]
    return bytes(
        build_batch(
            records,
            codec=step.get("codec", 0),
            producer_id=producer.id,
            producer_epoch=producer.epoch + step.get("epoch_shift", 0) if producer.id >= 0 else -1,
            base_sequence=sequence,
            transactional=step.get("transactional", False),
        )
    )


def produce(target: Target, step: Step) -> StepRequest:
    """Produce to one partition, with or without an idempotent producer, whose sequence the step may shift."""
    producer = target.producer(step["producer"]) if "producer" in step else NO_PRODUCER
    place = (step["topic"], step["partition"])
    sequence = -1
    if producer.id >= 0:
        sequence = max(producer.sequences.get(place, 0) + step.get("sequence_shift", 0), 0)
    batch = _batch(target, step, producer, sequence)
    if step.get("spoil") is not None:
        position, mask = step["spoil"]
        spoiled = bytearray(batch)
        spoiled[position % len(spoiled)] ^= mask
        batch = bytes(spoiled)
    data = [PartitionProduceData(step["partition"], batch)]
    if step["v"] >= PRODUCE_BY_ID:
        topics = [TopicProduceData("", data, target.topic_id(step["topic"]))]
    else:
        topics = [TopicProduceData(target.called(step["topic"]), data)]
    for name, partition in step.get("also", []):  # the same records to another partition
        other = [PartitionProduceData(partition, _batch(target, step, NO_PRODUCER, -1))]
        identity = ("", other, target.topic_id(name)) if step["v"] >= PRODUCE_BY_ID else (target.called(name), other)
        topics.append(TopicProduceData(*identity))
    transactional_id = producer.transactional_id if step.get("transactional") else None
    named = None if transactional_id is None else target.called(transactional_id)
    request = ProduceRequest(named, step["acks"], step.get("timeout", PATIENCE_MS), topics)

    def after(answer: Any) -> None:
        if producer.id < 0:
            return
        ((partition,),) = [topic.partition_responses for topic in answer.responses]
        if not partition.error_code and not step.get("epoch_shift"):
            following = sequence + len(step["records"])
            producer.sequences[place] = max(following, producer.sequences.get(place, 0))

    if step["acks"] == 0:
        return StepRequest(ApiKey.PRODUCE, step["v"], request, step["c"], settle=Settle.CONNECTION, answered=False)
    settle = Settle.NOTHING if step["acks"] == ALL_REPLICAS else Settle.REPLICAS
    return StepRequest(ApiKey.PRODUCE, step["v"], request, step["c"], after, settle=settle)


def fetch(target: Target, step: Step) -> StepRequest:
    """Fetch of one partition, without a session; it waits if the step has a maximum wait."""
    partition = FetchPartition(step["partition"], step["offset"], step.get("max_bytes", PARTITION_BYTES))
    partition.current_leader_epoch = step.get("epoch", -1)
    if step["v"] >= FETCH_BY_ID:
        topic = FetchTopic("", [partition], target.topic_id(step["topic"]))
    else:
        topic = FetchTopic(target.called(step["topic"]), [partition])
    request = FetchRequest(
        max_wait_ms=step.get("max_wait", 0),
        min_bytes=step.get("min_bytes", 1),
        max_bytes=MOST_BYTES,
        isolation_level=step.get("isolation", 0),
        topics=[topic],
        session_id=0,
        session_epoch=-1,
    )
    return StepRequest(ApiKey.FETCH, step["v"], request, step["c"], reads=True)


def fetch_session(target: Target, step: Step) -> StepRequest:
    """Fetch of several partitions in a session: `begin` opens a new one, `forget` removes partitions (KIP-227)."""
    session_id, epoch = (0, 0) if step.get("begin") else target.sessions.get(step["session"], (0, 0))
    by_id = step["v"] >= FETCH_BY_ID
    topics, forgotten = [], []
    for name, partitions in step["partitions"].items():
        fetched = [FetchPartition(partition, offset, PARTITION_BYTES) for partition, offset in partitions]
        topics.append(
            FetchTopic("", fetched, target.topic_id(name)) if by_id else FetchTopic(target.called(name), fetched)
        )
    for name, numbers in step.get("forget", {}).items():
        gone = (
            ForgottenTopic("", numbers, target.topic_id(name))
            if by_id
            else ForgottenTopic(target.called(name), numbers)
        )
        forgotten.append(gone)
    shifted = epoch + step.get("epoch_shift", 0)
    request = FetchRequest(
        max_wait_ms=step.get("max_wait", 0),
        min_bytes=step.get("min_bytes", 0),
        max_bytes=MOST_BYTES,
        topics=topics,
        session_id=session_id,
        session_epoch=shifted,
        forgotten_topics_data=forgotten,
    )

    def after(answer: Any) -> None:
        if not answer.error_code and answer.session_id:
            target.sessions[step["session"]] = (answer.session_id, max(epoch, 0) + 1)

    return StepRequest(ApiKey.FETCH, step["v"], request, step["c"], after)


def list_offsets(target: Target, step: Step) -> StepRequest:
    """ListOffsets of one partition: by a special timestamp, or by seconds after the start of the history."""
    at = step["at"]
    partition = ListOffsetsPartition(step["partition"], at if at < 0 else target.names.base_ms + 1000 * at)
    partition.current_leader_epoch = step.get("epoch", -1)
    topics = [ListOffsetsTopic(target.called(step["topic"]), [partition])]
    request = ListOffsetsRequest(-1, topics, step.get("isolation", 0))
    return StepRequest(ApiKey.LIST_OFFSETS, step["v"], request, step["c"], reads=True)


def epoch_end(target: Target, step: Step) -> StepRequest:
    """OffsetForLeaderEpoch of one partition."""
    partition = OffsetForLeaderPartition(step["partition"], step.get("epoch", -1), step["leader_epoch"])
    request = OffsetForLeaderEpochRequest([OffsetForLeaderTopic(target.called(step["topic"]), [partition])])
    return StepRequest(ApiKey.OFFSET_FOR_LEADER_EPOCH, step["v"], request, step["c"], reads=True)


def describe_producers(target: Target, step: Step) -> StepRequest:
    """DescribeProducers of one partition."""
    request = DescribeProducersRequest([ProducersOf(target.called(step["topic"]), [step["partition"]])])
    return StepRequest(ApiKey.DESCRIBE_PRODUCERS, step["v"], request, step["c"], reads=True)


STEPS: dict[str, Builder] = {
    "produce": produce,
    "fetch": fetch,
    "fetch_session": fetch_session,
    "list_offsets": list_offsets,
    "epoch_end": epoch_end,
    "describe_producers": describe_producers,
}
