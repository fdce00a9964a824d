"""Fetch: reads batches of many partitions, immediately or when enough bytes are available.

Versions 4-18; 0-3 for emulated releases before 4.0. Sessions (KIP-227) from v7, leader epochs from v9, topic ids from
v13, current leaders from v16. Differs from Kafka: all fetch sessions of a broker together hold 100,000 partitions.
With `understudy.first.fetch.max.wait.ms`, which the fixtures set to 0, a connection's first wait for records ends then.
"""

from collections.abc import Sequence

from broker.access.quotas import BrokerQuotas
from broker.partitions.fetch.read import Limits, Reader, find
from broker.request.api import Api
from broker.request.context import RequestContext
from broker.request.fetch_sessions import Fetching, Interest, replica_of, resolve
from broker.request.leader_endpoints import endpoints_of
from broker.request.throttling import charge_fetch, most_fetched
from protocol import features
from protocol.apis import ApiKey
from protocol.codec import encode_response_body
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, NodeEndpoint, PartitionData


async def handle(request: FetchRequest, ctx: RequestContext) -> FetchResponse:
    """Resolve the session, check, read or wait, in Kafka's order (core E.1)."""
    cache = ctx.node.sessions
    uses_topic_ids = features.fetch_uses_topic_ids(ctx.version)
    try:
        fetching = resolve(cache, request, uses_topic_ids, ctx.now_ms)
    except KafkaError as error:
        return FetchResponse(error_code=error.code)
    readings = find(ctx, fetching.interests, uses_topic_ids, follower=fetching.follower)
    readable = bool(readings) and readings[0].refused is None  # readable partitions come first
    if readable and request.isolation_level not in (0, 1):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    limit = min(request.max_bytes, ctx.node.settings.int("fetch.max.bytes"))
    quotas = None if fetching.follower else ctx.node.quotas  # followers are exempt
    if quotas is not None and (most := most_fetched(quotas, ctx)) is not None:
        limit = min(limit, most)
    limits = Limits(limit, min(request.min_bytes, limit), request.isolation_level, replica_of(request), request.rack_id)
    reader = Reader(ctx, readings, limits)
    answers = reader.read()
    if readable and request.max_wait_ms > 0 and not reader.final and reader.size < limits.min_bytes:
        await reader.wait(ctx.cluster.clock.poll_deadline_ms(_wait_ms(request, ctx)))
        answers = reader.read()
    if quotas is not None and (throttle_ms := _charge(quotas, ctx, fetching, answers)):
        return fetching.throttled(throttle_ms)
    try:
        session_id, included = fetching.answer(cache, answers, ctx.now_ms)
    except KafkaError as error:
        return FetchResponse(error_code=error.code, session_id=request.session_id)
    charged = None if ctx.notes.encoded is None else ctx.notes.encoded[0]
    if isinstance(charged, FetchResponse) and charged.session_id == session_id:
        response = charged  # it is encoded already
    else:
        response = FetchResponse(session_id=session_id, responses=by_topic(included, uses_topic_ids))
    if reader.final and not fetching.follower:  # an error, perhaps because another broker leads
        leaders = {data.current_leader.leader_id for _, data in included if data.current_leader.leader_id != -1}
        response.node_endpoints = [NodeEndpoint(*each) for each in endpoints_of(ctx, leaders)] if leaders else ()
        ctx.notes.encoded = None
    return response


def _wait_ms(request: FetchRequest, ctx: RequestContext) -> int:
    """Return how long a Fetch waits for records: `max_wait_ms`, less for the first one of a connection if it is set so.

    A client's first Fetch has those partitions whose offsets it knows by then; the others wait for its answer.
    """
    first_ms = -1 if ctx.connection.has_waited else ctx.node.settings.int("understudy.first.fetch.max.wait.ms")
    ctx.connection.has_waited = True
    return request.max_wait_ms if first_ms < 0 else min(request.max_wait_ms, first_ms)


def _charge(
    quotas: BrokerQuotas, ctx: RequestContext, fetching: Fetching, answers: Sequence[tuple[Interest, PartitionData]]
) -> int:
    """Charge a response to the client's quota; return the throttle time in ms.

    The response counts with its size field (Kafka's FetchResponse.sizeOf), so it is encoded here, and again if it opens
    a session, whose id is drawn later.
    """
    session_id = 0 if fetching.session is None else fetching.session.id
    uses_topic_ids = features.fetch_uses_topic_ids(ctx.version)
    response = FetchResponse(session_id=session_id, responses=by_topic(fetching.news(answers), uses_topic_ids))
    body = encode_response_body(ApiKey.FETCH, ctx.version, response)
    throttle_ms = charge_fetch(quotas, ctx, 4 + sum(map(len, body)))  # with the correlation id
    ctx.notes.encoded = None if throttle_ms else (response, body)
    return throttle_ms


def by_topic(included: Sequence[tuple[Interest, PartitionData]], uses_topic_ids: bool) -> list[FetchableTopicResponse]:
    """Group partitions by topic; neighbours of one topic share an entry (Kafka's FetchResponse.matchingTopic).

    Raises:
        KafkaError: UNKNOWN_SERVER_ERROR if a topic with neither id nor name is not the last one, since Kafka compares
            the
            missing name with the next one.
    """
    topics: list[FetchableTopicResponse] = []
    partitions: list[PartitionData] = []
    for interest, data in included:
        last = topics[-1] if topics else None
        if last is not None and uses_topic_ids and not last.topic_id and not last.topic:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        if last is None or not _same_topic(last, interest):
            partitions = []
            topics.append(FetchableTopicResponse(interest.topic, partitions, interest.topic_id))
        partitions.append(data)
    return topics


def _same_topic(last: FetchableTopicResponse, interest: Interest) -> bool:
    """Compare by id if there is one: of a deleted topic, a session may know the name for one partition only."""
    return last.topic_id == interest.topic_id if last.topic_id else last.topic == interest.topic


def refuse(request: FetchRequest, error: KafkaError, version: int) -> FetchResponse:
    """Put the error at the top level, with the session id; before v13 also on each partition (core E.5.10)."""
    response = FetchResponse(error_code=error.code, session_id=request.session_id)
    if not features.fetch_uses_topic_ids(version):
        response.responses = [
            FetchableTopicResponse(
                topic.topic,
                [PartitionData(p.partition, error.code, high_watermark=-1, records=b"") for p in topic.partitions],
                topic.topic_id,
            )
            for topic in request.topics
        ]
    return response


API: Api[FetchRequest, FetchResponse] = Api(ApiKey.FETCH, handle, refuse)
