"""Requests as the rows of core ask them: short to write; what a row does not speak of is at its default."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic
from protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.records.batch import RecordBatch
from protocol.records.records import Record, read_records
from tests.wire import Wire

RANDOM_ID = UUID("5f0c7bb6-6a3c-4d0e-9a54-7c1f00c0ffee")
"""A topic id that no topic has."""
FIRST_VERSION_WITH_IDS = 13
"""Of Produce and of Fetch (KIP-516)."""
Bytes = bytes | bytearray | memoryview


# --- topics ----------------------------------------------------------------------------------------------------------


def topic(
    name: str,
    partitions: int = 1,
    factor: int = 1,
    *,
    assignments: Mapping[int, Sequence[int]] | None = None,
    configs: Mapping[str, str | None] | None = None,
) -> CreatableTopic:
    """A topic to be created."""
    placed = [CreatableReplicaAssignment(index, list(ids)) for index, ids in (assignments or {}).items()]
    set_up = [CreatableTopicConfig(key, value) for key, value in (configs or {}).items()]
    return CreatableTopic(name, partitions, factor, placed, set_up)


def create(
    wire: Wire, *topics: CreatableTopic, version: int = 7, timeout_ms: int = 10_000, validate_only: bool = False
) -> Sequence[CreatableTopicResult]:
    """CreateTopics; the results in the order of the response."""
    request = CreateTopicsRequest(topics, timeout_ms, validate_only)
    results: Sequence[CreatableTopicResult] = wire.call(ApiKey.CREATE_TOPICS, version, request).topics
    return results


def created(wire: Wire, name: str, partitions: int = 1, factor: int = 1, **configs: str) -> UUID:
    """A new topic's id; configs are written with ``_`` for the dots of Kafka's names."""
    (result,) = create(
        wire, topic(name, partitions, factor, configs={key.replace("_", "."): value for key, value in configs.items()})
    )
    assert result.error_code is ErrorCode.NONE, result.error_message
    assert result.topic_id is not None
    return result.topic_id


def metadata(
    wire: Wire, *names: str, version: int = 12, auto_create: bool = False, **fields: Any
) -> Sequence[MetadataResponseTopic]:
    """Metadata of topics by name."""
    topics = [MetadataRequestTopic(name) for name in names]
    request = MetadataRequest(topics, allow_auto_topic_creation=auto_create, **fields)
    response: MetadataResponse = wire.call(ApiKey.METADATA, version, request)
    return response.topics


def metadata_by_id(wire: Wire, *ids: UUID, version: int = 12) -> Sequence[MetadataResponseTopic]:
    """Metadata of topics by id."""
    request = MetadataRequest([MetadataRequestTopic(None, each) for each in ids], allow_auto_topic_creation=False)
    response: MetadataResponse = wire.call(ApiKey.METADATA, version, request)
    return response.topics


def exists(wire: Wire, name: str) -> bool:
    """Whether a topic is there."""
    (topic,) = metadata(wire, name)
    return topic.error_code is ErrorCode.NONE


# --- producing -------------------------------------------------------------------------------------------------------


def produce_request(
    topics: Mapping[str | UUID, Mapping[int, Bytes | None]],
    *,
    acks: int = 1,
    timeout_ms: int = 5_000,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """A request with batches by topic name, or id from version 13 on, and partition."""
    data = []
    for who, batches in topics.items():
        partitions = [PartitionProduceData(index, batch) for index, batch in batches.items()]
        if isinstance(who, UUID):
            data.append(TopicProduceData("", partitions, who))
        else:
            data.append(TopicProduceData(who, partitions))
    return ProduceRequest(transactional_id, acks, timeout_ms, data)


def produce_all(
    wire: Wire, topics: Mapping[str | UUID, Mapping[int, Bytes | None]], *, version: int = 9, **fields: Any
) -> dict[int, PartitionProduceResponse]:
    """Produce to partitions with different numbers; their responses by number."""
    response: ProduceResponse = wire.call(ApiKey.PRODUCE, version, produce_request(topics, **fields))
    return {answer.index: answer for each in response.responses for answer in each.partition_responses}


def produce(
    wire: Wire, where: str | UUID, batch: Bytes | None, *, partition: int = 0, version: int = 9, **fields: Any
) -> PartitionProduceResponse:
    """Produce one batch; the partition's response."""
    return produce_all(wire, {where: {partition: batch}}, version=version, **fields)[partition]


def produced(wire: Wire, where: str, batch: Bytes, *, partition: int = 0, **fields: Any) -> int:
    """The base offset of a batch that is accepted."""
    answer = produce(wire, where, batch, partition=partition, **fields)
    assert answer.error_code is ErrorCode.NONE, answer
    return answer.base_offset


# --- fetching --------------------------------------------------------------------------------------------------------


def interest(partition: int = 0, offset: int = 0, max_bytes: int = 1 << 20, **fields: Any) -> FetchPartition:
    """One partition of a fetch."""
    return FetchPartition(partition, offset, max_bytes, **fields)


def fetch_request(
    topics: Mapping[str | UUID, Sequence[FetchPartition]],
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 24,
    session: tuple[int, int] = (0, -1),
    forgotten: Mapping[str | UUID, Sequence[int]] | None = None,
    **fields: Any,
) -> FetchRequest:
    """A request by topic name, or id from version 13 on; ``session`` is (id, epoch)."""
    fetch_topics = [
        FetchTopic("", list(parts), who) if isinstance(who, UUID) else FetchTopic(who, list(parts))
        for who, parts in topics.items()
    ]
    left = [
        ForgottenTopic("", list(parts), who) if isinstance(who, UUID) else ForgottenTopic(who, list(parts))
        for who, parts in (forgotten or {}).items()
    ]
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=fetch_topics,
        session_id=session[0],
        session_epoch=session[1],
        forgotten_topics_data=left,
        **fields,
    )


def fetch_all(
    wire: Wire, topics: Mapping[str | UUID, Sequence[FetchPartition]], *, version: int = 12, **fields: Any
) -> FetchResponse:
    """Fetch of several partitions."""
    response: FetchResponse = wire.call(ApiKey.FETCH, version, fetch_request(topics, **fields))
    return response


def answers(response: FetchResponse) -> list[tuple[str, int]]:
    """Topic and partition of everything in a response, in its order."""
    return [(each.topic, part.partition_index) for each in response.responses for part in each.partitions]


def fetch(
    wire: Wire,
    where: str | UUID,
    offset: int = 0,
    *,
    partition: int = 0,
    max_bytes: int = 1 << 20,
    version: int = 12,
    epoch: int = -1,
    last_epoch: int = -1,
    **fields: Any,
) -> PartitionData:
    """Fetch of one partition."""
    entry = interest(partition, offset, max_bytes, current_leader_epoch=epoch, last_fetched_epoch=last_epoch)
    response = fetch_all(wire, {where: [entry]}, version=version, **fields)
    assert response.error_code is ErrorCode.NONE, response.error_code
    ((answer,),) = [each.partitions for each in response.responses]
    return answer


def data_of(answer: PartitionData) -> bytes:
    """A partition's records as one byte string."""
    assert isinstance(answer.records, bytes | bytearray | memoryview)
    return bytes(answer.records)


def batches_of(answer: PartitionData) -> list[RecordBatch]:
    """The whole batches that a partition's answer holds."""
    data, at, batches = data_of(answer), 0, []
    while len(data) - at >= 61:
        batch = RecordBatch(data, at)
        if at + batch.size > len(data):
            break
        batches.append(batch)
        at += batch.size
    return batches


def records_of(answer: PartitionData) -> list[Record]:
    """The records that a partition's answer holds."""
    return [record for batch in batches_of(answer) for record in read_records(batch)]


def records_deleted(wire: Wire, name: str, offset: int) -> DeleteRecordsPartitionResult:
    """DeleteRecords of a topic's partition 0."""
    topic = DeleteRecordsTopic(name, [DeleteRecordsPartition(0, offset)])
    response = wire.call(ApiKey.DELETE_RECORDS, 2, DeleteRecordsRequest([topic], 5000))
    ((result,),) = [each.partitions for each in response.topics]
    deletion: DeleteRecordsPartitionResult = result
    return deletion
