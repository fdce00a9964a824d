"""Produce: appends batches to partitions.

Versions 3-13 (listed from 0, as by Kafka for librdkafka's sake). Topic ids from v13, current leaders from v10; from v12
on a transactional batch adds its partition to the transaction (KIP-890).
Differs from Kafka: unusual and malformed batches (GAPS.md, Records).
"""

from collections.abc import Sequence
from uuid import UUID

from broker.partitions.produce import (
    ACKS_ALL,
    ACKS_NONE,
    admit,
    append,
    append_large,
    await_replication,
    log_rejected_batches,
    log_rejection,
    overrule,
    unsettled,
)
from broker.partitions.transactions.verification import verify
from broker.request.answers import Disconnect
from broker.request.api import Api
from broker.request.context import RequestContext
from broker.request.leader_endpoints import endpoints_of
from broker.request.produce_results import Admitted, Produced
from broker.settings.releases import Behaviour, Release
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
from storage.append_errors import RecordsRejectedError, RequestRejectedError, reports_log_start
from storage.log.large_batches import LargeBatchError


async def handle(request: ProduceRequest, ctx: RequestContext) -> ProduceResponse | None:
    """Admit, verify, append, wait for acks, in Kafka's order of checks (transactions D.1)."""
    try:
        admitted = entries = admit(request, ctx)
    except RequestRejectedError as error:
        if request.acks != ACKS_NONE:  # with acks=0 the connection is closed, which is logged
            log_rejection(error, ctx)
        raise
    if request.transactional_id is not None:
        entries = await verify(request.transactional_id, entries, ctx)
    results: list[Produced] = []
    for each in entries:
        if isinstance(each, Admitted):
            try:
                results.append(append(each, request.acks, ctx))
                continue
            except LargeBatchError as large:
                steps = large.steps
            results.append(await append_large(each, request.acks, ctx, steps))
        else:
            results.append(each)
    ctx.notes.produced = results  # even if the wait below ends without a response
    if request.acks == ACKS_ALL and (pending := unsettled(results, ctx)):
        await await_replication(pending, ctx.now_ms + request.timeout_ms, ctx)
    overrule(admitted, results)
    if request.acks == ACKS_NONE:
        failed = next((each for each in results if each.error is not None), None)
        # The client waits for no response: a closed connection makes it refresh its metadata (KafkaApis).
        if failed is not None:
            raise Disconnect(f"Produce with acks=0 to {failed.topic}-{failed.index}: {failed.error}")
        return None
    log_rejected_batches(results, ctx)
    return _response(results, ctx)


def _response(results: Sequence[Produced], ctx: RequestContext) -> ProduceResponse:
    topics: list[TopicProduceResponse] = []
    leaders = set()
    partitions: list[PartitionProduceResponse] = []
    for result in results:
        last = topics[-1] if topics else None
        if last is None or (last.name, last.topic_id) != (result.asked_name, result.topic_id):
            partitions = []
            topics.append(TopicProduceResponse(result.asked_name, partitions, result.topic_id))
        answer = _answer(result, ctx.release)
        partitions.append(answer)
        elsewhere = answer.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        if elsewhere and result.partition is not None and features.produce_has_current_leader(ctx.version):
            state = result.partition.state
            answer.current_leader = LeaderIdAndEpoch(state.leader, state.leader_epoch)
            leaders.add(state.leader)
    response = ProduceResponse(topics)
    if leaders:
        response.node_endpoints = [NodeEndpoint(*each) for each in endpoints_of(ctx, leaders)]
    return response


def _answer(result: Produced, release: Release) -> PartitionProduceResponse:
    """Build one partition's part of the response (transactions D.13)."""
    info, error = result.info, result.error
    if info is None:
        assert error is not None
        if error.code is ErrorCode.INVALID_RECORD and not release.has(Behaviour.INVALID_RECORD):
            return PartitionProduceResponse(result.index, ErrorCode.CORRUPT_MESSAGE, -1)
        answer = PartitionProduceResponse(result.index, error.code, -1, error_message=error.message)
        if result.reached_log:
            _add_details(answer, result, error)
        return answer
    answer = PartitionProduceResponse(result.index, ErrorCode.NONE, info.base_offset, info.log_append_time_ms)
    answer.log_start_offset = info.log_start_offset
    if error is not None:
        answer.error_code = error.code
    return answer


def _add_details(answer: PartitionProduceResponse, result: Produced, error: KafkaError) -> None:
    """Fill in the fields that only a failed append sets."""
    answer.error_message = None
    if reports_log_start(error.code) and result.partition is not None:
        log = result.partition.logs.get(result.partition.state.leader)
        answer.log_start_offset = -1 if log is None else log.log_start_offset
    if isinstance(error, RecordsRejectedError) and error.record_errors:
        answer.error_message = error.message
        answer.record_errors = [BatchIndexAndErrorMessage(*each) for each in error.record_errors]


def refuse(request: ProduceRequest, error: KafkaError, version: int) -> ProduceResponse | None:  # noqa: ARG001
    """Put the error on every partition; with acks=0 close the connection instead."""
    if request.acks == ACKS_NONE:
        raise Disconnect(f"Produce with acks=0: {error}")
    topics: dict[tuple[str, UUID | None], dict[int, PartitionProduceResponse]] = {}  # a repeated one once (core D.1 P5)
    for topic in request.topic_data:
        answers = topics.setdefault((topic.name, topic.topic_id), {})
        for data in topic.partition_data:
            answers[data.index] = PartitionProduceResponse(data.index, error.code, -1, error_message=error.message)
    return ProduceResponse(
        [TopicProduceResponse(name, [*answers.values()], i) for (name, i), answers in topics.items()]
    )


API: Api[ProduceRequest, ProduceResponse | None] = Api(ApiKey.PRODUCE, handle, refuse)
