"""CreateTopics: creates topics with partitions, replicas and configs.

Versions 2-7. Not done: create.topic.policy.class.name of Java.
"""

from collections import Counter
from collections.abc import Mapping

from broker.coordination.metadata.image import METADATA_TOPIC
from broker.coordination.metadata.topics import CreatedTopic, NewTopic, check_partitions, check_records
from broker.request.api import Api, per_item
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.throttling import Mutations
from broker.request.topology import may_on_cluster
from broker.settings import topics as topic_settings
from broker.settings.describe import created_topic_entries
from broker.settings.releases import Behaviour
from broker.time.clock import Slices
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.java import string_hash, table_order
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

_Described = dict[frozenset[tuple[str, str]], list[CreatableTopicConfigs]]


async def handle(request: CreateTopicsRequest, ctx: RequestContext) -> CreateTopicsResponse:
    """Check the request as a whole, then let the metadata machine decide on each topic (core B.7 T1 to T5)."""
    wanted, duplicates, refused = _split_topics(request, ctx)
    if request.timeout_ms <= 0 and wanted:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)  # the controller's timeout, for requests that get that far
    partitions = _partitions(wanted, ctx)
    check_partitions(partitions, overflows=not ctx.release.has(Behaviour.PARTITIONS_SUMMED_AS_LONG))
    settings = ctx.node.settings

    def check_configs(configs: Mapping[str, str | None]) -> None:
        topic_settings.validate(configs, settings)

    mutations = Mutations(ctx, strict=features.create_topics_refuses_above_quota(ctx.version))
    created: list[CreatedTopic] = await ctx.cluster.metadata.ask(
        lambda machine, _now_ms, token: machine.create_topics(
            [_new_topic(topic) for topic in wanted],
            token,
            check_configs=check_configs,
            charge=mutations.charge,
            check_records=check_records,
            validate_only=request.validate_only,
        ),
        records=max(partitions, len(wanted)),
    )
    answers: list[CreatableTopicResult] = []
    described: _Described = {}
    slices = Slices()
    for topic in created:
        answers.append(_result(topic, ctx, described))
        await slices.pause()
    answers += [*duplicates, *refused]
    return CreateTopicsResponse(mutations.settle(), answers)


def _split_topics(
    request: CreateTopicsRequest, ctx: RequestContext
) -> tuple[list[CreatableTopic], list[CreatableTopicResult], list[CreatableTopicResult]]:
    """Return the valid topics, the duplicates (core B.7 T1), and the forbidden ones (core B.7 T2, T3).

    The last two are in the order of the sets of names in ``ControllerApis.createTopics``.
    """
    times = Counter(topic.name for topic in request.topics)
    everything = may_on_cluster(ctx, AclOperation.CREATE)
    wanted: list[CreatableTopic] = []
    refused: dict[str, CreatableTopicResult] = {}
    for topic in request.topics:
        if times[topic.name] > 1:
            continue
        if topic.name == METADATA_TOPIC:
            sentence = f"Creation of internal topic {METADATA_TOPIC} is prohibited."
            refused[topic.name] = _error(topic.name, KafkaError(ErrorCode.INVALID_REQUEST, sentence))
        elif not everything and not ctx.authorized(AclOperation.CREATE, ResourceType.TOPIC, topic.name):
            error = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
            refused[topic.name] = _error(topic.name, error)
        elif (too_few := _too_few(topic, ctx)) is not None:
            refused[topic.name] = _error(topic.name, too_few)
        else:
            wanted.append(topic)
    twice = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    doubled = table_order([name for name, count in times.items() if count > 1], string_hash)
    names = table_order(list(times), string_hash)
    return wanted, [_error(name, twice) for name in doubled], [refused[name] for name in names if name in refused]


def _too_few(topic: CreatableTopic, ctx: RequestContext) -> KafkaError | None:
    """Return the error of -1 in releases without default partitions and replication factor."""
    if topic.assignments or ctx.release.has(Behaviour.DEFAULT_COUNTS):
        return None
    # Partitions first, as those releases check; newer ones check the factor first (core B.7 T16).
    if topic.num_partitions == -1:
        return KafkaError(ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if topic.replication_factor == -1:
        return KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    return None


def _partitions(topics: list[CreatableTopic], ctx: RequestContext) -> int:
    """Return the total number of requested partitions (core B.7 T4)."""
    default = ctx.node.settings.int("num.partitions")
    return sum(
        len(topic.assignments) or (default if topic.num_partitions == -1 else max(topic.num_partitions, 0))
        for topic in topics
    )


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        [(assignment.partition_index, assignment.broker_ids) for assignment in topic.assignments],
        {config.name: config.value for config in topic.configs},
    )


def _error(name: str, error: KafkaError) -> CreatableTopicResult:
    return CreatableTopicResult(name, error.code, error.message)


def _result(topic: CreatedTopic, ctx: RequestContext, described: _Described) -> CreatableTopicResult:
    """Build a topic's result. ``described`` caches configs, since those of a request's topics are mostly equal."""
    if topic.error is not None:
        return _error(topic.name, topic.error)
    result = CreatableTopicResult(topic.name, error_message=None, topic_id=topic.topic_id)
    if not ctx.authorized(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name):
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return result
    result.num_partitions, result.replication_factor = topic.partitions, topic.replication_factor
    configs = frozenset(topic.configs.items())
    if configs not in described:
        described[configs] = [
            CreatableTopicConfigs(entry.name, entry.value, entry.read_only, entry.source, entry.sensitive)
            for entry in sorted(created_topic_entries(topic.configs, ctx.node.settings), key=lambda entry: entry.name)
        ]
    result.configs = described[configs]
    return result


API: Api[CreateTopicsRequest, CreateTopicsResponse] = Api(
    ApiKey.CREATE_TOPICS,
    handle,
    per_item(
        lambda request: request.topics,
        lambda topic, error: _error(topic.name, error),
        lambda topics: CreateTopicsResponse(topics=topics),
    ),
)
