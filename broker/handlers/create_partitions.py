"""CreatePartitions: more partitions for topics that exist (KIP-195).

Versions 0-3. Not done: nothing.
"""

from collections import Counter

from broker.chain import Api
from broker.context import AclOperation, RequestContext, ResourceType
from broker.coordination.metadata.machine import Result
from broker.coordination.metadata.topics import MorePartitions
from broker.throttling import Mutations
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


async def handle(request: CreatePartitionsRequest, ctx: RequestContext) -> CreatePartitionsResponse:
    """Core B.8. Duplicates and permissions here, the rest in the machine."""
    if request.timeout_ms <= 0 and request.topics:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    times = Counter(topic.name for topic in request.topics)
    twice = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    results = [_result(name, twice) for name, count in times.items() if count > 1]
    wanted = []
    for topic in request.topics:
        if times[topic.name] > 1:
            continue
        if ctx.authorized(AclOperation.ALTER, ResourceType.TOPIC, topic.name):
            wanted.append(_wanted(topic))
        else:
            results.append(_result(topic.name, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
    mutations = Mutations(ctx, strict=features.create_partitions_refuses_above_quota(ctx.version))
    answers: list[Result] = await ctx.cluster.metadata.ask(
        lambda machine, _now_ms, token: machine.create_partitions(
            wanted, token, charge=mutations.charge, validate_only=request.validate_only
        )
    )
    results += [_result(name, error) for name, error in answers]
    return CreatePartitionsResponse(mutations.settle(), results)


def _wanted(topic: CreatePartitionsTopic) -> MorePartitions:
    assignments = None if topic.assignments is None else [each.broker_ids for each in topic.assignments]
    return MorePartitions(topic.name, topic.count, assignments)


def _result(name: str, error: KafkaError | None) -> CreatePartitionsTopicResult:
    if error is None:
        return CreatePartitionsTopicResult(name)
    return CreatePartitionsTopicResult(name, error.code, error.message)


def refuse(request: CreatePartitionsRequest, error: KafkaError, version: int) -> CreatePartitionsResponse:  # noqa: ARG001
    """On every topic."""
    return CreatePartitionsResponse(results=[_result(topic.name, error) for topic in request.topics])


API = Api(ApiKey.CREATE_PARTITIONS, (0, 3), handle, refuse)
