"""Validation of a ShareGroupHeartbeat, independent of the group (groups D.1), and the check of the member epoch."""

from broker.coordination.group.modern.epochs import JOINING, LEAVING
from broker.coordination.group.modern.share.member import ShareMember
from broker.coordination.group.modern.validation import check_not_blank, require
from broker.coordination.group.rules import SHARE_HEARTBEAT
from broker.coordination.reasons import Refusal
from protocol.errors import ErrorCode
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest


def check(request: ShareGroupHeartbeatRequest) -> None:
    """Raise INVALID_REQUEST for an invalid request, in the order of Kafka's checks."""
    check_not_blank(
        SHARE_HEARTBEAT.row(".5"),
        {"MemberId": request.member_id, "GroupId": request.group_id, "RackId": request.rack_id},
    )
    if request.member_epoch == JOINING:
        subscribes = bool(request.subscribed_topic_names)
        require(SHARE_HEARTBEAT.row(".6"), subscribes, "SubscribedTopicNames must be set in first request.")
    else:
        require(SHARE_HEARTBEAT.row(".7"), request.member_epoch >= LEAVING, "MemberEpoch is invalid.")


def check_member_epoch(member: ShareMember, epoch: int) -> None:
    """Raise FENCED_MEMBER_EPOCH unless the epoch is the member's, its previous one, or 0 (groups D.1 S4)."""
    if epoch in (JOINING, member.epoch, member.previous_epoch) and epoch <= member.epoch:
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
