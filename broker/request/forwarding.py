"""Requests for the active controller, where there are several controllers (KIP-590, KIP-919).

A broker forwards them and retries until a controller is active; a controller that is not answers NOT_CONTROLLER. After
Kafka's ``ForwardingManager`` and ``NodeToControllerChannelManager``.
"""

from collections.abc import Callable

from broker.request.api import AnyHandler
from broker.request.context import RequestContext
from broker.time.clock import wait_until
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_topics import DeleteTopicsResponse
from protocol.types import Message

RETRY_TIMEOUT_MS = 60_000
"""How long a broker retries (``BrokerServer``: ``retryTimeoutMs`` of its channel for forwarding)."""

_OF_RAFT = frozenset({ApiKey.DESCRIBE_QUORUM, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER})
"""At a controller that does not lead, NOT_LEADER_OR_FOLLOWER."""
_WITHOUT_MAJORITY = _OF_RAFT | {ApiKey.LIST_PARTITION_REASSIGNMENTS}
"""Answered by the leader of the quorum, even without a majority."""
TO_CONTROLLER = _WITHOUT_MAJORITY | {
    ApiKey.CREATE_TOPICS,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    ApiKey.CREATE_PARTITIONS,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.ELECT_LEADERS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.ALTER_CLIENT_QUOTAS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    ApiKey.UPDATE_FEATURES,
    ApiKey.UNREGISTER_BROKER,
    ApiKey.UNREGISTER_CONTROLLER,
}


async def forward(request: Message, ctx: RequestContext, handle: AnyHandler) -> Message | None:
    """Middleware: let the active controller serve the request, as the node that received it sees that controller.

    Raises:
        KafkaError: NOT_CONTROLLER at a controller that is not active; REQUEST_TIMED_OUT at a broker.
    """

    def is_served() -> bool:
        leader_id = ctx.cluster.quorum.leader_id
        if ctx.at_controller and ctx.node.id != leader_id:
            if ctx.api.key in _OF_RAFT:
                return True  # the handler refuses it
            raise KafkaError(ErrorCode.NOT_CONTROLLER, _not_controller(leader_id))
        channel = ctx.node.channel
        was_sent_there = channel.waits_since_ms is not None and channel.controller_id == leader_id
        if _hangs_until_ms(ctx) is not None or (ctx.node.server.paused and not was_sent_there):
            return False
        return leader_id >= 0 if ctx.api.key in _WITHOUT_MAJORITY else ctx.cluster.metadata.active

    deadline_ms = ctx.now_ms + RETRY_TIMEOUT_MS
    while await _wait(is_served, ctx, deadline_ms):
        try:
            return await handle(request, ctx)
        except KafkaError as error:
            if error.code is not ErrorCode.NOT_CONTROLLER:
                raise
    if ctx.api.key is ApiKey.DELETE_TOPICS and not features.delete_topics_has_states(ctx.version):
        return DeleteTopicsResponse()  # a quirk: DeleteTopicsRequest.getErrorResponse finds no topics
    raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)


async def _wait(is_served: Callable[[], bool], ctx: RequestContext, deadline_ms: int) -> bool:
    """Wait until the request is served, or return false at the deadline; leave a controller that hangs too long.

    A broker forwards one request at a time: those that came before it and still wait go first.
    """
    channel, request = ctx.node.channel, object()
    if not ctx.at_controller:
        channel.waiting[request] = None
    try:
        while True:
            hangs_until_ms = _hangs_until_ms(ctx)
            until_ms = deadline_ms if hangs_until_ms is None else min(deadline_ms, hangs_until_ms)
            watched = [ctx.cluster.metadata_partition]
            if await wait_until(lambda: channel.is_next(request) and is_served(), watched, ctx.cluster.clock, until_ms):
                return True
            if until_ms == deadline_ms:
                return False
            channel.close()
    finally:
        channel.waiting.pop(request, None)
        if channel.waiting:
            ctx.cluster.metadata_partition.wake()


def _hangs_until_ms(ctx: RequestContext) -> int | None:
    """Choose the controller of the broker's channel; return until when it waits for it, None if it does not hang.

    A broker that has sent a request to a controller uses that connection, even if there is another active controller,
    until it breaks or the request has waited for ``controller.socket.timeout.ms``.
    """
    channel, cluster = ctx.node.channel, ctx.cluster
    if ctx.at_controller or not cluster.hangs(channel.controller_id):
        channel.controller_id, channel.waits_since_ms = cluster.quorum.leader_id, None
        return None
    if channel.waits_since_ms is None:
        channel.waits_since_ms = cluster.clock.now_ms()
    return channel.waits_since_ms + ctx.node.settings.int("controller.socket.timeout.ms")


def _not_controller(leader_id: int) -> str:
    if leader_id < 0:
        return "No controller appears to be active."
    return f"The active controller appears to be node {leader_id}."


FORWARDING = dict.fromkeys(TO_CONTROLLER, forward)
"""The middleware by API."""
