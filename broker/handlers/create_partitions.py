"""CreatePartitions: adds partitions to existing topics (KIP-195).

Versions 0-3. Not done: nothing.
"""

from collections import Counter
from collections.abc import Sequence

from broker.coordination.metadata.machine import Result
from broker.coordination.metadata.topics import MorePartitions
from broker.request.api import Api, per_item
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.throttling import Mutations
from broker.settings.releases import Behaviour
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.java import string_hash, table_order
from protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

_MOST_ADDED = 10_000
"""QuorumController.MAX_RECORDS_PER_USER_OP: each partition is a record, and the request one batch (core B.7 T4)."""


async def handle(request: CreatePartitionsRequest, ctx: RequestContext) -> CreatePartitionsResponse:
    """Check duplicates and authorization, then let the metadata machine decide (core B.8).

    Topics are in the order of the sets of names in ``ControllerApis.createPartitions``.
    """
    topics = {topic.name: topic for topic in request.topics}
    times = Counter(topic.name for topic in request.topics)
    twice = KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    doubled = table_order([name for name, count in times.items() if count > 1], string_hash)
    results = [_result(name, twice) for name in doubled]
    wanted = []
    for name in table_order(list(times), string_hash):
        if times[name] > 1:
            continue
        if ctx.authorized(AclOperation.ALTER, ResourceType.TOPIC, name):
            wanted.append(_wanted(topics[name]))
        else:
            results.append(_result(name, KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
    if request.timeout_ms <= 0 and wanted:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    if ctx.release.has(Behaviour.ADDED_PARTITIONS_BOUNDED) and _added(wanted, ctx) > _MOST_ADDED:
        excessive = KafkaError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of additional partitions per request."
        )
        results += [_result(topic.name, excessive) for topic in wanted]
        return CreatePartitionsResponse(results=results)
    mutations = Mutations(ctx, strict=features.create_partitions_refuses_above_quota(ctx.version))
    answers: list[Result] = await ctx.cluster.metadata.ask(
        lambda machine, _now_ms, token: machine.create_partitions(
            wanted, token, charge=mutations.charge, validate_only=request.validate_only
        ),
        records=max(_added(wanted, ctx), len(wanted)),
    )
    results += [_result(name, error) for name, error in answers]
    return CreatePartitionsResponse(mutations.settle(), results)


def _added(wanted: Sequence[MorePartitions], ctx: RequestContext) -> int:
    """Return how many partitions the request would add to existing topics."""
    known = ctx.cluster.image.topics
    return sum(max(each.count - len(known[each.name].partitions), 0) for each in wanted if each.name in known)


def _wanted(topic: CreatePartitionsTopic) -> MorePartitions:
    assignments = None if topic.assignments is None else [each.broker_ids for each in topic.assignments]
    return MorePartitions(topic.name, topic.count, assignments)


def _result(name: str, error: KafkaError | None) -> CreatePartitionsTopicResult:
    if error is None:
        return CreatePartitionsTopicResult(name)
    return CreatePartitionsTopicResult(name, error.code, error.message)


API: Api[CreatePartitionsRequest, CreatePartitionsResponse] = Api(
    ApiKey.CREATE_PARTITIONS,
    handle,
    per_item(
        lambda request: request.topics,
        lambda topic, error: _result(topic.name, error),
        lambda results: CreatePartitionsResponse(results=results),
    ),
)
