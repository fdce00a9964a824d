"""Requests as librdkafka 2.16 sends them, built without it, for brokers measured inside this process."""

import time
from uuid import UUID

from benchmarks import payloads
from protocol.apis import ApiKey
from protocol.codec import encode_request
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.records import Record, build_batch

_CLIENT = "rdkafka"


def produce(topic: str, *, records: int, size: int, version: int = 10) -> bytes:
    """Build a Produce request with one batch for partition 0, acks=all."""
    now_ms, values = time.time_ns() // 1_000_000, payloads.lines(size)
    batch_records = [
        Record(index, now_ms + index // 500, None, values[index % len(values)]) for index in range(records)
    ]
    data = TopicProduceData(topic, [PartitionProduceData(0, bytes(build_batch(batch_records)))])
    return encode_request(ApiKey.PRODUCE, version, 1, _CLIENT, ProduceRequest(None, -1, 30_000, [data]))


def fetch(topic_id: UUID, *, offset: int, max_wait_ms: int = 500) -> bytes:
    """Build a Fetch request of partition 0 from an offset on: at most 1 MiB, no session, read_committed."""
    partition = FetchPartition(0, offset, 1 << 20, current_leader_epoch=0)
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=50 << 20,
        isolation_level=1,
        session_epoch=-1,
        topics=[FetchTopic(partitions=[partition], topic_id=topic_id)],
    )
    return encode_request(ApiKey.FETCH, 16, 1, _CLIENT, request)


def metadata(topic: str) -> bytes:
    """Build a Metadata request of one topic."""
    return encode_request(ApiKey.METADATA, 12, 1, _CLIENT, MetadataRequest([MetadataRequestTopic(name=topic)]))


def find_coordinator(group: str) -> bytes:
    """Build a FindCoordinator request of a group."""
    return encode_request(ApiKey.FIND_COORDINATOR, 2, 1, _CLIENT, FindCoordinatorRequest(group))


def find_transactions(name: str) -> bytes:
    """Build a FindCoordinator request of a transactional id."""
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=[name])
    return encode_request(ApiKey.FIND_COORDINATOR, 4, 1, _CLIENT, request)
