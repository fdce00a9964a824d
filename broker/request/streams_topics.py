"""Internal topics of streams groups, created when a heartbeat shows that they are missing (groups E.5).

Follows Kafka's ``KafkaApis`` and ``AutoTopicCreationManager.createStreamsInternalTopics``.
"""

import asyncio
from collections.abc import Mapping, Sequence

from broker.coordination.group.modern.streams.configuration import InternalTopic, Status
from broker.coordination.group.modern.streams.step import HeartbeatResult
from broker.coordination.metadata.topics import CreatedTopic, NewTopic, check_partitions
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.node import CreationFailure
from broker.request.throttling import Mutations
from broker.request.topology import may_on_cluster
from broker.settings import groups as group_settings
from broker.settings import topics as topic_settings
from broker.settings.model import ConfigResourceType
from broker.settings.releases import Behaviour
from protocol.errors import ErrorCode, KafkaError, texts_of
from protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse

_NAMED_TOPICS = 3  # in a status; the others are counted (groups E.5)
_HEARTBEATS = 2
"""For so many heartbeat intervals a failure is remembered: the topic is not created again meanwhile (groups E.5)."""
_MOST_FAILURES = 1000
"""Capacity of ExpiringErrorCache in AutoTopicCreationManager: the oldest entry is evicted first."""
_HEARTBEAT_INTERVAL = "streams.heartbeat.interval.ms"
_TEXTS = texts_of(ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.UNKNOWN_SERVER_ERROR)
"""Kafka's messages for creations that fail with these codes and no message."""


def create_internal_topics(group_id: str, result: HeartbeatResult, ctx: RequestContext) -> None:
    """Create the topics that a heartbeat reports as missing, with its sender's permissions.

    The response lists the topics that the sender may not create, and those whose creation failed within the last two
    heartbeat intervals, which is not retried before.

    Kafka tries each topic once per configuration of the topology: later heartbeats send an empty CreateTopics request,
    until the topics that the group needs change.
    """
    denied = () if may_on_cluster(ctx, AclOperation.CREATE) else _denied(result.missing, ctx)
    if denied:
        _add_detail(result.response, f"Unauthorized to CREATE on topics {', '.join(denied)}.")
        return
    failures = ctx.node.streams_topic_failures
    for name in [name for name, each in failures.items() if each.forgotten_at_ms <= ctx.now_ms]:
        del failures[name]
    known = {topic.name: failures[topic.name] for topic in result.missing if topic.name in failures}
    requested = result.requested
    _create([each for each in result.missing if each.name not in known and each.name not in requested], group_id, ctx)
    requested.update(each.name for each in result.missing if each.name not in known)
    if known:
        _add_detail(result.response, f"Creation failed: {_summarized(known)}.")


def _denied(topics: Sequence[InternalTopic], ctx: RequestContext) -> list[str]:
    return [topic.name for topic in topics if not ctx.authorized(AclOperation.CREATE, ResourceType.TOPIC, topic.name)]


def _add_detail(response: StreamsGroupHeartbeatResponse, text: str) -> None:
    for status in response.status or ():
        if status.status_code == Status.MISSING_INTERNAL_TOPICS:
            status.status_detail = f"{status.status_detail}; {text}"
            return


def _summarized(failures: Mapping[str, CreationFailure]) -> str:
    listed = [f"{name} ({failure.message})" for name, failure in failures.items()]
    more = len(listed) - _NAMED_TOPICS
    return ", ".join(listed[:_NAMED_TOPICS]) + (f" and {more} more" if more > 0 else "")


def _create(topics: Sequence[InternalTopic], group_id: str, ctx: RequestContext) -> None:
    settings, metadata = ctx.node.settings, ctx.cluster.metadata
    if not topics:
        return

    def check_configs(configs: Mapping[str, str | None]) -> None:
        topic_settings.validate(configs, settings)

    try:
        overflows = not ctx.release.has(Behaviour.PARTITIONS_SUMMED_AS_LONG)
        check_partitions(sum(each.partitions for each in topics), overflows=overflows)
    except KafkaError as error:
        _note_failures([CreatedTopic(each.name, error) for each in topics], group_id, ctx)
        return
    wanted = [NewTopic(each.name, each.partitions, each.replication_factor, (), each.configs) for each in topics]
    machine, charge = metadata.machine, Mutations(ctx, strict=True).charge
    if not metadata.active:  # the creation waits for the next controller, and this response does not
        metadata.submit(lambda _now_ms: machine.create_topics(wanted, check_configs=check_configs, charge=charge))
        return
    answer: asyncio.Future[list[CreatedTopic]] = metadata.begin(
        lambda machine, _now_ms, token: machine.create_topics(wanted, token, check_configs=check_configs, charge=charge)
    )
    _note_failures(answer.result(), group_id, ctx)


def _note_failures(created: Sequence[CreatedTopic], group_id: str, ctx: RequestContext) -> None:
    """Remember for two heartbeat intervals why topics were not created."""
    stored = ctx.cluster.image.config(ConfigResourceType.GROUP, group_id)
    interval_ms = group_settings.effective(stored, ctx.node.settings)[_HEARTBEAT_INTERVAL]
    assert isinstance(interval_ms, int)  # an INT without null
    for topic in created:
        if topic.error is not None:
            ctx.node.streams_topic_failures[topic.name] = CreationFailure(
                _message(topic.error), ctx.now_ms + _HEARTBEATS * interval_ms
            )
    failures = ctx.node.streams_topic_failures
    for name in list(failures)[: max(len(failures) - _MOST_FAILURES, 0)]:
        del failures[name]


def _message(error: KafkaError) -> str:
    return error.message or _TEXTS.get(error.code) or error.code.name
