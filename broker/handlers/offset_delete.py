"""OffsetDelete: deletes committed offsets of topics to which a group does not subscribe (KIP-496).

Version 0. Not done: nothing.
"""

from collections.abc import Sequence

from broker.request.api import Api, top_level
from broker.request.context import AclOperation, RequestContext
from broker.request.groups import ask_coordinator, merge_topics, require_group, split_topics
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


async def handle(request: OffsetDeleteRequest, ctx: RequestContext) -> OffsetDeleteResponse:
    """Delete committed offsets of topics that no member subscribes to (transactions E.4)."""
    require_group(AclOperation.DELETE, request.group_id, ctx)
    split = split_topics(request.topics, ctx)
    # Even without any topic left: an unknown group is refused before topics are (transactions E.4).
    wanted = request.changed(topics=split.passed)
    response: OffsetDeleteResponse = await ask_coordinator(
        request.group_id, ctx, lambda machine, now_ms, to: machine.delete_offsets(wanted, now_ms, to)
    )
    return OffsetDeleteResponse(topics=merge_topics(split.failed, response.topics, _answer))


def _answer(
    topic: OffsetDeleteRequestTopic, partitions: Sequence[OffsetDeleteRequestPartition], code: ErrorCode
) -> OffsetDeleteResponseTopic:
    codes = [OffsetDeleteResponsePartition(partition.partition_index, code) for partition in partitions]
    return OffsetDeleteResponseTopic(topic.name, codes)


API: Api[OffsetDeleteRequest, OffsetDeleteResponse] = Api(ApiKey.OFFSET_DELETE, handle, top_level(OffsetDeleteResponse))
