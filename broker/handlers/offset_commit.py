"""OffsetCommit: remember how far a group has read.

Versions 2-10; topics by id from v10 on (KIP-848). Not done: nothing.
"""

from collections.abc import Sequence

from broker.chain import Api
from broker.context import AclOperation, RequestContext
from broker.group_requests import ask_coordinator, merged, require_group, sift
from broker.releases import Behaviour
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)


async def handle(request: OffsetCommitRequest, ctx: RequestContext) -> OffsetCommitResponse:
    """Groups B.1. The coordinator hears of the partitions that exist; its refusal stands on each of them."""
    require_group(AclOperation.READ, request.group_id, ctx, named=False)
    sifted = sift(request.topics, ctx, by_id=features.offset_commit_uses_topic_ids(ctx.version))
    answered: Sequence[OffsetCommitResponseTopic] = ()
    if sifted.passed:
        named = ctx.release.has(Behaviour.ABSENT_GROUPS_NAMED)
        knows_stale_epochs = named and features.offset_commit_knows_stale_epochs(ctx.version)
        commit = request.changed(topics=sifted.passed) if sifted.failed else request
        try:
            response: OffsetCommitResponse = await ask_coordinator(
                request.group_id,
                ctx,
                lambda machine, now_ms, to: machine.commit_offsets(
                    commit, now_ms, to, knows_stale_epochs=knows_stale_epochs
                ),
            )
            answered = response.topics
        except KafkaError as error:
            answered = [_answer(topic, topic.partitions, error.code) for topic in sifted.passed]
    return OffsetCommitResponse(merged(sifted.failed, answered, _answer))


def _answer(
    topic: OffsetCommitRequestTopic, partitions: Sequence[OffsetCommitRequestPartition], code: ErrorCode
) -> OffsetCommitResponseTopic:
    codes = [OffsetCommitResponsePartition(partition.partition_index, code) for partition in partitions]
    return OffsetCommitResponseTopic(topic.name, codes, topic.topic_id)


def refuse(request: OffsetCommitRequest, error: KafkaError, version: int) -> OffsetCommitResponse:  # noqa: ARG001
    """On every partition; the API has no error of its own."""
    return OffsetCommitResponse([_answer(topic, topic.partitions, error.code) for topic in request.topics])


API = Api(ApiKey.OFFSET_COMMIT, (2, 10), handle, refuse, removed=0)
