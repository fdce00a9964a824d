"""ShareFetch: acknowledges records of a share group, and acquires further ones (KIP-932).

Versions 1-2; a strict limit of records (KIP-1206) and renewed locks (KIP-1222) since v2. Not done: nothing.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any
from uuid import UUID

from broker.partitions.share_partition.acknowledgements import Acknowledging, AckResult
from broker.partitions.share_partition.fetch import Answer, Limits, ShareFetch, failed
from broker.partitions.share_partition.machine.acquire import Demand
from broker.partitions.share_partition.partitions import led_by
from broker.partitions.share_partition.sessions import FINAL_EPOCH, Interest, PartitionKey, Round, SessionKey, rotated
from broker.partitions.share_partition.settings import share_settings
from broker.request.api import Api, top_level
from broker.request.context import AclOperation, RequestContext, ResourceType
from broker.request.leader_endpoints import endpoints_of
from broker.request.share_groups import check_share_request
from broker.request.throttling import charge_fetch, most_fetched
from broker.settings.releases.behaviours import Behaviour
from broker.time.clock import Waiter
from protocol.apis import ApiKey
from protocol.codec import encode_response_body
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_fetch import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)

_BATCH_OPTIMIZED, _RECORD_LIMIT = 0, 1
_ACQUIRE_MODES = (_BATCH_OPTIMIZED, _RECORD_LIMIT)
_MOVED = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


async def handle(request: ShareFetchRequest, ctx: RequestContext) -> ShareFetchResponse:
    """Check, resolve the session, acknowledge, then fetch or wait, in Kafka's order (groups D.5)."""
    group_id, member_id = check_share_request(request, ctx)
    if request.is_renew_ack and any((request.max_bytes, request.min_bytes, request.max_records, request.max_wait_ms)):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    shares, key = led_by(ctx.node), SessionKey(group_id, member_id)
    topics = ctx.cluster.image.topics_by_id

    def name_of(topic_id: UUID | None) -> str | None:
        topic = None if topic_id is None else topics.get(topic_id)
        return None if topic is None else topic.name

    try:
        fetch_round = shares.sessions.begin(request, key, ctx.connection, name_of)
    except KafkaError as error:
        if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            await _idle(ctx, request.max_wait_ms)
        raise
    names = (*(each.topic for each in fetch_round.interests), *(name_of(each.topic_id) for each in request.topics))
    if ctx.node.authorizer is not None and None in names:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka passes a topic without a name to its authorizer
    answers, failure = list[Answer](), None
    writing, failed_already = None, False
    if any(each.acknowledgement_batches for topic in request.topics for each in topic.partitions):
        # The fetch does not wait until they are written: it gets what they release only if it waits (groups D.5 SF2).
        acknowledging = Acknowledging(request, ctx, shares, group_id, member_id)
        writing, failed_already = asyncio.ensure_future(acknowledging.written()), acknowledging.failure is not None
    if not request.is_renew_ack and not failed_already:
        answers, failure = await _ended(_fetch(request, ctx, fetch_round, group_id, member_id), writing)
    acknowledged = {} if writing is None else await writing
    if failure is not None:
        raise failure
    response = _answer(ctx, fetch_round, answers)
    response.acquisition_lock_timeout_ms = share_settings(ctx.cluster, ctx.node.settings, group_id).lock_ms
    _add_acknowledgements(response, acknowledged)
    if request.share_session_epoch == FINAL_EPOCH:
        shares.end_session(key)
    return response


async def _ended(
    fetching: Coroutine[Any, Any, list[Answer]], writing: "asyncio.Future[Any] | None"
) -> tuple[list[Answer], BaseException | None]:
    """Return the answers of a fetch, or what ended it, as its acknowledgements are still to be awaited.

    Their writing ends with a fetch that is cancelled: nothing repeats it in an ended broker.
    """
    try:
        return await fetching, None
    except BaseException as error:  # noqa: BLE001 - no finally: mypyc's would raise it in each later call again
        if writing is not None and isinstance(error, asyncio.CancelledError):
            writing.cancel()
        return [], error


async def _idle(ctx: RequestContext, wait_ms: int) -> None:
    """Delay the refusal of a client that gets no session, so that it does not retry continuously."""
    if ctx.connection.lost:
        return
    waiter = Waiter()
    ctx.connection.watch(waiter.wake)
    try:
        await waiter.wait(ctx.cluster.clock, ctx.cluster.clock.poll_deadline_ms(wait_ms))
    finally:
        ctx.connection.unwatch(waiter.wake)


async def _fetch(
    request: ShareFetchRequest, ctx: RequestContext, fetch_round: Round, group_id: str, member_id: str
) -> list[Answer]:
    """Fetch the session's partitions that exist and may be read; return the others with their errors."""
    refused: list[Answer] = []
    readable: list[Interest] = []
    for interest in fetch_round.interests:
        code = _refusal(interest, ctx)
        if code is None:
            readable.append(interest)
        else:
            refused.append((interest, failed(interest, code)))
    readable = rotated(readable, request.share_session_epoch)
    if readable and request.share_acquire_mode not in _ACQUIRE_MODES:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # Kafka validates the mode when it begins to read
    limit = min(request.max_bytes, ctx.node.settings.int("fetch.max.bytes"))
    if ctx.node.quotas is not None and (most := most_fetched(ctx.node.quotas, ctx)) is not None:
        limit = min(limit, most)
    demand = Demand(
        member_id, request.max_records, request.batch_size, record_limit=request.share_acquire_mode == _RECORD_LIMIT
    )
    fetch = ShareFetch(ctx, led_by(ctx.node), group_id, demand)
    return [*await fetch.fetch(readable, Limits(limit, min(request.min_bytes, limit), request.max_wait_ms)), *refused]


def _refusal(interest: Interest, ctx: RequestContext) -> ErrorCode | None:
    # The id first, since only a name can be authorized; existence last, which READ may not reveal (groups D.5 SF3).
    if interest.topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not ctx.authorized(AclOperation.READ, ResourceType.TOPIC, interest.topic):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = ctx.cluster.image.topics.get(interest.topic)
    known = topic is not None and interest.key.partition in topic.partitions
    return None if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _answer(ctx: RequestContext, fetch_round: Round, answers: Sequence[Answer]) -> ShareFetchResponse:
    """Build the response, within the session and the client's quota.

    Raises:
        KafkaError: INVALID_SHARE_SESSION_EPOCH: another request has used the session meanwhile;
            UNKNOWN_SERVER_ERROR: a topic id without a topic, as in Kafka 4.3 (groups D.5 SF3).
    """
    leaders = {_name_leader(ctx, interest, data) for interest, data in answers if data.error_code in _MOVED}
    endpoints = [NodeEndpoint(*each) for each in endpoints_of(ctx, leaders - {-1})]
    quotas = ctx.node.quotas
    if quotas is not None:
        sized = ShareFetchResponse(responses=_by_topic(answers))
        body = encode_response_body(ApiKey.SHARE_FETCH, ctx.version, sized)
        size = 4 + sum(map(len, body))  # with the correlation id
        if throttle_ms := charge_fetch(quotas, ctx, size):
            code = ErrorCode.INVALID_SHARE_SESSION_EPOCH if fetch_round.overtaken else ErrorCode.NONE
            return ShareFetchResponse(throttle_ms, code, node_endpoints=endpoints)
    if fetch_round.overtaken:
        return ShareFetchResponse(error_code=ErrorCode.INVALID_SHARE_SESSION_EPOCH, node_endpoints=endpoints)
    listed = fetch_round.news(answers)
    if not ctx.release.has(Behaviour.SHARE_FETCH_OF_UNKNOWN_TOPICS) and any(
        interest.key.topic_id not in ctx.cluster.image.topics_by_id for interest, _ in listed
    ):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return ShareFetchResponse(responses=_by_topic(listed), node_endpoints=endpoints)


def _name_leader(ctx: RequestContext, interest: Interest, data: PartitionData) -> int:
    """Put the current leader into a partition's error; return its id, -1 for none."""
    partition = ctx.cluster.image.partition(str(interest.topic), interest.key.partition)
    leader, epoch = (-1, -1) if partition is None else (partition.leader, partition.leader_epoch)
    data.current_leader = LeaderIdAndEpoch(leader, epoch)
    return leader


def _by_topic(answers: Sequence[Answer]) -> list[ShareFetchableTopicResponse]:
    topics: dict[UUID | None, list[PartitionData]] = {}
    for interest, data in answers:
        topics.setdefault(interest.key.topic_id, []).append(data)
    return [ShareFetchableTopicResponse(topic_id, partitions) for topic_id, partitions in topics.items()]


def _add_acknowledgements(response: ShareFetchResponse, acknowledged: Mapping[PartitionKey, AckResult]) -> None:
    """Add the results of acknowledgements, to listed partitions or as further ones."""
    listed = {(topic.topic_id, each.partition_index): each for topic in response.responses for each in topic.partitions}
    added: dict[UUID | None, list[PartitionData]] = {topic.topic_id: [] for topic in response.responses}
    for key, result in acknowledged.items():
        data = listed.get(key)
        if data is None:
            data = PartitionData(key.partition, records=b"")
            added.setdefault(key.topic_id, []).append(data)
        data.acknowledge_error_code, data.acknowledge_error_message = result.code, result.message
    topics = {topic.topic_id: list(topic.partitions) for topic in response.responses}
    for topic_id, partitions in added.items():
        topics.setdefault(topic_id, []).extend(partitions)
    response.responses = [ShareFetchableTopicResponse(topic_id, each) for topic_id, each in topics.items()]


# The response has a message, but ShareFetchRequest.getErrorResponse leaves it out.
API: Api[ShareFetchRequest, ShareFetchResponse] = Api(ApiKey.SHARE_FETCH, handle, top_level(ShareFetchResponse))
