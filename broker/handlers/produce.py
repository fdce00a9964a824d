"""Produce: append batches to partitions.

Versions 3-13 (listed from 0, as Kafka does for librdkafka's sake). Topic ids from v13, leader hints from v10; from v12
a transactional batch adds its partition to the transaction (KIP-890). Not done: byte quotas.
Differs from Kafka: batches that are oddly or wrongly written (GAPS.md, Records).
"""

from uuid import UUID

from broker.chain import Api, Disconnect
from broker.context import RequestContext
from broker.hints import endpoints_of
from broker.message_format import check_producer
from broker.producing.gate import CANDIDATES_NOTE, Candidate, candidates_of
from broker.producing.telling import tell, tell_refused_batches
from broker.producing.wait import await_replication, unsettled
from broker.releases import Behaviour, Release
from broker.verification import verify
from protocol import features
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from storage.rejection import RecordsRejectedError, RequestRejectedError, reports_log_start

ACKS_NONE = 0
ACKS_ALL = -1


async def handle(request: ProduceRequest, ctx: RequestContext) -> ProduceResponse | None:
    """Transactions D.1, in its order."""
    try:
        candidates = candidates_of(request, ctx)
    except RequestRejectedError as error:
        if request.acks != ACKS_NONE:  # then the connection is closed, with a line that says as much
            tell(error, ctx)
        raise
    ctx.notes[CANDIDATES_NOTE] = candidates
    if request.transactional_id is not None and any(c.transactional for c in candidates):
        await verify(request.transactional_id, candidates, ctx)
    for candidate in candidates:
        if candidate.error is None:
            _append(candidate, request.acks, ctx)
    if request.acks == ACKS_ALL and (pending := unsettled(candidates, ctx)):
        await await_replication(pending, ctx.now_ms + request.timeout_ms, ctx)
    for candidate in candidates:
        candidate.overrule()
    if request.acks == ACKS_NONE:
        failed = next((c for c in candidates if c.error is not None), None)
        if failed is not None:
            raise Disconnect(f"Produce with acks=0 to {failed.topic}-{failed.index}: {failed.error}")
        return None
    tell_refused_batches(candidates, ctx)
    return _response(candidates, ctx)


def _append(candidate: Candidate, acks: int, ctx: RequestContext) -> None:
    """G9 to G13 for one partition."""
    try:
        if acks not in (ACKS_ALL, ACKS_NONE, 1):
            raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
        candidate.check_writable(ctx)
        candidate.reached_log = True
        assert candidate.partition is not None
        assert candidate.records is not None
        if candidate.batch is not None and candidate.batch.producer_id >= 0:
            check_producer(candidate.topic, ctx)
        candidate.info = candidate.partition.append(
            ctx.node.id, candidate.records, ctx.now_ms, guard=candidate.guard, all_in_sync=acks == ACKS_ALL
        )
    except KafkaError as error:
        candidate.fail(error)


def _response(candidates: list[Candidate], ctx: RequestContext) -> ProduceResponse:
    topics: list[TopicProduceResponse] = []
    leaders = set()
    partitions: list[PartitionProduceResponse] = []
    for candidate in candidates:
        last = topics[-1] if topics else None
        if last is None or (last.name, last.topic_id) != (candidate.asked_name, candidate.topic_id):
            partitions = []
            topics.append(TopicProduceResponse(candidate.asked_name, partitions, candidate.topic_id))
        answer = _answer(candidate, ctx.release)
        partitions.append(answer)
        elsewhere = answer.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        if elsewhere and candidate.partition is not None and features.produce_tells_leader(ctx.version):
            state = candidate.partition.state
            answer.current_leader = LeaderIdAndEpoch(state.leader, state.leader_epoch)
            leaders.add(state.leader)
    response = ProduceResponse(topics)
    if leaders:
        response.node_endpoints = [NodeEndpoint(*each) for each in endpoints_of(ctx, leaders)]
    return response


def _answer(candidate: Candidate, release: Release) -> PartitionProduceResponse:
    """One partition's part of the response (transactions D.13)."""
    info, error = candidate.info, candidate.error
    if info is None:
        assert error is not None
        if error.code is ErrorCode.INVALID_RECORD and not release.has(Behaviour.INVALID_RECORD):
            return PartitionProduceResponse(candidate.index, ErrorCode.CORRUPT_MESSAGE, -1)
        answer = PartitionProduceResponse(candidate.index, error.code, -1, error_message=error.message)
        if candidate.reached_log:
            _tell_refusal(answer, candidate, error)
        return answer
    answer = PartitionProduceResponse(candidate.index, ErrorCode.NONE, info.base_offset, info.log_append_time_ms)
    answer.log_start_offset = info.log_start_offset
    if error is not None:
        answer.error_code = error.code
    return answer


def _tell_refusal(answer: PartitionProduceResponse, candidate: Candidate, error: KafkaError) -> None:
    answer.error_message = None
    if reports_log_start(error.code) and candidate.partition is not None:
        log = candidate.partition.logs.get(candidate.partition.state.leader)
        answer.log_start_offset = -1 if log is None else log.log_start_offset
    if isinstance(error, RecordsRejectedError) and error.record_errors:
        answer.error_message = error.message
        answer.record_errors = [BatchIndexAndErrorMessage(*each) for each in error.record_errors]


def refuse(request: ProduceRequest, error: KafkaError, version: int) -> ProduceResponse | None:  # noqa: ARG001
    """On every partition of the request; with acks=0 the connection is closed instead."""
    if request.acks == ACKS_NONE:
        raise Disconnect(f"Produce with acks=0: {error}")
    told: dict[tuple[str, UUID | None], dict[int, PartitionProduceResponse]] = {}  # a repeated one once (core D.1 P5)
    for topic in request.topic_data:
        answers = told.setdefault((topic.name, topic.topic_id), {})
        for data in topic.partition_data:
            answers[data.index] = PartitionProduceResponse(data.index, error.code, -1, error_message=error.message)
    return ProduceResponse([TopicProduceResponse(name, [*answers.values()], i) for (name, i), answers in told.items()])


API = Api(ApiKey.PRODUCE, (3, 13), handle, refuse, removed=0)
