"""OffsetCommit: commits offsets of a group.

Versions 2-10; topics by id from v10 on (KIP-848). Not done: nothing.
"""

from collections.abc import Sequence

from broker.coordination.metadata.image import ClusterImage
from broker.request.api import Api, per_item
from broker.request.context import AclOperation, RequestContext
from broker.request.groups import ask_coordinator, merge_topics, require_group, split_topics
from broker.settings.releases import Behaviour
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
    """Commit for existing partitions; an error of the coordinator is put on each of them (groups B.1)."""
    require_group(AclOperation.READ, request.group_id, ctx, named=False)
    split = split_topics(
        request.topics, ctx, _by_id if features.offset_commit_uses_topic_ids(ctx.version) else _by_name
    )
    answered: Sequence[OffsetCommitResponseTopic] = ()
    if split.passed:
        named = ctx.release.has(Behaviour.ABSENT_GROUPS_NAMED)
        knows_stale_epochs = named and features.offset_commit_knows_stale_epochs(ctx.version)
        commit = request.changed(topics=split.passed)
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
            answered = [_answer(topic, topic.partitions, error.code) for topic in split.passed]
    return OffsetCommitResponse(merge_topics(split.failed, answered, _answer))


def _by_name(topic: OffsetCommitRequestTopic, image: ClusterImage) -> OffsetCommitRequestTopic:
    known = image.topics.get(topic.name)
    return topic if known is None else topic.changed(topic_id=known.id)


def _by_id(topic: OffsetCommitRequestTopic, image: ClusterImage) -> OffsetCommitRequestTopic | None:
    known = image.topics_by_id.get(topic.topic_id) if topic.topic_id is not None else None
    return None if known is None else topic.changed(name=known.name)


def _answer(
    topic: OffsetCommitRequestTopic, partitions: Sequence[OffsetCommitRequestPartition], code: ErrorCode
) -> OffsetCommitResponseTopic:
    codes = [OffsetCommitResponsePartition(partition.partition_index, code) for partition in partitions]
    return OffsetCommitResponseTopic(topic.name, codes, topic.topic_id)


API: Api[OffsetCommitRequest, OffsetCommitResponse] = Api(
    ApiKey.OFFSET_COMMIT,
    handle,
    per_item(
        lambda request: request.topics,
        lambda topic, error: _answer(topic, topic.partitions, error.code),
        lambda topics: OffsetCommitResponse(topics=topics),
    ),
)
