"""Validation of a ShareGroupHeartbeat, independent of the group (groups D.1), and the check of the member epoch."""

from broker.coordination.group.modern.share.member import LEAVING, ShareMember
from broker.coordination.group.rules import SHARE_HEARTBEAT
from broker.coordination.reasons import Refusal
from broker.settings.values import is_blank
from protocol.errors import ErrorCode
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest


def check(request: ShareGroupHeartbeatRequest) -> None:
    """Raise INVALID_REQUEST for an invalid request, in the order of Kafka's checks."""
    for name, text in (
        ("MemberId", request.member_id),
        ("GroupId", request.group_id),
        ("RackId", request.rack_id),
    ):
        if text is not None and is_blank(text):
            raise _invalid(".5", f"{name} can't be empty.")
    if request.member_epoch == 0:
        if not request.subscribed_topic_names:
            raise _invalid(".6", "SubscribedTopicNames must be set in first request.")
    elif request.member_epoch < LEAVING:
        raise _invalid(".7", "MemberEpoch is invalid.")


def check_member_epoch(member: ShareMember, epoch: int) -> None:
    """Raise FENCED_MEMBER_EPOCH unless the epoch is the member's, its previous one, or 0 (groups D.1 S4)."""
    if epoch in (0, member.epoch, member.previous_epoch) and epoch <= member.epoch:
        return
    if epoch > member.epoch:
        size, end = "greater", "."
    else:
        size, end = "smaller", f", and it does not match the previous member epoch ({member.previous_epoch})."
    raise Refusal(
        ErrorCode.FENCED_MEMBER_EPOCH,
        *SHARE_HEARTBEAT.row(" S4"),
        f"The share group member has a {size} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.epoch}){end} The member must abandon all its partitions and rejoin.",
    )


def _invalid(row: str, message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, *SHARE_HEARTBEAT.row(row), message)
