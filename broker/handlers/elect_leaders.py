"""ElectLeaders: preferred leaders back (KIP-183), or any leader at the price of records (KIP-460).

Versions 0-2. Not done: nothing.
"""

from broker.chain import Api
from broker.context import AclOperation, RequestContext
from broker.coordination.metadata.elections import Election
from broker.coordination.metadata.machine import Result
from broker.topology import may_on_cluster
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

_TYPES = {0: Election.PREFERRED, 1: Election.UNCLEAN}


async def handle(request: ElectLeadersRequest, ctx: RequestContext) -> ElectLeadersResponse:
    """Core B.10. All partitions, if none are named: then those that need no election are left out."""
    if not may_on_cluster(ctx, AclOperation.ALTER):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    election = _TYPES.get(request.election_type)
    if election is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    if request.timeout_ms <= 0:
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
    every = request.topic_partitions is None
    if request.topic_partitions is None:
        asked = [(topic.name, index) for topic, index, _ in ctx.cluster.image.all_partitions()]
    else:
        asked = [(topic.topic, index) for topic in request.topic_partitions for index in topic.partitions]
    answers: list[Result] = await ctx.cluster.metadata.ask(
        lambda machine, _now_ms, token: machine.elect_leaders(asked, election, token)
    )
    topics: dict[str, list[PartitionResult]] = {}
    for (name, index), error in answers:
        results = topics.setdefault(name, [])
        if not (every and error is not None and error.code is ErrorCode.ELECTION_NOT_NEEDED):
            results.append(_result(index, error))
    return ElectLeadersResponse(
        replica_election_results=[ReplicaElectionResult(name, results) for name, results in topics.items()]
    )


def _result(index: int, error: KafkaError | None) -> PartitionResult:
    if error is None:
        return PartitionResult(index, error_message=None)
    return PartitionResult(index, error.code, error.message)


def refuse(request: ElectLeadersRequest, error: KafkaError, version: int) -> ElectLeadersResponse:  # noqa: ARG001
    """At the top and on every partition named."""
    results = [
        ReplicaElectionResult(topic.topic, [_result(index, error) for index in topic.partitions])
        for topic in request.topic_partitions or ()
    ]
    return ElectLeadersResponse(replica_election_results=results, error_code=error.code)


API = Api(ApiKey.ELECT_LEADERS, (0, 2), handle, refuse)
