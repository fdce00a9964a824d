"""InitProducerId: assigns a producer id and epoch (KIP-98), and bumps the epoch after an error (KIP-360).

Versions 0-5. v6 (KIP-939) is served as by Kafka: two-phase commit as configured, KeepPreparedTxn never.
Not done: nothing.
"""

from functools import partial

from broker.coordination.transaction.completion import NEVER_TIMES_OUT_MS
from broker.coordination.transaction.transitions import NO_PRODUCER, ProducerIdAndEpoch
from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext, ResourceType
from protocol import features
from protocol.acls import CLUSTER_NAME
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


async def handle(request: InitProducerIdRequest, ctx: RequestContext) -> InitProducerIdResponse:
    """Check authorization and fields; the coordinator decides the rest (transactions A.1)."""
    name = request.transactional_id
    _check_authorized(request, ctx)
    # Before the empty id, and for idempotent producers too, which send neither: transactions A.1 A4.
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "producer id and epoch come together or not at all")
    if name is None:  # idempotent: any broker serves it, without a record (transactions A.1 A5)
        return InitProducerIdResponse(
            producer_id=ctx.node.producer_ids.next(ctx.cluster.allocate_producer_ids), producer_epoch=0
        )
    timeout_ms = _timeout_ms(name, request, ctx)
    expected = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    producer: ProducerIdAndEpoch = await ctx.node.transaction_coordinator(name).ask(
        lambda machine, now_ms, to: machine.init_producer_id(name, timeout_ms, expected, now_ms, to), cause=ctx
    )
    return InitProducerIdResponse(producer_id=producer.producer_id, producer_epoch=producer.producer_epoch)


def _check_authorized(request: InitProducerIdRequest, ctx: RequestContext) -> None:
    """Check that the client may use the transactional id, or idempotence (transactions A.1 A1 to A3)."""
    if request.transactional_id is None:
        may_here = ctx.authorized(AclOperation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME)
        # Who may write to any topic may do so idempotently (KIP-679).
        if not may_here and not ctx.authorized_somewhere(AclOperation.WRITE, ResourceType.TOPIC):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return
    may = partial(ctx.authorized, resource_type=ResourceType.TRANSACTIONAL_ID, name=request.transactional_id)
    if not may(AclOperation.WRITE) or (request.enable2_pc and not may(AclOperation.TWO_PHASE_COMMIT)):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def _timeout_ms(name: str, request: InitProducerIdRequest, ctx: RequestContext) -> int:
    """Validate the request, and return the transaction timeout (transactions A.1 A6 to A9)."""
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    settings = ctx.node.settings
    # TransactionCoordinator reports a switched-off feature as a missing permission.
    if request.enable2_pc and not settings.boolean("transaction.two.phase.commit.enable"):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.keep_prepared_txn:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "KeepPreparedTxn is not implemented, in Kafka neither")
    if request.enable2_pc:
        return NEVER_TIMES_OUT_MS
    if not 0 < request.transaction_timeout_ms <= settings.int("transaction.max.timeout.ms"):
        raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    return request.transaction_timeout_ms


def refuse(request: InitProducerIdRequest, error: KafkaError, version: int) -> InitProducerIdResponse:  # noqa: ARG001
    """Return -1 as producer id and epoch, and the error code that the request's version knows."""
    code = error.code
    if code is ErrorCode.PRODUCER_FENCED and not features.init_producer_id_knows_fencing(version):
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    return InitProducerIdResponse(
        error_code=code, producer_id=NO_PRODUCER.producer_id, producer_epoch=NO_PRODUCER.producer_epoch
    )


API: Api[InitProducerIdRequest, InitProducerIdResponse] = Api(ApiKey.INIT_PRODUCER_ID, handle, refuse)
