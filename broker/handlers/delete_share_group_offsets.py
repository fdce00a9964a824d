"""DeleteShareGroupOffsets: deletes the offsets of a share group without members (KIP-932).

Version 0. Not done: nothing.
"""

from uuid import UUID

from broker.coordination.group.modern.share.offsets import Deletion
from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext
from broker.request.groups import ask_coordinator, require_group
from broker.request.share_groups import ERROR_TEXTS, require_share_groups, topic_error
from broker.request.share_state import delete_partitions
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)

_NOTHING_TO_DELETE = "There is no offset information to delete."


async def handle(request: DeleteShareGroupOffsetsRequest, ctx: RequestContext) -> DeleteShareGroupOffsetsResponse:
    """Delete offsets by topic; topics without READ come first in the response (groups D.10)."""
    require_share_groups(ctx)
    require_group(AclOperation.DELETE, request.group_id, ctx, named=False)
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    refused, allowed = [], []
    for topic in request.topics:  # a repeated topic gets two results, unless its state is deleted
        if topic_error(topic.topic_name, ctx) is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            refused.append(topic.topic_name)
        else:
            allowed.append(topic.topic_name)
    answers = await _delete(request.group_id, allowed, ctx)
    denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    failed = [_answer(name, None, denied, ERROR_TEXTS[denied]) for name in refused]
    return DeleteShareGroupOffsetsResponse(responses=[*failed, *answers])


async def _delete(group_id: str, topics: list[str], ctx: RequestContext) -> list[DeleteShareGroupOffsetsResponseTopic]:
    deletion: Deletion = await ask_coordinator(
        group_id,
        ctx,
        lambda machine, now_ms, to: machine.shares.changed(
            now_ms, lambda offsets, builder: offsets.begin_deletion(builder, group_id, topics, to)
        ),
    )
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answers = [
        _answer(name, None, unknown, _NOTHING_TO_DELETE if name in ctx.cluster.image.topics else ERROR_TEXTS[unknown])
        for name in deletion.without_state
    ]
    results = await delete_partitions(ctx.node.persister, group_id, deletion.partitions)
    deleted = []
    for topic_id, of_topic in results.items():
        failed = next((result for result in of_topic if result.failed), None)
        if failed is None:
            deleted.append(topic_id)
        else:
            text = ERROR_TEXTS.get(failed.error, failed.message)  # the code's message, not the coordinator's
            answers.append(_answer(deletion.names[topic_id], topic_id, failed.error, text))
    await ask_coordinator(
        group_id,
        ctx,
        lambda machine, now_ms, to: machine.shares.changed(
            now_ms, lambda offsets, builder: offsets.deleted(builder, group_id, deleted, to)
        ),
    )
    return [_answer(deletion.names[topic_id], topic_id) for topic_id in deleted] + answers


def _answer(
    name: str, topic_id: UUID | None, code: ErrorCode = ErrorCode.NONE, message: str | None = None
) -> DeleteShareGroupOffsetsResponseTopic:
    return DeleteShareGroupOffsetsResponseTopic(name, topic_id, code, message)


def refuse(
    request: DeleteShareGroupOffsetsRequest,  # noqa: ARG001
    error: KafkaError,
    version: int,  # noqa: ARG001
) -> DeleteShareGroupOffsetsResponse:
    """Put the error at the top level of the response."""
    return DeleteShareGroupOffsetsResponse(
        error_code=error.code, error_message=error.message or ERROR_TEXTS.get(error.code)
    )


API: Api[DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse] = Api(
    ApiKey.DELETE_SHARE_GROUP_OFFSETS, handle, refuse
)
