"""WriteTxnMarkers: ends producers' transactions on this broker's partitions (KIP-98; by administrators since KIP-664).

Versions 1-2; v2 has the transaction version, which decides the epoch check (KIP-1228). Not done: nothing.
"""

import asyncio
from functools import partial

from broker.coordination.coordinators import GROUP_TOPIC
from broker.partitions.transactions.markers import Marker, write_marker
from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.time.clock import Slices
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.java import long_hash, table_order
from protocol.log_records.transaction import TopicPartition
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.scala import tabled_by_topic


async def handle(request: WriteTxnMarkersRequest, ctx: RequestContext) -> WriteTxnMarkersResponse:
    """Write the markers; answer when every marker is replicated, or has failed (transactions C.5)."""
    if not any(
        ctx.authorized(operation, ResourceType.CLUSTER, "kafka-cluster")
        for operation in (AclOperation.ALTER, AclOperation.CLUSTER_ACTION)
    ):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    codes: dict[int, dict[TopicPartition, ErrorCode]] = {}
    # A set: quirks not copied are a partition that is named twice, and a marker whose partitions are all elsewhere, for
    # which Kafka may never answer (transactions C.5.6).
    outstanding = {(number, place) for number, marker in enumerate(request.markers) for place in _places(marker)}
    answered, slices = asyncio.Event(), Slices()

    def note(number: int, producer_id: int, place: TopicPartition, code: ErrorCode) -> None:
        codes[producer_id][place] = code
        outstanding.discard((number, place))
        if not outstanding:
            answered.set()

    for number, requested in enumerate(request.markers):
        if not _places(requested):
            continue
        codes.setdefault(requested.producer_id, {})
        marker = Marker(
            requested.producer_id,
            requested.producer_epoch,
            requested.transaction_result,
            requested.coordinator_epoch,
            requested.transaction_version,
        )
        for place in _places(requested):
            await slices.pause()
            # Absence before the producer: a marker without one fails the request only where it would be written.
            # (transactions C.5.3, C.5.7)
            if not _is_here(place, ctx):
                note(number, requested.producer_id, place, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                continue
            if not marker.has_producer and place[0] != GROUP_TOPIC:  # on the offsets topic only that partition fails
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
            write_marker(ctx.cluster, ctx.node, place, marker, partial(note, number, requested.producer_id, place))
    if outstanding:
        await answered.wait()
    return WriteTxnMarkersResponse(_results(codes))


def _is_here(place: TopicPartition, ctx: RequestContext) -> bool:
    """Whether this broker has a replica; for other partitions it answers that they are unknown."""
    partition = ctx.cluster.image.partition(*place)
    return partition is not None and ctx.node.id in partition.replicas


def _places(marker: WritableTxnMarker) -> list[TopicPartition]:
    """Return the partitions of a marker. A partition of the offsets topic that is listed twice gets two markers."""
    places: list[TopicPartition] = []
    seen: set[TopicPartition] = set()
    for topic in marker.topics:
        for place in ((topic.name, index) for index in topic.partition_indexes):
            if place not in seen or topic.name == GROUP_TOPIC:
                places.append(place)
            seen.add(place)
    return places


def _results(codes: dict[int, dict[TopicPartition, ErrorCode]]) -> list[WritableTxnMarkerResult]:
    """Build the results by producer, in the order of Java's hash tables."""
    return [
        WritableTxnMarkerResult(
            producer_id,
            [
                WritableTxnMarkerTopicResult(
                    topic,
                    [WritableTxnMarkerPartitionResult(index, codes[producer_id][topic, index]) for index in indexes],
                )
                for topic, indexes in tabled_by_topic(codes[producer_id]).items()
            ],
        )
        for producer_id in table_order(list(codes), long_hash)
    ]


def refuse(request: WriteTxnMarkersRequest, error: KafkaError, version: int) -> WriteTxnMarkersResponse:  # noqa: ARG001
    """Put the error on every partition of each producer's last marker (WriteTxnMarkersRequest.getErrorResponse)."""
    codes = {marker.producer_id: dict.fromkeys(_places(marker), error.code) for marker in request.markers}
    return WriteTxnMarkersResponse(_results(codes))


API: Api[WriteTxnMarkersRequest, WriteTxnMarkersResponse] = Api(ApiKey.WRITE_TXN_MARKERS, handle, refuse)
