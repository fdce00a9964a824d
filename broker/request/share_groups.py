"""Shared by the handlers of share groups: the feature level, and the first checks of requests (groups D)."""

from typing import Protocol

from broker.coordination.group.modern.share.offsets import Deletion
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.groups import ask_coordinator
from broker.request.share_state import delete_partitions
from protocol.errors import ErrorCode, KafkaError, texts_of

LONGEST_MEMBER_ID = 36
"""Members generate their own ids: a UUID as text (groups D.1.3)."""
ERROR_TEXTS = texts_of(
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
"""Kafka's message for each code, where the APIs of share groups send it."""


def serves_share_groups(ctx: RequestContext) -> bool:
    """Whether share groups are enabled in the cluster."""
    return ctx.cluster.image.features.get("share.version", 0) >= 1


def is_member_id(member_id: str | None) -> bool:
    """Whether a member id is valid."""
    return bool(member_id) and len(str(member_id)) <= LONGEST_MEMBER_ID


class _Request(Protocol):
    group_id: str | None
    member_id: str | None


def check_share_request(request: _Request, ctx: RequestContext) -> tuple[str, str]:
    """Validate group and member of a ShareFetch or ShareAcknowledge, and return them.

    Raises:
        KafkaError: UNSUPPORTED_VERSION, INVALID_REQUEST or GROUP_AUTHORIZATION_FAILED, in Kafka's order.
    """
    if not serves_share_groups(ctx):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if request.group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    if not ctx.authorized(AclOperation.READ, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if request.member_id is None or not is_member_id(request.member_id):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    return request.group_id, request.member_id


def require_share_groups(ctx: RequestContext) -> None:
    """Raise UNSUPPORTED_VERSION unless share groups are enabled."""
    if not serves_share_groups(ctx):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)


def require_member_id(member_id: str | None) -> None:
    """Raise INVALID_REQUEST for a member id that is missing or too long (groups D.1.3, D.5.4)."""
    if not is_member_id(member_id):
        raise KafkaError(ErrorCode.INVALID_REQUEST)


def topic_error(topic: str, ctx: RequestContext) -> ErrorCode:
    """Return the error of a topic whose offsets are to be changed: READ is denied, or it is unknown (groups D.10)."""
    if not ctx.authorized(AclOperation.READ, ResourceType.TOPIC, topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE if topic in ctx.cluster.image.topics else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def delete_group_state(group_id: str, ctx: RequestContext) -> None:
    """Delete all state of an Empty share group before the group itself; do nothing for other group types.

    Raises:
        KafkaError: NON_EMPTY_GROUP, or the error of a share coordinator: then the group stays (groups A.13).
    """
    deletion: Deletion = await ask_coordinator(
        group_id,
        ctx,
        lambda machine, now_ms, to: machine.shares.changed(
            now_ms, lambda offsets, builder: offsets.begin_group_deletion(builder, group_id, to)
        ),
    )
    if any(partition < 0 for indexes in deletion.partitions.values() for partition in indexes):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Quirk: Kafka's persister rejects the call
    results = await delete_partitions(ctx.node.persister, group_id, deletion.partitions)
    failed = next((result for of_topic in results.values() for result in of_topic if result.failed), None)
    if failed is not None:
        raise KafkaError(failed.error, failed.message)
