"""EndTxn: commits or aborts the open transaction (KIP-98).

Versions 0-5. From v5 on every transaction ends with a new epoch, which the response returns (KIP-890).
Not done: nothing.
"""

from broker.coordination.transaction.rules import EndRequest
from broker.coordination.transaction.transitions import TV0, TV2, ProducerIdAndEpoch
from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext, ResourceType
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.end_txn import EndTxnRequest, EndTxnResponse


async def handle(request: EndTxnRequest, ctx: RequestContext) -> EndTxnResponse:
    """Answer when the decision is in the log; the markers follow later (transactions C.3)."""
    name = request.transactional_id
    # The authorizer is asked about the empty id too; only the coordinator refuses it (transactions C.3.1 T1).
    if not ctx.authorized(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, name):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    ending = EndRequest(request.producer_id, request.producer_epoch, request.committed)
    client_transaction_version = TV2 if features.end_txn_bumps_epoch(ctx.version) else TV0
    next_producer: ProducerIdAndEpoch = await ctx.node.transaction_coordinator(name).ask(
        lambda machine, now_ms, to: machine.end(
            name, ending, now_ms, to, client_transaction_version=client_transaction_version
        ),
        cause=ctx,
    )
    return EndTxnResponse(producer_id=next_producer.producer_id, producer_epoch=next_producer.producer_epoch)


def refuse(request: EndTxnRequest, error: KafkaError, version: int) -> EndTxnResponse:  # noqa: ARG001
    """Return the error code that the request's version knows."""
    code = error.code
    if code is ErrorCode.PRODUCER_FENCED and not features.end_txn_knows_fencing(version):
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return EndTxnResponse(error_code=code)


API: Api[EndTxnRequest, EndTxnResponse] = Api(ApiKey.END_TXN, handle, refuse)
