"""AddOffsetsToTxn: adds a group's offsets to the transaction, before TxnOffsetCommit (KIP-98).

Versions 0-4; clients since KIP-890 do not send it. Not done: nothing.
"""

from broker.coordination.coordinators import GROUP_TOPIC
from broker.coordination.transaction.transitions import ProducerIdAndEpoch
from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.settings.releases import Behaviour
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


async def handle(request: AddOffsetsToTxnRequest, ctx: RequestContext) -> AddOffsetsToTxnResponse:
    """Add the group's partition of the offsets topic, even if group or topic do not exist (transactions C.2)."""
    name = request.transactional_id
    # Both permissions before the empty id: KafkaApis asks the authorizer, then the coordinator sees the id
    # (transactions C.2).
    if not ctx.authorized(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, name):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not ctx.authorized(AclOperation.READ, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    partition = ctx.node.coordinating_partition(GROUP_TOPIC, request.group_id)
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    pending_first = ctx.release.has(Behaviour.PENDING_FIRST)
    await ctx.node.transaction_coordinator(name).ask(
        lambda machine, now_ms, to: machine.add_partitions(
            name, producer, frozenset({(GROUP_TOPIC, partition)}), now_ms, to, pending_first=pending_first
        ),
        cause=ctx,
    )
    return AddOffsetsToTxnResponse()


def refuse(request: AddOffsetsToTxnRequest, error: KafkaError, version: int) -> AddOffsetsToTxnResponse:  # noqa: ARG001
    """Return the error code that the request's version knows."""
    code = error.code
    if code is ErrorCode.PRODUCER_FENCED and not features.add_offsets_knows_fencing(version):
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return AddOffsetsToTxnResponse(error_code=code)


API: Api[AddOffsetsToTxnRequest, AddOffsetsToTxnResponse] = Api(ApiKey.ADD_OFFSETS_TO_TXN, handle, refuse)
