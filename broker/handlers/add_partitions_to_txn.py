"""AddPartitionsToTxn: adds partitions to a transaction (KIP-98), or verifies that they were added (KIP-890).

Versions 0-5. Up to v3 clients send it, for one transaction; from v4 brokers do, for many. Differs from Kafka: a
broker's request for more than 250,000 partitions is refused.
"""

from collections.abc import Sequence

from broker.coordination.metadata.image import INTERNAL_TOPICS
from broker.coordination.transaction.transitions import TV0, TV2, ProducerIdAndEpoch
from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.response_budget import Allowance
from broker.settings.releases import Behaviour
from broker.time.clock import Slices
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.java import string_hash, table_order
from protocol.log_records.transaction import TopicPartition
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from protocol.scala import mutable_order, topic_partition_hash

Codes = dict[TopicPartition, ErrorCode]


async def handle(request: AddPartitionsToTxnRequest, ctx: RequestContext) -> AddPartitionsToTxnResponse:
    """Add partitions to a client's transaction, or verify those that brokers send (transactions C.1).

    If a transactional id is repeated, its last entry has the partitions of all, and the first one those for a common
    error code (AddPartitionsToTxnRequest.partitionsByTransaction, errorResponseForTransaction).
    """
    by_broker = features.add_partitions_is_for_brokers(ctx.version)
    if by_broker and not ctx.authorized(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, "kafka-cluster"):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    partitions = {each.transactional_id: _partitions(each) for each in request.transactions}
    if by_broker:  # a client's request has one transactional id, once
        Allowance().take(sum(len(partitions[each.transactional_id]) for each in request.transactions))
    slices = Slices()
    first: dict[str, AddPartitionsToTxnTransaction] = {}
    results = []
    for transaction in request.transactions:
        await slices.pause()
        name = transaction.transactional_id
        first.setdefault(name, transaction)
        codes: Codes | ErrorCode = _refused_partitions(name, partitions[name], ctx, by_broker=by_broker)
        if not codes:
            try:
                codes = await _coordinator_codes(
                    transaction, partitions[name], ctx, client_transaction_version=TV2 if by_broker else TV0
                )
            except KafkaError as error:
                codes = dict.fromkeys(partitions[name], error.code) if transaction.verify_only else error.code
        if isinstance(codes, ErrorCode):
            results.append(_of_all(first[name], codes, ctx.version))
        else:
            results.append(_of_each(name, codes, ctx.version))
    return AddPartitionsToTxnResponse(results_by_transaction=results)


def _partitions(transaction: AddPartitionsToTxnTransaction) -> list[TopicPartition]:
    return [(topic.name, partition) for topic in transaction.topics for partition in topic.partitions]


def _refused_partitions(
    name: str, partitions: Sequence[TopicPartition], ctx: RequestContext, *, by_broker: bool
) -> Codes:
    """Refuse all partitions if one is denied or missing; return none if all are valid (transactions C.1.1 P1 to P4)."""
    if not by_broker and not ctx.authorized(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, name):
        return dict.fromkeys(partitions, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    topics = set() if by_broker else {topic for topic, _ in partitions}
    denied = {topic for topic in topics if not _may_write(topic, ctx)}
    refused: Codes = {p: ErrorCode.TOPIC_AUTHORIZATION_FAILED for p in partitions if p[0] in denied}
    for partition in partitions:
        if partition not in refused and ctx.cluster.image.partition(*partition) is None:
            refused[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not refused:
        return refused
    order = mutable_order(partitions, topic_partition_hash)
    return {p: refused.get(p, ErrorCode.OPERATION_NOT_ATTEMPTED) for p in order}


def _may_write(topic: str, ctx: RequestContext) -> bool:
    """Whether a client may add the topic; internal ones count as denied (transactions C.1.1 P2)."""
    return topic not in INTERNAL_TOPICS and ctx.authorized(AclOperation.WRITE, ResourceType.TOPIC, topic)


async def _coordinator_codes(
    transaction: AddPartitionsToTxnTransaction,
    partitions: Sequence[TopicPartition],
    ctx: RequestContext,
    *,
    client_transaction_version: int,
) -> Codes | ErrorCode:
    """Return the coordinator's code for each verified partition, or one for all (transactions C.1.1 P5 to P14, C.1.3).

    Raises:
        KafkaError: also one for all partitions.
    """
    name = transaction.transactional_id
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    runtime = ctx.node.transaction_coordinator(name)
    if transaction.verify_only:
        codes: Codes = await runtime.ask(
            lambda machine, _now_ms, to: machine.verify_partitions(name, producer, partitions, to), cause=ctx
        )
        return codes
    pending_first = ctx.release.has(Behaviour.PENDING_FIRST)
    await runtime.ask(
        lambda machine, now_ms, to: machine.add_partitions(
            name,
            producer,
            frozenset(partitions),
            now_ms,
            to,
            client_transaction_version=client_transaction_version,
            pending_first=pending_first,
        ),
        cause=ctx,
    )
    return ErrorCode.NONE


def _of_all(transaction: AddPartitionsToTxnTransaction, code: ErrorCode, version: int) -> AddPartitionsToTxnResult:
    """Build a result with the same code for each partition, including topics without partitions."""
    known = _as_known_by(version, code)
    topics = [
        AddPartitionsToTxnTopicResult(
            topic.name, [AddPartitionsToTxnPartitionResult(partition, known) for partition in topic.partitions]
        )
        for topic in transaction.topics
    ]
    return AddPartitionsToTxnResult(transaction.transactional_id, topics)


def _of_each(name: str, codes: Codes, version: int) -> AddPartitionsToTxnResult:
    """Build a result with a code for each partition; topics in the order of Java's HashMap (resultForTransaction)."""
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for (topic, partition), code in codes.items():
        topics.setdefault(topic, []).append(AddPartitionsToTxnPartitionResult(partition, _as_known_by(version, code)))
    return AddPartitionsToTxnResult(
        name, [AddPartitionsToTxnTopicResult(topic, topics[topic]) for topic in table_order(list(topics), string_hash)]
    )


def _as_known_by(version: int, code: ErrorCode) -> ErrorCode:
    if code is ErrorCode.PRODUCER_FENCED and not features.add_partitions_knows_fencing(version):
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def refuse(request: AddPartitionsToTxnRequest, error: KafkaError, version: int) -> AddPartitionsToTxnResponse:
    """Put the error at the top level for brokers, without results; on every partition for clients."""
    if features.add_partitions_is_for_brokers(version):
        return AddPartitionsToTxnResponse(error_code=error.code)
    results = [_of_all(transaction, error.code, version) for transaction in request.transactions]
    return AddPartitionsToTxnResponse(results_by_transaction=results)


API: Api[AddPartitionsToTxnRequest, AddPartitionsToTxnResponse] = Api(ApiKey.ADD_PARTITIONS_TO_TXN, handle, refuse)
