"""TxnOffsetCommit: commits offsets as part of a producer's transaction (KIP-98).

Versions 0-6; member data since v3 (KIP-447); from v5 on the request itself adds the offsets to the transaction
(KIP-890). Topics by id, GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH from v6 on (KIP-1319). Not done: nothing.
"""

from collections.abc import Callable, Sequence

from broker.coordination.metadata.image import ClusterImage
from broker.coordination.transaction.transitions import ProducerIdAndEpoch
from broker.partitions.transactions.verification import verify_offsets
from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.groups import ask_coordinator, merge_topics, require_group, split_topics
from broker.settings.releases import Behaviour
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

Topic = TxnOffsetCommitRequestTopic


async def handle(request: TxnOffsetCommitRequest, ctx: RequestContext) -> TxnOffsetCommitResponse:
    """Check topics, add the group's partition to the transaction, commit, in Kafka's order (transactions C.4)."""
    if not ctx.authorized(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    require_group(AclOperation.READ, request.group_id, ctx, named=False)
    split = split_topics(request.topics, ctx, _lookup(ctx))
    answered: Sequence[TxnOffsetCommitResponseTopic] = ()
    if split.passed:
        try:
            answered = await _commit(request.changed(topics=split.passed), ctx)
        except KafkaError as error:
            code = _known_as(error.code, ctx.version)
            answered = [_answer(topic, topic.partitions, code) for topic in split.passed]
    return TxnOffsetCommitResponse(topics=merge_topics(split.failed, answered, _answer))


def _lookup(ctx: RequestContext) -> Callable[[Topic, ClusterImage], Topic | None]:
    """Return the function that completes a topic by its name or id; ids are stored since 4.4."""
    if features.txn_offset_commit_uses_topic_ids(ctx.version):
        return _by_id
    return _by_name if ctx.release.has(Behaviour.TOPIC_IDS_OF_PENDING_OFFSETS) else _as_it_is


def _by_id(topic: Topic, image: ClusterImage) -> Topic | None:
    known = None if topic.topic_id is None else image.topics_by_id.get(topic.topic_id)
    return None if known is None else topic.changed(name=known.name)


def _by_name(topic: Topic, image: ClusterImage) -> Topic:
    known = image.topics.get(topic.name)
    return topic if known is None else topic.changed(topic_id=known.id)


def _as_it_is(topic: Topic, _image: ClusterImage) -> Topic:
    return topic


async def _commit(request: TxnOffsetCommitRequest, ctx: RequestContext) -> Sequence[TxnOffsetCommitResponseTopic]:
    """Commit. Quirk: the partition joins the transaction before the group is checked (transactions C.4 O8 to O13)."""
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    # Raises NOT_COORDINATOR before the transaction is touched.
    ctx.node.group_coordinator(request.group_id)
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    guard = await verify_offsets(request.transactional_id, producer, request.group_id, ctx)
    named = ctx.release.has(Behaviour.ABSENT_GROUPS_NAMED)
    absent = ErrorCode.ILLEGAL_GENERATION if named else ErrorCode.UNKNOWN_MEMBER_ID
    knows_stale_epochs = features.txn_offset_commit_knows_stale_epochs(ctx.version)
    if knows_stale_epochs:
        absent = ErrorCode.GROUP_ID_NOT_FOUND
    response: TxnOffsetCommitResponse = await ask_coordinator(
        request.group_id,
        ctx,
        lambda machine, now_ms, to: machine.commit_pending_offsets(
            request, now_ms, to, guard=guard, unknown_group_error=absent, knows_stale_epochs=knows_stale_epochs
        ),
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
    return TxnOffsetCommitResponseTopic(topic.name, codes, topic.topic_id)


def refuse(request: TxnOffsetCommitRequest, error: KafkaError, version: int) -> TxnOffsetCommitResponse:
    """Put the error on every partition; the API has no top-level error code."""
    code = _known_as(error.code, version)
    return TxnOffsetCommitResponse(topics=[_answer(topic, topic.partitions, code) for topic in request.topics])


API: Api[TxnOffsetCommitRequest, TxnOffsetCommitResponse] = Api(ApiKey.TXN_OFFSET_COMMIT, handle, refuse)
