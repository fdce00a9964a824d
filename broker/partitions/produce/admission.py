"""Validation of the partitions of a Produce request before the append.

See transactions D.1 G1 to G8 and core D.1.
"""

from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

from broker.replication.partition import ReplicatedPartition
from broker.request import message_format
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.produce_results import Admitted, Produced, without_stack
from protocol import features
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from storage.append_errors import RequestRejectedError
from storage.log.validation import check_partition_records, scan_first_batch

Named = tuple[str, UUID | None, int]
"""Topic name, topic id and partition, as in the request."""


def admit(request: ProduceRequest, ctx: RequestContext) -> list[Admitted | Produced]:
    """Return the request's partitions, each admitted or refused; a repeated partition is returned once.

    Raises:
        KafkaError: the whole request is refused: CORRUPT_MESSAGE if some partition's first batch cannot even be
            scanned, TRANSACTIONAL_ID_AUTHORIZATION_FAILED, INVALID_PRODUCER_ID_MAPPING for two producers in one
            request.
    """
    _scan(request, ctx)
    entries: dict[Named, Admitted | Produced] = {}
    last: dict[Named, PartitionProduceData] = {}
    for topic in request.topic_data:
        for data in topic.partition_data:
            key = (topic.name, topic.topic_id, data.index)
            if data.records is None:
                last = last or _last_entries(request)
                if last[key] is not data:
                    continue
            entry = _admit(topic, data, ctx)
            entries[key] = _last(entries[key], entry) if key in entries else entry
    if len(entries) > 1 and len(_producers(entries.values())) > 1:
        raise RequestRejectedError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
        )
    return list(entries.values())


def _last_entries(request: ProduceRequest) -> dict[Named, PartitionProduceData]:
    """Return the last entry for each partition: an entry with null records is ignored if another one follows.

    KafkaApis.handleProduceRequest keeps invalid entries in a map, where the next entry for the partition replaces it.
    """
    return {
        (topic.name, topic.topic_id, data.index): data for topic in request.topic_data for data in topic.partition_data
    }


def _last(before: Admitted | Produced, entry: Admitted | Produced) -> Admitted | Produced:
    """Merge two entries for one partition: the later one is appended, unless only it is refused (core D.1 P5).

    The response carries the error of either.
    """
    if isinstance(entry, Admitted):
        return replace(entry, overruled=before.overruled if isinstance(before, Admitted) else before.error)
    return replace(before, overruled=entry.error) if isinstance(before, Admitted) else entry


def _producers(entries: Iterable[Admitted | Produced]) -> set[tuple[int, int]]:
    """Return the producer ids and epochs of the transactional batches."""
    transactional = (each.batch for each in entries if isinstance(each, Admitted) and each.transactional)
    return {(batch.producer_id, batch.producer_epoch) for batch in transactional}


def _scan(request: ProduceRequest, ctx: RequestContext) -> None:
    """Scan the first batch of every partition before all other checks (transactions D.1 G1)."""
    transactional = False
    for topic in request.topic_data:
        for data in topic.partition_data:
            if isinstance(data.records, memoryview) and scan_first_batch(data.records):
                transactional = True
    if not transactional:
        return
    allowed = request.transactional_id is not None and ctx.authorized(
        AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
    )
    if not allowed:
        raise RequestRejectedError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def _admit(topic: TopicProduceData, data: PartitionProduceData, ctx: RequestContext) -> Admitted | Produced:
    """Check topic id, authorization, existence and format of one partition's records (transactions D.1 G2 to G5)."""
    name = topic.name
    partition: ReplicatedPartition | None = None
    try:
        if features.produce_uses_topic_ids(ctx.version):
            name = _name_of(topic, ctx)
        if not ctx.authorized(AclOperation.WRITE, ResourceType.TOPIC, name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        partition = ctx.node.partition(name, data.index)
        records = data.records
        if not isinstance(records, memoryview):
            raise KafkaError(ErrorCode.INVALID_RECORD)
        records = message_format.upconvert(records, ctx)
        batch = check_partition_records(records, zstd_allowed=features.produce_allows_zstd(ctx.version))
        size = batch.size
        whole = records if size == len(records) else records[:size]
        return Admitted(topic.name, topic.topic_id, name, data.index, partition, batch, whole)
    except RequestRejectedError:
        raise
    except KafkaError as error:
        return Produced(topic.name, topic.topic_id, name, data.index, partition, error=without_stack(error))


def _name_of(topic: TopicProduceData, ctx: RequestContext) -> str:
    known = ctx.cluster.image.topics_by_id.get(topic.topic_id) if topic.topic_id else None
    if known is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    return known.name
