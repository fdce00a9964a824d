"""JoinGroup: joins or rejoins a classic group, and waits for the other members.

Versions 0-9. From v4 on, the first join gets its member id with an error (KIP-394); static members since v5 (KIP-345).
Not done: nothing.
"""

from broker.coordination.group.group import Joiner
from broker.coordination.group.responses import join_refused
from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext
from broker.request.groups import ask_coordinator, require_group
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse


async def handle(request: JoinGroupRequest, ctx: RequestContext) -> JoinGroupResponse:
    """Join a member; the response is sent when the join phase completes (groups A.4)."""
    require_group(AclOperation.READ, request.group_id, ctx, named=False)
    # Not in `require_group`: this refusal and the next repeat the member id, that of permission does not (groups A.4).
    if not request.group_id:
        return join_refused(ErrorCode.INVALID_GROUP_ID, request.member_id)
    settings = ctx.node.settings
    least_ms = settings.int("group.min.session.timeout.ms")
    most_ms = settings.int("group.max.session.timeout.ms")
    if not least_ms <= request.session_timeout_ms <= most_ms:
        return join_refused(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id)
    joiner = Joiner(
        ctx.client_id,
        f"/{ctx.client_host}",
        features.join_group_needs_member_id(ctx.version),
        features.join_group_skips_assignment(ctx.version),
    )
    response: JoinGroupResponse = await ask_coordinator(
        request.group_id, ctx, lambda machine, now_ms, to: machine.join(request, joiner, now_ms, to)
    )
    if response.protocol_name == "" and features.join_group_has_null_protocol(ctx.version):
        return response.changed(protocol_name=None)  # a protocol may have the empty name
    return response


def refuse(request: JoinGroupRequest, error: KafkaError, version: int) -> JoinGroupResponse:  # noqa: ARG001
    """Return the error without member id and generation."""
    return join_refused(error.code)


API: Api[JoinGroupRequest, JoinGroupResponse] = Api(ApiKey.JOIN_GROUP, handle, refuse)
