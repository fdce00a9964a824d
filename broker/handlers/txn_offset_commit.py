"""TxnOffsetCommit: offsets that become a group's when the producer's transaction is committed (KIP-98).

Versions 0-5; member data since v3 (KIP-447), and from v5 on the offsets join the transaction by themselves (KIP-890).
Not done: v6 (topic ids, 4.4).
"""

from collections.abc import Sequence

from broker.chain import Api
from broker.context import AclOperation, RequestContext, ResourceType
from broker.coordination.transaction.epochs import ProducerIdAndEpoch
from broker.group_requests import ask_coordinator, merged, require_group, sift
from broker.releases import Behaviour
from broker.verification import verify_offsets
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)


async def handle(request: TxnOffsetCommitRequest, ctx: RequestContext) -> TxnOffsetCommitResponse:
    """Transactions C.4, in its order."""
    if not ctx.authorized(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    require_group(AclOperation.READ, request.group_id, ctx, named=False)
    sifted = sift(request.topics, ctx)
    answered: Sequence[TxnOffsetCommitResponseTopic] = ()
    if sifted.passed:
        try:
            answered = await _commit(request.changed(topics=sifted.passed), ctx)
        except KafkaError as error:
            code = _known_as(error.code, ctx.version)
            answered = [_answer(topic, topic.partitions, code) for topic in sifted.passed]
    return TxnOffsetCommitResponse(topics=merged(sifted.failed, answered, _answer))


async def _commit(request: TxnOffsetCommitRequest, ctx: RequestContext) -> Sequence[TxnOffsetCommitResponseTopic]:
    """O8 to O13. Quirk: the partition joins the transaction before the group is asked for its consent."""
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    ctx.node.groups_for(request.group_id)
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    guard = await verify_offsets(request.transactional_id, producer, request.group_id, ctx)
    named = ctx.release.has(Behaviour.ABSENT_GROUPS_NAMED)
    absent = ErrorCode.ILLEGAL_GENERATION if named else ErrorCode.UNKNOWN_MEMBER_ID
    response: TxnOffsetCommitResponse = await ask_coordinator(
        request.group_id,
        ctx,
        lambda machine, now_ms, to: machine.commit_pending_offsets(request, now_ms, to, guard=guard, absent=absent),
    )
    return response.topics


def _known_as(code: ErrorCode, version: int) -> ErrorCode:
    if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and not features.txn_offset_commit_knows_loading(version):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code


def _answer(
    topic: TxnOffsetCommitRequestTopic, partitions: Sequence[TxnOffsetCommitRequestPartition], code: ErrorCode
) -> TxnOffsetCommitResponseTopic:
    codes = [TxnOffsetCommitResponsePartition(partition.partition_index, code) for partition in partitions]
    return TxnOffsetCommitResponseTopic(topic.name, codes)


def refuse(request: TxnOffsetCommitRequest, error: KafkaError, version: int) -> TxnOffsetCommitResponse:
    """On every partition; the API has no error of its own."""
    code = _known_as(error.code, version)
    return TxnOffsetCommitResponse(topics=[_answer(topic, topic.partitions, code) for topic in request.topics])


API = Api(ApiKey.TXN_OFFSET_COMMIT, (0, 5), handle, refuse)
