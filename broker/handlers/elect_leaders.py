"""ElectLeaders: elects preferred leaders (KIP-183), or unclean leaders, which may lose records (KIP-460).

Versions 0-2. Not done: nothing.
"""

from collections.abc import Sequence
from itertools import islice

from broker.coordination.metadata.elections import Election
from broker.coordination.metadata.image import ClusterImage
from broker.coordination.metadata.machine import Result
from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext
from broker.request.topology import check_on_cluster
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.java import integer_hash, string_hash, timeline_table_order
from protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)

_TYPES = {0: Election.PREFERRED, 1: Election.UNCLEAN}


async def handle(request: ElectLeadersRequest, ctx: RequestContext) -> ElectLeadersResponse:
    """Elect leaders of the listed or all partitions; of all, those that need no election are left out (core B.10)."""
    check_on_cluster(ctx, AclOperation.ALTER)
    wanted = request.topic_partitions
    if wanted is not None and not wanted:  # QuorumController.electLeaders checks nothing else
        return ElectLeadersResponse(replica_election_results=[])
    # The deadline passes before the controller begins.
    if request.timeout_ms <= 0:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    election = _TYPES.get(request.election_type)
    if election is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    if wanted is None:
        partitions = _all(ctx.cluster.image)
    else:
        partitions = [(topic.topic, index) for topic in wanted for index in topic.partitions]
    answers: list[Result] = await ctx.cluster.metadata.ask(
        lambda machine, _now_ms, token: machine.elect_leaders(partitions, election, token), records=len(partitions)
    )
    return ElectLeadersResponse(replica_election_results=_needed(answers) if wanted is None else _each(wanted, answers))


def _all(image: ClusterImage) -> list[tuple[str, int]]:
    """Return all partitions in the order of the controller's maps (ReplicationControlManager.electLeaders)."""
    return [
        (name, index)
        for name in timeline_table_order(image.topics, string_hash)
        for index in timeline_table_order(image.topics[name].partitions, integer_hash)
    ]


def _each(wanted: Sequence[TopicPartitions], answers: Sequence[Result]) -> list[ReplicaElectionResult]:
    """Return one result per entry of the request."""
    results = iter([_result(index, error) for (_, index), error in answers])
    return [ReplicaElectionResult(each.topic, list(islice(results, len(each.partitions)))) for each in wanted]


def _needed(answers: Sequence[Result]) -> list[ReplicaElectionResult]:
    """Return results for those of all partitions that needed an election, by topic."""
    topics: dict[str, list[PartitionResult]] = {}
    for (name, index), error in answers:
        results = topics.setdefault(name, [])
        if error is None or error.code is not ErrorCode.ELECTION_NOT_NEEDED:
            results.append(_result(index, error))
    return [ReplicaElectionResult(name, results) for name, results in topics.items()]


def _result(index: int, error: KafkaError | None) -> PartitionResult:
    if error is None:
        return PartitionResult(index, error_message=None)
    return PartitionResult(index, error.code, error.message)


def refuse(request: ElectLeadersRequest, error: KafkaError, version: int) -> ElectLeadersResponse:  # noqa: ARG001
    """Put the error at the top level and on every requested partition."""
    results = [
        ReplicaElectionResult(topic.topic, [_result(index, error) for index in topic.partitions])
        for topic in request.topic_partitions or ()
    ]
    return ElectLeadersResponse(replica_election_results=results, error_code=error.code)


API: Api[ElectLeadersRequest, ElectLeadersResponse] = Api(ApiKey.ELECT_LEADERS, handle, refuse)
