"""StreamsGroupHeartbeat: joins and remains in a group whose tasks the coordinator assigns (KIP-1071).

Versions 0-1; static members, task offsets and the status for missing client tags if Kafka 4.4 is emulated. Not done: a
plugin for topology descriptions (KIP-1331).
"""

from broker.coordination.group.modern.streams import validation
from broker.coordination.group.modern.streams.step import HeartbeatResult, Sender, no_recovery_lag
from broker.coordination.group.modern.streams.topology import named_topics
from broker.coordination.metadata.image import INTERNAL_TOPICS
from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.groups import ask_coordinator, require_group, serves_streams_groups
from broker.request.streams_topics import create_internal_topics
from broker.settings.releases import Behaviour
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Topology,
)
from protocol.topic_names import check_topic_name


async def handle(request: StreamsGroupHeartbeatRequest, ctx: RequestContext) -> StreamsGroupHeartbeatResponse:
    """Check feature, authorization, topics and fields in Kafka's order, then call the coordinator (groups E.1)."""
    if not serves_streams_groups(ctx):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    require_group(AclOperation.READ, request.group_id, ctx, named=False)
    if request.topology is not None:
        _check_topics(request.topology, ctx)
    validation.check(request, newer=ctx.cluster.release.has(Behaviour.STATIC_STREAMS_MEMBERS))
    sender = Sender(
        ctx.client_id, f"/{ctx.client_host}", features.streams_group_heartbeat_has_recovery_lag(ctx.version)
    )
    result: HeartbeatResult = await ask_coordinator(
        request.group_id, ctx, lambda machine, now_ms, to: machine.streams.heartbeat(request, sender, now_ms, to)
    )
    if result.missing:
        create_internal_topics(request.group_id, result, ctx)
    return result.response


def _check_topics(topology: Topology, ctx: RequestContext) -> None:
    """Raise STREAMS_INVALID_TOPOLOGY or TOPIC_AUTHORIZATION_FAILED (groups E.1.3, E.1.4)."""
    names = named_topics(topology)
    # Names of all topics before permission on any: groups E.1.3, then groups E.1.4.
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        raise KafkaError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited.",
        )
    invalid = [name for name in names if not _is_valid(name)]
    if invalid:
        raise KafkaError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY, f"Topic names {','.join(invalid)} are not valid topic names."
        )
    if not all(ctx.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, name) for name in names):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _is_valid(name: str) -> bool:
    try:
        check_topic_name(name)
    except KafkaError:
        return False
    return True


def refuse(
    request: StreamsGroupHeartbeatRequest,  # noqa: ARG001
    error: KafkaError,
    version: int,
) -> StreamsGroupHeartbeatResponse:
    """Return the error code and message."""
    return StreamsGroupHeartbeatResponse(
        error_code=error.code,
        error_message=error.message,
        acceptable_recovery_lag=no_recovery_lag(known=features.streams_group_heartbeat_has_recovery_lag(version)),
        active_tasks=None,
        standby_tasks=None,
        warmup_tasks=None,
        partitions_by_user_endpoint=None,
    )


API: Api[StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse] = Api(
    ApiKey.STREAMS_GROUP_HEARTBEAT, handle, refuse
)
