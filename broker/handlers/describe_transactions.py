"""DescribeTransactions: the coordinator's state of transactional ids (KIP-664).

Version 0. Differs from Kafka: a request whose response would have more than 250,000 partitions is refused.
"""

from broker.coordination.transaction.listing import describe
from broker.request.api import Api, per_item
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.response_budget import Allowance
from broker.time.clock import Slices
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.java import table_order
from protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from protocol.scala import topic_partition_hash


async def handle(request: DescribeTransactionsRequest, ctx: RequestContext) -> DescribeTransactionsResponse:
    """Return state, producer and partitions of each transactional id (transactions C.6)."""
    states, allowance, slices = [], Allowance(), Slices()
    for name in request.transactional_ids:
        await slices.pause()
        try:
            states.append(_described(name, ctx))
        except KafkaError as error:
            states.append(TransactionState(error.code, name))
        allowance.take(sum(len(topic.partitions) for topic in states[-1].topics))
    return DescribeTransactionsResponse(transaction_states=states)


def _described(name: str, ctx: RequestContext) -> TransactionState:
    # The authorizer is asked about the empty id too; only the coordinator refuses it (transactions C.6).
    if not ctx.authorized(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, name):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    runtime = ctx.node.transaction_coordinator(name)
    runtime.check_active()
    record, partitions = describe(runtime.machine, name)
    topics: dict[str, list[int]] = {}
    for topic, partition in table_order(sorted(partitions), topic_partition_hash):
        if ctx.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, topic):
            topics.setdefault(topic, []).append(partition)
    return TransactionState(
        ErrorCode.NONE,
        name,
        record.state.text,
        record.timeout_ms,
        record.start_ms,
        record.producer_id,
        record.producer_epoch,
        [TopicData(topic, indexes) for topic, indexes in topics.items()],
    )


API: Api[DescribeTransactionsRequest, DescribeTransactionsResponse] = Api(
    ApiKey.DESCRIBE_TRANSACTIONS,
    handle,
    per_item(
        lambda request: request.transactional_ids,
        lambda name, error: TransactionState(error.code, name),
        lambda transaction_states: DescribeTransactionsResponse(transaction_states=transaction_states),
    ),
)
