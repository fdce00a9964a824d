"""Requests for the active controller, where there are several controllers (KIP-590, KIP-919).

A broker forwards them and retries until a controller is active; a controller that is not answers NOT_CONTROLLER. After
Kafka's ``ForwardingManager`` and ``NodeToControllerChannelManager``.
"""

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
"""Answered by the leader of the quorum, even without a majority; elsewhere NOT_LEADER_OR_FOLLOWER."""
TO_CONTROLLER = _OF_RAFT | {
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
    of_raft = ctx.api.key in _OF_RAFT

    def is_served() -> bool:
        leader_id = ctx.cluster.quorum.leader_id
        if ctx.at_controller and ctx.node.id != leader_id:
            if of_raft:
                return True  # the handler refuses it
            raise KafkaError(ErrorCode.NOT_CONTROLLER, _not_controller(leader_id))
        return leader_id >= 0 if of_raft else ctx.cluster.metadata.active

    deadline_ms = ctx.now_ms + RETRY_TIMEOUT_MS
    while await wait_until(is_served, [ctx.cluster.metadata_partition], ctx.cluster.clock, deadline_ms):
        try:
            return await handle(request, ctx)
        except KafkaError as error:
            if error.code is not ErrorCode.NOT_CONTROLLER:
                raise
    if ctx.api.key is ApiKey.DELETE_TOPICS and not features.delete_topics_has_states(ctx.version):
        return DeleteTopicsResponse()  # a quirk: DeleteTopicsRequest.getErrorResponse finds no topics
    raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)


def _not_controller(leader_id: int) -> str:
    if leader_id < 0:
        return "No controller appears to be active."
    return f"The active controller appears to be node {leader_id}."


FORWARDING = dict.fromkeys(TO_CONTROLLER, forward)
"""The middleware by API."""
