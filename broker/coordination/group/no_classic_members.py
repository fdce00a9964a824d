"""Classic protocol requests to groups that classic members cannot join: share and streams groups (groups A.3)."""

from collections.abc import Hashable

from broker.coordination.group.group import Group
from broker.coordination.group.kind import Joiner
from broker.coordination.group.outcome_builder import OutcomeBuilder
from broker.coordination.group.responses import join_refused
from broker.coordination.group.rules import NO_CLASSIC_MEMBERS
from broker.coordination.reasons import Refusal
from protocol.errors import ErrorCode
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.messages.join_group import JoinGroupRequest
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from protocol.messages.sync_group import SyncGroupRequest


class NoClassicMembers:
    """Refuses every request of the classic protocol, as no member uses it."""

    def join(
        self,
        builder: OutcomeBuilder,
        group: Group,  # noqa: ARG002
        request: JoinGroupRequest,  # noqa: ARG002
        joiner: Joiner,  # noqa: ARG002
        reply_to: Hashable,
    ) -> None:
        """Reply INCONSISTENT_GROUP_PROTOCOL."""
        code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        builder.refuse(reply_to, join_refused(code), Refusal(code, *NO_CLASSIC_MEMBERS), direct=True)

    def sync(
        self,
        builder: OutcomeBuilder,  # noqa: ARG002
        group: Group,  # noqa: ARG002
        request: SyncGroupRequest,
        reply_to: Hashable,  # noqa: ARG002
    ) -> None:
        """Raise UNKNOWN_MEMBER_ID."""
        raise _unknown(request.member_id)

    def heartbeat(
        self,
        builder: OutcomeBuilder,  # noqa: ARG002
        group: Group,  # noqa: ARG002
        request: HeartbeatRequest,
        reply_to: Hashable,  # noqa: ARG002
    ) -> None:
        """Raise UNKNOWN_MEMBER_ID."""
        raise _unknown(request.member_id)

    def leave(
        self,
        builder: OutcomeBuilder,
        group: Group,  # noqa: ARG002
        request: LeaveGroupRequest,
        reply_to: Hashable,
    ) -> None:
        """Reply UNKNOWN_MEMBER_ID for each member."""
        members = tuple(
            MemberResponse(each.member_id, each.group_instance_id, ErrorCode.UNKNOWN_MEMBER_ID)
            for each in request.members
        )
        refusal = Refusal(ErrorCode.UNKNOWN_MEMBER_ID, *NO_CLASSIC_MEMBERS)
        builder.refuse(reply_to, LeaveGroupResponse(members=members), refusal)


def _unknown(member_id: str) -> Refusal:
    return Refusal(ErrorCode.UNKNOWN_MEMBER_ID, *NO_CLASSIC_MEMBERS, f"Member {member_id} is not a member.")
