"""Steps at the partitions: produce, fetch, offsets by time and epoch, producers."""

from typing import Any

from comparison.histories.asked import Asked, Builder, Settle, Step
from comparison.side import Producer, Side
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
NO_PRODUCER = Producer(None, -1, -1)
COMMITTED = 1


def _batch(side: Side, step: Step, producer: Producer, sequence: int) -> bytes:
    """The step's records, each given as [key, value, seconds, headers...]."""
    records = [
        Record(
            index,
            side.names.base_ms + 1000 * seconds,
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


def produce(side: Side, step: Step) -> Asked:
    """Produce to one partition: plainly, or for a producer, whose sequence the step may shift."""
    producer = side.producer(step["producer"]) if "producer" in step else NO_PRODUCER
    place = (step["topic"], step["partition"])
    sequence = -1
    if producer.id >= 0:
        sequence = max(producer.sequences.get(place, 0) + step.get("sequence_shift", 0), 0)
    batch = _batch(side, step, producer, sequence)
    if step.get("spoil") is not None:
        position, mask = step["spoil"]
        spoiled = bytearray(batch)
        spoiled[position % len(spoiled)] ^= mask
        batch = bytes(spoiled)
    data = [PartitionProduceData(step["partition"], batch)]
    if step["v"] >= PRODUCE_BY_ID:
        topics = [TopicProduceData("", data, side.topic_id(step["topic"]))]
    else:
        topics = [TopicProduceData(side.called(step["topic"]), data)]
    for name, partition in step.get("also", []):  # the same records once more, to somewhere else
        other = [PartitionProduceData(partition, _batch(side, step, NO_PRODUCER, -1))]
        identity = ("", other, side.topic_id(name)) if step["v"] >= PRODUCE_BY_ID else (side.called(name), other)
        topics.append(TopicProduceData(*identity))
    transactional_id = producer.transactional_id if step.get("transactional") else None
    named = None if transactional_id is None else side.called(transactional_id)
    request = ProduceRequest(named, step["acks"], 10_000, topics)

    def after(answer: Any) -> None:
        if producer.id < 0:
            return
        ((partition,),) = [each.partition_responses for each in answer.responses]
        if not partition.error_code and not step.get("epoch_shift"):
            following = sequence + len(step["records"])
            producer.sequences[place] = max(following, producer.sequences.get(place, 0))

    if step["acks"] == 0:
        return Asked(ApiKey.PRODUCE, step["v"], request, step["c"], settle=Settle.CONNECTION, answered=False)
    settle = Settle.NOTHING if step["acks"] == ALL_REPLICAS else Settle.REPLICAS
    return Asked(ApiKey.PRODUCE, step["v"], request, step["c"], after, settle=settle)


def fetch(side: Side, step: Step) -> Asked:
    """Fetch of one partition, without waiting and without a session."""
    asked = FetchPartition(step["partition"], step["offset"], step.get("max_bytes", 1 << 20))
    asked.current_leader_epoch = step.get("epoch", -1)
    if step["v"] >= FETCH_BY_ID:
        topic = FetchTopic("", [asked], side.topic_id(step["topic"]))
    else:
        topic = FetchTopic(side.called(step["topic"]), [asked])
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=step.get("min_bytes", 1),
        max_bytes=1 << 24,
        isolation_level=step.get("isolation", 0),
        topics=[topic],
        session_id=0,
        session_epoch=-1,
    )
    return Asked(ApiKey.FETCH, step["v"], request, step["c"], reads=True)


def fetch_session(side: Side, step: Step) -> Asked:
    """Fetch of several partitions in a session: `begin` opens a new one, `forget` takes partitions out (KIP-227)."""
    session_id, epoch = (0, 0) if step.get("begin") else side.sessions.get(step["session"], (0, 0))
    by_id = step["v"] >= FETCH_BY_ID
    topics, forgotten = [], []
    for name, partitions in step["partitions"].items():
        asked = [FetchPartition(partition, offset, 1 << 20) for partition, offset in partitions]
        topics.append(FetchTopic("", asked, side.topic_id(name)) if by_id else FetchTopic(side.called(name), asked))
    for name, numbers in step.get("forget", {}).items():
        gone = ForgottenTopic("", numbers, side.topic_id(name)) if by_id else ForgottenTopic(side.called(name), numbers)
        forgotten.append(gone)
    shifted = epoch + step.get("epoch_shift", 0)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 24,
        topics=topics,
        session_id=session_id,
        session_epoch=shifted,
        forgotten_topics_data=forgotten,
    )

    def after(answer: Any) -> None:
        if not answer.error_code and answer.session_id:
            side.sessions[step["session"]] = (answer.session_id, max(epoch, 0) + 1)

    return Asked(ApiKey.FETCH, step["v"], request, step["c"], after)


def list_offsets(side: Side, step: Step) -> Asked:
    """ListOffsets of one partition: a special timestamp, or seconds after the history's beginning."""
    at = step["at"]
    asked = ListOffsetsPartition(step["partition"], at if at < 0 else side.names.base_ms + 1000 * at)
    asked.current_leader_epoch = step.get("epoch", -1)
    topics = [ListOffsetsTopic(side.called(step["topic"]), [asked])]
    request = ListOffsetsRequest(-1, topics, step.get("isolation", 0))
    return Asked(ApiKey.LIST_OFFSETS, step["v"], request, step["c"], reads=True)


def epoch_end(side: Side, step: Step) -> Asked:
    """OffsetForLeaderEpoch of one partition."""
    asked = OffsetForLeaderPartition(step["partition"], step.get("epoch", -1), step["leader_epoch"])
    request = OffsetForLeaderEpochRequest([OffsetForLeaderTopic(side.called(step["topic"]), [asked])])
    return Asked(ApiKey.OFFSET_FOR_LEADER_EPOCH, step["v"], request, step["c"], reads=True)


def describe_producers(side: Side, step: Step) -> Asked:
    """DescribeProducers of one partition."""
    request = DescribeProducersRequest([ProducersOf(side.called(step["topic"]), [step["partition"]])])
    return Asked(ApiKey.DESCRIBE_PRODUCERS, step["v"], request, step["c"], reads=True)


STEPS: dict[str, Builder] = {
    "produce": produce,
    "fetch": fetch,
    "fetch_session": fetch_session,
    "list_offsets": list_offsets,
    "epoch_end": epoch_end,
    "describe_producers": describe_producers,
}
