"""AlterShareGroupOffsets: sets the start offsets of a share group without members (KIP-932).

Version 0. Not done: nothing.
"""

from collections.abc import Iterable
from uuid import UUID

from broker.coordination.group.modern.share.offsets import AlteredOffsets
from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext
from broker.request.groups import ask_coordinator, require_group
from broker.request.share_groups import ERROR_TEXTS, require_share_groups, topic_error
from broker.request.share_state import initialize_partitions
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from protocol.types import ZERO_UUID, uuid_text


async def handle(request: AlterShareGroupOffsetsRequest, ctx: RequestContext) -> AlterShareGroupOffsetsResponse:
    """Set the start offsets if the group is empty; topics that may not be altered come first (groups D.10)."""
    require_share_groups(ctx)
    require_group(AclOperation.READ, request.group_id, ctx, named=False)
    answers, passed = [], []
    for topic in request.topics:
        code = topic_error(topic.topic_name, ctx)
        if code is ErrorCode.NONE:
            passed.append(topic)
            continue
        known = ctx.cluster.image.topics.get(topic.topic_name)
        answers.append(_failed(topic, code, ctx, known_id=known is not None))
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    answers = [each for each in answers if each.partitions]
    return AlterShareGroupOffsetsResponse(responses=_merged((*answers, *await _alter(request.group_id, passed, ctx))))


def _merged(topics: Iterable[AlterShareGroupOffsetsResponseTopic]) -> list[AlterShareGroupOffsetsResponseTopic]:
    """Merge the entries of each topic, which may be repeated (AlterShareGroupOffsetsResponse.Builder)."""
    ids: dict[str, UUID | None] = {}
    partitions: dict[str, list[AlterShareGroupOffsetsResponsePartition]] = {}
    for topic in topics:
        ids.setdefault(topic.topic_name, topic.topic_id)
        partitions.setdefault(topic.topic_name, []).extend(topic.partitions)
    return [AlterShareGroupOffsetsResponseTopic(name, ids[name], of_topic) for name, of_topic in partitions.items()]


async def _alter(
    group_id: str, topics: list[AlterShareGroupOffsetsRequestTopic], ctx: RequestContext
) -> list[AlterShareGroupOffsetsResponseTopic]:
    # Looked up now: while the state is written, a topic may be deleted, and the coordinator may move.
    known = {topic.topic_name: ctx.cluster.image.topics[topic.topic_name] for topic in topics}
    runtime = ctx.node.group_coordinator(group_id)
    wanted = [
        (
            topic.topic_name,
            {
                each.partition_index: each.start_offset
                for each in topic.partitions
                if each.partition_index < len(known[topic.topic_name].partitions)
            },
        )
        for topic in topics
    ]
    begun: AlteredOffsets = await ask_coordinator(
        group_id,
        ctx,
        lambda machine, now_ms, to: machine.shares.changed(
            now_ms, lambda offsets, builder: offsets.alter(builder, group_id, wanted, to)
        ),
    )
    _check_partitions(group_id, begun)
    results = await initialize_partitions(ctx.node.persister, group_id, begun.state_epoch, begun.offsets)
    if not any(result.failed for of_topic in results.values() for result in of_topic.values()):
        partitions = {topic_id: list(of_topic) for topic_id, of_topic in results.items()}
        runtime.submit(lambda now_ms: runtime.machine.shares.state_created(group_id, partitions, now_ms, failed=False))
    answers = []
    for topic in topics:
        topic_id = known[topic.topic_name].id
        initialized = results.get(topic_id, {})
        parts = []
        for each in topic.partitions:
            # An index beyond the topic was not sent to the coordinator, and has no result (groups D.10).
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            message = ERROR_TEXTS[code]
            if each.partition_index in initialized:
                result = initialized[each.partition_index]
                code, message = result.error, result.message or ""
            parts.append(AlterShareGroupOffsetsResponsePartition(each.partition_index, code, message or None))
        answers.append(AlterShareGroupOffsetsResponseTopic(topic.topic_name, topic_id, parts))
    return answers


def _check_partitions(group_id: str, begun: AlteredOffsets) -> None:
    """Refuse negative partitions after the group's record is written (InitializeShareGroupStateParameters)."""
    for topic_id, offsets in begun.offsets.items():
        for index in offsets:
            if index < 0:
                place = f"{group_id} {uuid_text(topic_id)} {index}"
                reason = f"Initialize share group parameters has invalid partitionId - {place}"
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, reason)


def _failed(
    topic: AlterShareGroupOffsetsRequestTopic, code: ErrorCode, ctx: RequestContext, *, known_id: bool
) -> AlterShareGroupOffsetsResponseTopic:
    topic_id = ctx.cluster.image.topics[topic.topic_name].id if known_id else ZERO_UUID
    return AlterShareGroupOffsetsResponseTopic(
        topic.topic_name,
        topic_id,
        [
            AlterShareGroupOffsetsResponsePartition(each.partition_index, code, ERROR_TEXTS[code])
            for each in topic.partitions
        ],
    )


def refuse(
    request: AlterShareGroupOffsetsRequest,  # noqa: ARG001
    error: KafkaError,
    version: int,  # noqa: ARG001
) -> AlterShareGroupOffsetsResponse:
    """Put the error at the top level of the response."""
    return AlterShareGroupOffsetsResponse(
        error_code=error.code, error_message=error.message or ERROR_TEXTS.get(error.code)
    )


API: Api[AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse] = Api(
    ApiKey.ALTER_SHARE_GROUP_OFFSETS, handle, refuse
)
