"""AddPartitionsToTxn: partitions join a transaction (KIP-98), or are asked whether they have (KIP-890).

Versions 0-5. Up to v3 clients ask, about one transaction; from v4 brokers do, about many. Not done: nothing.
"""

from collections.abc import Callable

from broker.api import Api
from broker.context import AclOperation, RequestContext, ResourceType
from broker.coordination.metadata.image import INTERNAL_TOPICS
from broker.coordination.transaction.epochs import ProducerIdAndEpoch
from broker.coordination.transaction.transitions import TV0, TV2
from broker.releases import Behaviour
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.transaction import TopicPartition
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

Codes = dict[TopicPartition, ErrorCode]


async def handle(request: AddPartitionsToTxnRequest, ctx: RequestContext) -> AddPartitionsToTxnResponse:
    """Add partitions to a client's transaction, or verify those that brokers ask about (transactions C.1)."""
    by_broker = features.add_partitions_is_for_brokers(ctx.version)
    if by_broker and not ctx.authorized(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, "kafka-cluster"):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    results = []
    for transaction in request.transactions:
        codes = _refused_partitions(transaction, ctx, by_broker=by_broker)
        if not codes:
            codes = await _asked(transaction, ctx, client=TV2 if by_broker else TV0)
        results.append(_result(transaction, codes.__getitem__, ctx.version))
    return AddPartitionsToTxnResponse(results_by_transaction=results)


def _partitions(transaction: AddPartitionsToTxnTransaction) -> list[TopicPartition]:
    return [(topic.name, partition) for topic in transaction.topics for partition in topic.partitions]


def _refused_partitions(transaction: AddPartitionsToTxnTransaction, ctx: RequestContext, *, by_broker: bool) -> Codes:
    """Refuse all partitions if one of them is not allowed or missing; empty: go on (transactions C.1.1 P1 to P4)."""
    name, partitions = transaction.transactional_id, _partitions(transaction)
    if not by_broker and not ctx.authorized(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, name):
        return dict.fromkeys(partitions, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    refused: Codes = {}
    for topic in {topic for topic, _ in partitions}:
        if not by_broker and not _may_write(topic, ctx):
            refused.update((p, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for p in partitions if p[0] == topic)
    for partition in partitions:
        if partition not in refused and ctx.cluster.image.partition(*partition) is None:
            refused[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not refused:
        return refused
    return {p: refused.get(p, ErrorCode.OPERATION_NOT_ATTEMPTED) for p in partitions}


def _may_write(topic: str, ctx: RequestContext) -> bool:
    """Internal topics are Kafka's own: clients add them by AddOffsetsToTxn, if at all."""
    return topic not in INTERNAL_TOPICS and ctx.authorized(AclOperation.WRITE, ResourceType.TOPIC, topic)


async def _asked(transaction: AddPartitionsToTxnTransaction, ctx: RequestContext, *, client: int) -> Codes:
    """The coordinator's code, mostly one for all partitions (transactions C.1.1 P5 to P14, C.1.3 V1 to V8)."""
    name, partitions = transaction.transactional_id, _partitions(transaction)
    producer = ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch)
    try:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        runtime = ctx.node.transactions_for(name)
        if transaction.verify_only:
            codes: Codes = await runtime.ask(
                lambda machine, _now_ms, to: machine.verify_partitions(name, producer, partitions, to), cause=ctx
            )
            return codes
        pending_first = ctx.release.has(Behaviour.PENDING_FIRST)
        await runtime.ask(
            lambda machine, now_ms, to: machine.add_partitions(
                name, producer, frozenset(partitions), now_ms, to, client=client, pending_first=pending_first
            ),
            cause=ctx,
        )
    except KafkaError as error:
        return dict.fromkeys(partitions, error.code)
    return dict.fromkeys(partitions, ErrorCode.NONE)


def _result(
    transaction: AddPartitionsToTxnTransaction, code_of: Callable[[TopicPartition], ErrorCode], version: int
) -> AddPartitionsToTxnResult:
    topics = [
        AddPartitionsToTxnTopicResult(
            topic.name,
            [
                AddPartitionsToTxnPartitionResult(partition, _as_known_by(version, code_of((topic.name, partition))))
                for partition in topic.partitions
            ],
        )
        for topic in transaction.topics
    ]
    return AddPartitionsToTxnResult(transaction.transactional_id, topics)


def _as_known_by(version: int, code: ErrorCode) -> ErrorCode:
    if code is ErrorCode.PRODUCER_FENCED and not features.add_partitions_knows_fencing(version):
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def refuse(request: AddPartitionsToTxnRequest, error: KafkaError, version: int) -> AddPartitionsToTxnResponse:
    """The error at the top for brokers, without results; on every partition for clients."""
    if features.add_partitions_is_for_brokers(version):
        return AddPartitionsToTxnResponse(error_code=error.code)
    results = [_result(transaction, lambda _: error.code, version) for transaction in request.transactions]
    return AddPartitionsToTxnResponse(results_by_transaction=results)


API = Api(ApiKey.ADD_PARTITIONS_TO_TXN, (0, 5), handle, refuse)
