"""OffsetFetch: returns committed offsets of groups.

Versions 1-10; stable offsets on demand from v7 (KIP-447), many groups from v8 (KIP-709), topics by id from v10
(KIP-848). Differs from Kafka: a request whose response would have more than 250,000 partitions is refused.
"""

from collections.abc import Awaitable, Sequence

from broker.coordination.group.offsets.commit import no_offset
from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.groups import coordinator, require_group
from broker.request.response_budget import Allowance
from broker.settings.releases import Behaviour
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopics,
)


async def handle(request: OffsetFetchRequest, ctx: RequestContext) -> OffsetFetchResponse:
    """Return committed offsets, each group with its own error (groups B.2)."""
    groups, allowance = [], Allowance()
    waits = request.require_stable and ctx.release.has(Behaviour.WRITES_OF_GROUPS_WAIT)
    unreplicated: list[tuple[int, Awaitable[None]]] = []
    for at, wanted in enumerate(request.groups):
        try:
            groups.append(_fetch(wanted, request.require_stable, ctx, written=waits))
            if waits and (replicated := ctx.node.group_coordinator(wanted.group_id).replication()) is not None:
                unreplicated.append((at, replicated))
        except KafkaError as error:
            groups.append(_refused(wanted, error.code, ctx.version))
        allowance.take(sum(len(topic.partitions) for topic in groups[-1].topics))
    for at, replication in unreplicated:
        try:
            await replication
        except KafkaError:  # so that clients look for the coordinator (groups 0.6.5)
            groups[at] = _refused(request.groups[at], ErrorCode.NOT_COORDINATOR, ctx.version)
    return OffsetFetchResponse(groups=groups)


def _fetch(
    wanted: OffsetFetchRequestGroup, require_stable: bool, ctx: RequestContext, *, written: bool
) -> OffsetFetchResponseGroup:
    require_group(AclOperation.DESCRIBE, wanted.group_id, ctx, named=False)
    failed: list[OffsetFetchResponseTopics] = []
    if wanted.topics is not None:
        passed, failed = _split_topics(wanted.topics, ctx)
        wanted = wanted.changed(topics=passed)
    group = coordinator(wanted.group_id, ctx).fetch_offsets(wanted, require_stable=require_stable, written=written)
    if wanted.topics is None:
        group.topics = _visible(group.topics, ctx)
    elif failed:
        group.topics = [*group.topics, *failed]
    return group


def _split_topics(
    topics: Sequence[OffsetFetchRequestTopics], ctx: RequestContext
) -> tuple[list[OffsetFetchRequestTopics], list[OffsetFetchResponseTopics]]:
    """Split topics into those that the client may describe, with their names, and failed ones."""
    by_id = features.offset_fetch_uses_topic_ids(ctx.version)
    passed, failed = [], []
    for topic in topics:
        name = topic.name
        if by_id:
            known = None if topic.topic_id is None else ctx.cluster.image.topics_by_id.get(topic.topic_id)
            if known is None:
                failed.append(_failed(topic, ErrorCode.UNKNOWN_TOPIC_ID))
                continue
            name = known.name
        # The id first: only a name can be authorized (groups B.2.3).
        if not ctx.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            failed.append(_failed(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            continue
        passed.append(OffsetFetchRequestTopics(name, topic.partition_indexes, topic.topic_id))
    return passed, failed


def _visible(topics: Sequence[OffsetFetchResponseTopics], ctx: RequestContext) -> list[OffsetFetchResponseTopics]:
    """Return the topics that the client may describe; with topic ids, only existing ones."""
    topics = [t for t in topics if ctx.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, t.name)]
    if not features.offset_fetch_uses_topic_ids(ctx.version):
        return topics
    known = []
    for topic in topics:
        current = ctx.cluster.image.topics.get(topic.name)
        if current is not None:
            topic.topic_id = current.id
            known.append(topic)
    return known


def _failed(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    answers = [no_offset(partition, code) for partition in topic.partition_indexes]
    return OffsetFetchResponseTopics(topic.name, answers, topic.topic_id)


def _refused(wanted: OffsetFetchRequestGroup, code: ErrorCode, version: int) -> OffsetFetchResponseGroup:
    """Build a group's error, at the level that the version has."""
    topics = []
    if not features.offset_fetch_has_group_error(version):
        topics = [_failed(topic, code) for topic in wanted.topics or ()]
    return OffsetFetchResponseGroup(wanted.group_id, topics, code)


def refuse(request: OffsetFetchRequest, error: KafkaError, version: int) -> OffsetFetchResponse:
    """Put the error on every group."""
    return OffsetFetchResponse(groups=[_refused(group, error.code, version) for group in request.groups])


API: Api[OffsetFetchRequest, OffsetFetchResponse] = Api(ApiKey.OFFSET_FETCH, handle, refuse)
