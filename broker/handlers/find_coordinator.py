"""FindCoordinator: finds the broker that coordinates a group, a transactional id or a share partition.

Versions 0-6; many keys since v4 (KIP-699), share groups since v6 (KIP-932). Differs from Kafka: the first request is
answered with the coordinator, without a retry (GAPS.md, Deliberate differences).
"""

import binascii

from broker.coordination.coordinators import GROUP_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC
from broker.coordination.metadata.image import BrokerListener
from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.topology import may_on_cluster
from broker.time.clock import Slices
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError, texts_of
from protocol.java import parse_integer
from protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from protocol.types import uuid_from_text

_GROUP, _TRANSACTION, _SHARE = range(3)  # FindCoordinatorRequest.CoordinatorType

_TEXTS = texts_of(
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_REQUEST,
)


async def handle(request: FindCoordinatorRequest, ctx: RequestContext) -> FindCoordinatorResponse:
    """Return the coordinating broker of each key, in the order of the keys (core B.6)."""
    if request.key_type not in (_GROUP, _TRANSACTION, _SHARE):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    share = request.key_type == _SHARE and features.find_coordinator_knows_share_groups(ctx.version)
    if share and not may_on_cluster(ctx, AclOperation.CLUSTER_ACTION):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    coordinators, slices = [], Slices()
    for key in request.coordinator_keys:
        await slices.pause()
        coordinators.append(_answer(key, request.key_type, ctx))
    return FindCoordinatorResponse(coordinators=coordinators)


def _answer(key: str, key_type: int, ctx: RequestContext) -> Coordinator:
    try:
        topic = _topic(key, key_type, ctx)
        broker_id, at = _coordinator(topic, ctx.node.coordinating_partition(topic, key), ctx)
    except KafkaError as error:
        text = _TEXTS.get(error.code, "") if features.find_coordinator_has_error_message(ctx.version) else ""
        return Coordinator(key, -1, "", -1, error.code, text)
    return Coordinator(key, broker_id, at.host, at.port)


def _topic(key: str, key_type: int, ctx: RequestContext) -> str:
    """Return the internal topic whose partition leader is the coordinator of the key (core B.6)."""
    # Whether the coordinator has loaded is not checked: it answers 14 itself (transactions C.9).
    if key_type == _GROUP:
        if not ctx.authorized(AclOperation.DESCRIBE, ResourceType.GROUP, key):
            raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return GROUP_TOPIC
    if key_type == _TRANSACTION:
        if not ctx.authorized(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return TRANSACTION_TOPIC
    share = key_type == _SHARE and features.find_coordinator_knows_share_groups(ctx.version)
    if not share or not _is_share_partition(key):
        raise KafkaError(ErrorCode.INVALID_REQUEST)  # of the whole request, with the default text (core B.6.3)
    return SHARE_TOPIC


def _is_share_partition(key: str) -> bool:
    """Whether a key has the form ``group:topic id:partition``."""
    parts = key.rsplit(":", 2)
    try:
        group, topic_id, partition = parts
        uuid_from_text(topic_id)
        parse_integer(partition)
    except (ValueError, binascii.Error):
        return False
    return bool(group.strip())


def _coordinator(topic: str, index: int, ctx: RequestContext) -> tuple[int, BrokerListener]:
    """Return the partition's leader and its address; the topic is created at the first request.

    Kafka answers that request before the topic exists (core B.6), and librdkafka then pauses for a second. In memory
    and after a reset the response is that of a cluster in use, unless `--lazy-coordinators` is given.
    """
    if topic not in ctx.cluster.image.topics:
        machine = ctx.cluster.metadata.machine
        ctx.cluster.metadata.submit(lambda _now_ms: machine.create_internal_topic(topic))
        if ctx.cluster.lazy_coordinators:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    image = ctx.cluster.image
    partition = image.partition(topic, index)
    at = None if partition is None else image.listener(partition.leader, ctx.listener)
    if partition is None or at is None:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return partition.leader, at


def refuse(request: FindCoordinatorRequest, error: KafkaError, version: int) -> FindCoordinatorResponse:  # noqa: ARG001
    """Put the error on every key, with the code's message in every version, unlike the error of a single key."""
    text = _TEXTS.get(error.code, "")
    return FindCoordinatorResponse(
        coordinators=[Coordinator(key, -1, "", -1, error.code, text) for key in request.coordinator_keys]
    )


API: Api[FindCoordinatorRequest, FindCoordinatorResponse] = Api(ApiKey.FIND_COORDINATOR, handle, refuse)
