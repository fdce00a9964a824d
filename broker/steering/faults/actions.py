"""Actions that a fault performs on a matching request: errors, disconnects, delays, altered responses."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any, Protocol

from broker.request.answers import Disconnect, NeverAnswer
from broker.request.api import AnyHandler
from broker.request.context import RequestContext
from broker.steering.faults.byte_faults import ByteFault
from broker.steering.faults.match import Hit, fetched_partitions
from broker.steering.faults.response_errors import lists_items, make, mark, merge
from broker.time.clock import Clock
from protocol.apis import ApiKey
from protocol.deferred import dataclass
from protocol.errors import ErrorCode, KafkaError
from protocol.items import Selection, request_level, response_level
from protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from protocol.messages.produce import ProduceRequest
from protocol.paths import put
from protocol.types import Message

_ACKS_NONE = 0


class Effect(Protocol):
    """The fault of an action: what the action needs of it."""

    def count_hit(self) -> None:
        """Count a hit: the fault took effect."""
        ...

    async def pause(self, clock: Clock, ms: int) -> None:
        """Wait until the time has passed or the fault is removed. Raises Disconnect if the cluster was reset."""
        ...


_ANSWERS_THE_REST_THOUGH_EMPTY = frozenset({ApiKey.METADATA})  # clients need the brokers even if the topics fail


@dataclass(frozen=True, slots=True)
class Refuse:
    """Responds with an error: for the matched items if the API has errors per item, else for the whole request."""

    code: ErrorCode

    async def act(self, hit: Hit, ctx: RequestContext, handle: AnyHandler, effect: Effect) -> Message | None:
        """Handle the request without the matched items, and add the error for those."""
        if isinstance(hit.request, FetchRequest) and hit.wanted.kinds:
            # A fetch does not wait for records if a partition has failed (core E.3).
            response = await handle(hit.request.changed(max_wait_ms=0), ctx)
        elif hit.matched is None:
            response = await handle(hit.request, ctx)
        elif hit.rest is not None or ctx.api.key in _ANSWERS_THE_REST_THOUGH_EMPTY:
            response = await handle(_rest(hit, ctx), ctx)
        else:
            response = None
        effect.count_hit()
        return self.answer(hit, ctx, response)

    def answer(self, hit: Hit, ctx: RequestContext, response: Message | None) -> Message | None:
        """Build the error response, merged with the response to the rest or to the whole request, if there is one."""
        answers = response_level(ctx.api.key)
        if isinstance(hit.request, FetchRequest) and hit.wanted.kinds:
            if not isinstance(response, FetchResponse):
                return response
            return _fail_fetch(hit.request, hit.wanted, ctx, response, self.code)
        if hit.matched is None:
            return None if response is None else mark(answers, response, hit.wanted, self.code, hit.wanted.kinds)[0]
        refused = ctx.api.refuse(hit.matched, KafkaError(self.code), ctx.version)
        asks = request_level(ctx.api.key)
        if not hit.wanted.kinds - set(asks.own) or refused is None:
            return refused
        if not lists_items(answers, refused, hit.wanted):
            refused = make(asks, hit.matched, answers, self.code)
        return merge(answers, answers.cls() if response is None else response, refused)


def _rest(hit: Hit, ctx: RequestContext) -> Message:
    if hit.rest is not None:
        return hit.rest
    (child, *_) = request_level(ctx.api.key).children
    return hit.request.changed(**{child.name: ()})


def _fail_fetch(
    request: FetchRequest, wanted: Selection, ctx: RequestContext, response: FetchResponse, code: ErrorCode
) -> FetchResponse:
    """Set the error on the matched partitions of a Fetch, whether the response lists them or not."""
    places = fetched_partitions(request, ctx, wanted)
    session = ctx.node.sessions.get(response.session_id)
    failed = []
    for (name, topic_id), group in groupby(places, key=lambda place: place[:2]):
        indexes = [index for _, _, index in group]
        partitions = [PartitionData(index, code, high_watermark=-1, records=b"") for index in indexes]
        failed.append(FetchableTopicResponse(name, partitions, topic_id))
        for index in indexes:
            if session is not None and (known := session.interests.get((topic_id or name, index))):
                known.sent_high_watermark = -1  # so the next response includes what this one left out
    return merge(response_level(ApiKey.FETCH), response, FetchResponse(responses=failed))


@dataclass(frozen=True, slots=True)
class HangUp:
    """Closes the connection without a response, with FIN or with RST (``reset``)."""

    reset: bool

    async def act(self, _hit: Hit, _ctx: RequestContext, _handle: AnyHandler, effect: Effect) -> Message | None:
        """Disconnect without handling the request."""
        effect.count_hit()
        raise Disconnect("a fault hangs up", reset=self.reset, on_purpose=True)


@dataclass(frozen=True, slots=True)
class Drop:
    """Never responds. Since a broker responds in order, the connection stays open but gets no response from then on."""

    async def act(self, hit: Hit, _ctx: RequestContext, _handle: AnyHandler, effect: Effect) -> Message | None:
        """Drop the request without handling it."""
        effect.count_hit()
        if isinstance(hit.request, ProduceRequest) and hit.request.acks == _ACKS_NONE:
            return None  # the client expects no response
        raise NeverAnswer


@dataclass(frozen=True, slots=True)
class Delay:
    """Delays the response on the cluster's clock, before or after the request is handled."""

    delay_ms: int
    before: bool = True

    async def act(self, hit: Hit, ctx: RequestContext, handle: AnyHandler, effect: Effect) -> Message | None:
        """Handle the request, with the delay before or after."""
        if self.before:
            effect.count_hit()
            await effect.pause(ctx.cluster.clock, self.delay_ms)
            return await handle(hit.request, ctx)
        response = await handle(hit.request, ctx)
        effect.count_hit()
        await effect.pause(ctx.cluster.clock, self.delay_ms)
        return response


@dataclass(frozen=True, slots=True)
class ApplyThen:
    """Handles the request, then replaces its response by an error, a disconnect, silence or a delay."""

    then: Refuse | HangUp | Drop | Delay

    async def act(self, hit: Hit, ctx: RequestContext, handle: AnyHandler, effect: Effect) -> Message | None:
        """Handle the request, then apply the other action."""
        response = await handle(hit.request, ctx)
        effect.count_hit()
        match self.then:
            case Refuse():
                return self.then.answer(hit, ctx, response)
            case HangUp(reset):
                raise Disconnect("a fault hangs up instead of the reply", reset=reset, on_purpose=True)
            case Drop():
                if response is None:
                    return None
                raise NeverAnswer
            case Delay(delay_ms):
                await effect.pause(ctx.cluster.clock, delay_ms)
                return response


@dataclass(frozen=True, slots=True)
class Throttle:
    """Responds as if a quota were exceeded, and mutes the connection for the throttle time (KIP-219)."""

    throttle_ms: int

    async def act(self, hit: Hit, ctx: RequestContext, handle: AnyHandler, effect: Effect) -> Message | None:
        """Handle the request, and set the throttle time in its response."""
        response = await handle(hit.request, ctx)
        effect.count_hit()
        if response is None or "throttle_time_ms" not in response.FIELDS:
            return response
        ctx.connection.throttled_until_ms = max(ctx.connection.throttled_until_ms, ctx.now_ms + self.throttle_ms)
        return response.changed(throttle_time_ms=self.throttle_ms)


@dataclass(frozen=True, slots=True)
class Alter:
    """Sets fields of the response. ``values``: path -> value."""

    values: Mapping[str, Any]

    async def act(self, hit: Hit, ctx: RequestContext, handle: AnyHandler, effect: Effect) -> Message | None:
        """Handle the request, and set the fields in its response."""
        response = await handle(hit.request, ctx)
        effect.count_hit()
        for path, value in self.values.items():
            if response is not None:
                response = put(response, path, value, hit.wanted)
        return response


@dataclass(frozen=True, slots=True)
class Spoil:
    """Corrupts the bytes of the response."""

    fault: ByteFault

    async def act(self, hit: Hit, ctx: RequestContext, handle: AnyHandler, effect: Effect) -> Message | None:
        """Handle the request, and have its response corrupted when it is sent."""
        response = await handle(hit.request, ctx)
        effect.count_hit()
        ctx.notes.byte_fault = self.fault
        return response


Action = Refuse | ApplyThen | Delay | Drop | HangUp | Throttle | Alter | Spoil


def refuses(action: Action) -> bool:
    """Return whether an error in the response comes from the action; after a mere delay it comes from the broker."""
    match action:
        case Refuse() | ApplyThen(Refuse()):
            return True
        case Alter(values):
            return any(path.endswith("error_code") for path in values)
        case _:
            return False
