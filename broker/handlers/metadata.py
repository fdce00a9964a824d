"""Metadata: brokers, topics, partitions and their leaders.

Versions 0-13. Differs from Kafka: ControllerId is the first alive broker, not a random one; with
`understudy.auto.create.topics.at.once` the response already has a topic that the request creates
(GAPS.md, Deliberate differences).
"""

from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

from broker.coordination.metadata.image import INTERNAL_TOPICS, METADATA_TOPIC, Topic
from broker.coordination.metadata.topics import MOST_PARTITIONS, NewTopic
from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.throttling import Mutations
from broker.request.topology import NOT_ASKED, Topology, authorized_operations, may_on_cluster, topology_of
from broker.settings.releases import Behaviour
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from protocol.topic_names import check_topic_name

Answer = MetadataResponseTopic


async def handle(request: MetadataRequest, ctx: RequestContext) -> MetadataResponse:
    """Describe brokers and topics, in Kafka's order of checks (core B.3 M1 to M8)."""
    _check(request.topics, ctx.version)
    seen = topology_of(ctx)
    if request.topics is None:
        answers = _all(seen, ctx)
    elif any(topic.topic_id is not None for topic in request.topics):
        answers = _by_id(_unique(topic.topic_id for topic in request.topics), seen, ctx)
    else:
        names = _unique(topic.name for topic in request.topics)
        answers, wanted = _by_name(names, seen, ctx, create=request.allow_auto_topic_creation)
        if ctx.release.has(Behaviour.CREATED_TOPICS_UNKNOWN):
            _create(wanted, ctx)
        else:
            await _create_by_broker(wanted, answers, ctx)
        if wanted and _at_once(ctx):
            answers = _with_created(answers, set(wanted), ctx)
    if request.include_topic_authorized_operations:
        for answer in answers:
            if answer.name is not None and answer.error_code is not ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                answer.topic_authorized_operations = authorized_operations(ctx, ResourceType.TOPIC, answer.name)
    cluster_operations = NOT_ASKED
    if request.include_cluster_authorized_operations:
        may = may_on_cluster(ctx, AclOperation.DESCRIBE)
        cluster_operations = authorized_operations(ctx, ResourceType.CLUSTER, "kafka-cluster") if may else 0
    return MetadataResponse(
        brokers=_brokers(seen, ctx),
        topics=answers,
        controller_id=seen.controller_id,
        cluster_id=ctx.cluster.cluster_id,
        cluster_authorized_operations=cluster_operations,
    )


def _brokers(seen: Topology, ctx: RequestContext) -> list[MetadataResponseBroker]:
    reachable = [(broker, broker.listeners[ctx.listener]) for broker in seen.brokers]
    return [MetadataResponseBroker(broker.id, at.host, at.port, broker.rack) for broker, at in reachable]


def _check(topics: Sequence[MetadataRequestTopic] | None, version: int) -> None:
    """Refuse topic ids and null names before v12; v10 and v11 have the fields but do not support them (core B.3 M1)."""
    by_id = any(topic.topic_id is not None for topic in topics or ())  # then names are ignored
    for topic in topics or ():
        named = topic.name is not None
        if not features.metadata_finds_by_id(version) and (not named or topic.topic_id is not None):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if not named and not by_id:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Quirk: Kafka fails on it, in 4.3.1


def _unique(items: Iterable[UUID | None] | Iterable[str | None]) -> list:  # type: ignore[type-arg]
    return [item for item in dict.fromkeys(items) if item is not None]


def _describable(name: str, ctx: RequestContext) -> bool:
    return ctx.authorized(AclOperation.DESCRIBE, ResourceType.TOPIC, name)


# --- forms of the request --------------------------------------------------------------------------------------------


def _all(seen: Topology, ctx: RequestContext) -> list[Answer]:
    topics = ctx.cluster.image.topics.values()
    return [_described(topic, seen, ctx) for topic in topics if _describable(topic.name, ctx)]


def _by_id(ids: list[UUID], seen: Topology, ctx: RequestContext) -> list[Answer]:
    """Describe topics by id: unknown ids first, then found ones, then denied ones (core B.3 M2)."""
    unknown, known, denied = [], [], []
    for topic_id in ids:
        topic = ctx.cluster.image.topics_by_id.get(topic_id)
        if topic is None:
            unknown.append(Answer(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id=topic_id))
        elif not _describable(topic.name, ctx):
            denied.append(Answer(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, topic_id=topic_id))
        else:
            known.append(_described(topic, seen, ctx))
    return [*unknown, *known, *denied]


def _by_name(names: list[str], seen: Topology, ctx: RequestContext, *, create: bool) -> tuple[list[Answer], list[str]]:
    """Describe topics by name: found, missing, not creatable, denied (core B.3 M4 to M8).

    Also return the names of topics to create.
    """
    create = create and ctx.node.settings.boolean("auto.create.topics.enable")
    known, missing, uncreated, denied = [], [], [], []
    wanted: list[str] = []
    for name in names:
        topic = None if name == METADATA_TOPIC else ctx.cluster.image.topics.get(name)
        # Permission first: whether a topic exists is hidden from who may not describe it (core B.3 M4).
        if not _describable(name, ctx):
            denied.append(Answer(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name))  # hides whether it is internal
        elif topic is not None:
            known.append(_described(topic, seen, ctx))
        elif create and not _may_create(name, ctx):
            uncreated.append(_refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name))
        else:
            answer = _missing(name)
            missing.append(answer)
            if create and name != METADATA_TOPIC and answer.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                wanted.append(name)
    return [*known, *missing, *uncreated, *denied], wanted


def _may_create(name: str, ctx: RequestContext) -> bool:
    on_topic = ctx.authorized(AclOperation.CREATE, ResourceType.TOPIC, name)
    return may_on_cluster(ctx, AclOperation.CREATE) or on_topic


def _missing(name: str) -> Answer:
    """Answer for a missing topic: INVALID_TOPIC_EXCEPTION or UNKNOWN_TOPIC_OR_PARTITION (core B.3 M6, M7)."""
    try:
        check_topic_name(name)
    except KafkaError as error:
        return _refused(error.code, name)
    return _refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name)


def _create(names: list[str], ctx: RequestContext) -> None:
    """Create missing topics; the next request returns them, as in Kafka.

    All are created in one operation, which is limited like CreateTopics: above the limit none is created.
    """
    metadata = ctx.cluster.metadata
    machine = metadata.machine
    for name in names:
        if name in INTERNAL_TOPICS:
            metadata.submit(lambda _now_ms, name=name: machine.create_internal_topic(name))  # type: ignore[misc]
    topics = [NewTopic(name) for name in names if name not in INTERNAL_TOPICS]
    if topics and len(topics) * ctx.node.settings.int("num.partitions") <= MOST_PARTITIONS:
        charge = Mutations(ctx, strict=True).charge  # as in the newest CreateTopics, but an error is not returned
        metadata.submit(lambda _now_ms: machine.create_topics(topics, charge=charge))


async def _create_by_broker(names: list[str], answers: Iterable[Answer], ctx: RequestContext) -> None:
    """Create topics like brokers with ZooKeeper, one by one, and put the result into the answers.

    A created topic has no leader yet: LEADER_NOT_AVAILABLE.
    """
    by_name = {answer.name: answer for answer in answers}
    for name in names:
        created = await ctx.cluster.metadata.ask(
            lambda machine, _now_ms, token, name=name: (  # type: ignore[misc]
                machine.create_internal_topic(name, token)
                if name in INTERNAL_TOPICS
                else machine.create_topics([NewTopic(name)], token)
            )
        )
        error = (created[0] if isinstance(created, list) else created).error
        there = error is None or error.code is ErrorCode.TOPIC_ALREADY_EXISTS
        by_name[name].error_code = ErrorCode.LEADER_NOT_AVAILABLE if there else error.code


def _at_once(ctx: RequestContext) -> bool:
    """Whether a request that creates a topic is answered as if it had existed (GAPS.md, Deliberate differences)."""
    return not ctx.cluster.lazy_coordinators and ctx.node.settings.boolean("understudy.auto.create.topics.at.once")


def _with_created(answers: Iterable[Answer], wanted: Collection[str], ctx: RequestContext) -> list[Answer]:
    """Replace the answers for created topics, in their places, by what the next request would get."""
    seen, topics = topology_of(ctx), ctx.cluster.image.topics
    return [
        _described(topics[answer.name], seen, ctx) if answer.name in wanted and answer.name in topics else answer
        for answer in answers
    ]


def _refused(code: ErrorCode, name: str) -> Answer:
    return Answer(code, name, is_internal=name in INTERNAL_TOPICS)


# --- one topic -------------------------------------------------------------------------------------------------------


def _described(topic: Topic, seen: Topology, ctx: RequestContext) -> Answer:
    version, partitions = ctx.version, []
    all_replicas = features.metadata_lists_offline_replicas(version)
    for index, partition in topic.partitions.items():
        view = seen.partition(topic, index, partition)
        error, replicas, isr = view.error, partition.replicas, partition.isr
        if error is ErrorCode.LISTENER_NOT_FOUND and not features.metadata_knows_missing_listener(version):
            error = ErrorCode.LEADER_NOT_AVAILABLE
        if not all_replicas:
            replicas, isr = seen.alive_only(replicas), seen.alive_only(isr)
            # Only of a partition with a leader: core B.3 has 5 and 72 above 9.
            if error is ErrorCode.NONE and len(replicas) < len(partition.replicas):
                error = ErrorCode.REPLICA_NOT_AVAILABLE
        partitions.append(
            MetadataResponsePartition(error, index, view.leader, replicas, isr, view.offline, partition.leader_epoch)
        )
    return Answer(ErrorCode.NONE, topic.name, partitions, topic.internal, topic_id=topic.id)


def refuse(request: MetadataRequest, error: KafkaError, version: int) -> MetadataResponse:  # noqa: ARG001
    """Put the error on every requested topic, and from v13 also at the top level."""
    topics = [Answer(error.code, topic.name or "", topic_id=topic.topic_id) for topic in request.topics or ()]
    return MetadataResponse(topics=topics, error_code=error.code)


API: Api[MetadataRequest, MetadataResponse] = Api(ApiKey.METADATA, handle, refuse)
