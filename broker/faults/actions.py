"""Actions of a fault on a request that it matches."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

from broker.answers import Disconnect, NeverAnswer
from broker.api import AnyHandler
from broker.clock import Clock
from broker.context import RequestContext
from broker.faults.byte_faults import ByteFault
from broker.faults.match import Hit, fetched
from broker.faults.response_errors import lists_items, make, mark, merge
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.items import Wanted, request_level, response_level
from protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from protocol.messages.produce import ProduceRequest
from protocol.paths import put
from protocol.types import Message

_ACKS_NONE = 0


class Effect(Protocol):
    """The fault that an action belongs to, as far as the action knows it."""

    def met(self) -> None:
        """Count a hit: the fault has had its effect."""
        ...

    async def pause(self, clock: Clock, ms: int) -> None:
        """Wait; not longer than the fault is there. Raises Disconnect if it ended by a reset."""
        ...


_ANSWERS_THE_REST_THOUGH_EMPTY = frozenset({ApiKey.METADATA})  # clients want the brokers even if the topics have failed


@dataclass(frozen=True, slots=True)
class Refuse:
    """An error, on the matched items if the API has errors of single items, else on the request."""

    code: ErrorCode

    async def act(self, hit: Hit, ctx: RequestContext, handle: AnyHandler, effect: Effect) -> Message | None:
        """Do nothing for what is matched; the rest of the request goes through."""
        if isinstance(hit.request, FetchRequest) and hit.wanted.kinds:
            # A fetch does not wait for records if a partition has failed (core E.3).
            response = await handle(hit.request.changed(max_wait_ms=0), ctx)
        elif hit.matched is None:
            response = await handle(hit.request, ctx)
        elif hit.rest is not None or ctx.api.key in _ANSWERS_THE_REST_THOUGH_EMPTY:
            response = await handle(_rest(hit, ctx), ctx)
        else:
            response = None
        effect.met()
        return self.answer(hit, ctx, response)

    def answer(self, hit: Hit, ctx: RequestContext, response: Message | None) -> Message | None:
        """The error, put into a response to the rest or to everything, if there is one."""
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
    request: FetchRequest, wanted: Wanted, ctx: RequestContext, response: FetchResponse, code: ErrorCode
) -> FetchResponse:
    """Put errors on the matched partitions of a fetch, whether the response lists them or not."""
    places = fetched(request, ctx, wanted)
    session = ctx.node.sessions.get(response.session_id)
    failed = []
    for (name, topic_id), group in groupby(places, key=lambda place: place[:2]):
        indexes = [index for _, _, index in group]
        partitions = [PartitionData(index, code, high_watermark=-1, records=b"") for index in indexes]
        failed.append(FetchableTopicResponse(name, partitions, topic_id))
        for index in indexes:
            if session is not None and (known := session.interests.get((topic_id or name, index))):
                known.sent_high_watermark = -1  # the next response has what this one would have had
    return merge(response_level(ApiKey.FETCH), response, FetchResponse(responses=failed))


@dataclass(frozen=True, slots=True)
class HangUp:
    """The connection ends, orderly or with a reset."""

    reset: bool

    async def act(self, _hit: Hit, _ctx: RequestContext, _handle: AnyHandler, effect: Effect) -> Message | None:
        """Nothing is done."""
        effect.met()
        raise Disconnect("a fault hangs up", reset=self.reset, on_purpose=True)


@dataclass(frozen=True, slots=True)
class Drop:
    """No answer ever. As a broker answers in order, the connection stays open and silent from then on."""

    async def act(self, hit: Hit, _ctx: RequestContext, _handle: AnyHandler, effect: Effect) -> Message | None:
        """Nothing is done."""
        effect.met()
        if isinstance(hit.request, ProduceRequest) and hit.request.acks == _ACKS_NONE:
            return None  # the client expects no response
        raise NeverAnswer


@dataclass(frozen=True, slots=True)
class Delay:
    """A wait on the cluster's clock, before or after the request is handled."""

    delay_ms: int
    before: bool = True

    async def act(self, hit: Hit, ctx: RequestContext, handle: AnyHandler, effect: Effect) -> Message | None:
        """Everything is done, later."""
        if self.before:
            effect.met()
            await effect.pause(ctx.cluster.clock, self.delay_ms)
            return await handle(hit.request, ctx)
        response = await handle(hit.request, ctx)
        effect.met()
        await effect.pause(ctx.cluster.clock, self.delay_ms)
        return response


@dataclass(frozen=True, slots=True)
class ApplyThen:
    """The request is done, and then something else happens than its reply."""

    then: Refuse | HangUp | Drop | Delay

    async def act(self, hit: Hit, ctx: RequestContext, handle: AnyHandler, effect: Effect) -> Message | None:
        """Everything is done."""
        response = await handle(hit.request, ctx)
        effect.met()
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
    """The answer reports an exceeded quota, and the broker reads nothing from the client so long (KIP-219)."""

    throttle_ms: int

    async def act(self, hit: Hit, ctx: RequestContext, handle: AnyHandler, effect: Effect) -> Message | None:
        """Everything is done."""
        response = await handle(hit.request, ctx)
        effect.met()
        if response is None or "throttle_time_ms" not in response.__slots__:
            return response
        ctx.connection.throttled_until_ms = max(ctx.connection.throttled_until_ms, ctx.now_ms + self.throttle_ms)
        return response.changed(throttle_time_ms=self.throttle_ms)


@dataclass(frozen=True, slots=True)
class Alter:
    """Fields of the answer have other values; path -> value."""

    values: Mapping[str, Any]

    async def act(self, hit: Hit, ctx: RequestContext, handle: AnyHandler, effect: Effect) -> Message | None:
        """Everything is done."""
        response = await handle(hit.request, ctx)
        effect.met()
        for path, value in self.values.items():
            if response is not None:
                response = put(response, path, value, hit.wanted)
        return response


@dataclass(frozen=True, slots=True)
class Spoil:
    """The answer's bytes are spoiled on their way."""

    fault: ByteFault

    async def act(self, hit: Hit, ctx: RequestContext, handle: AnyHandler, effect: Effect) -> Message | None:
        """Everything is done."""
        response = await handle(hit.request, ctx)
        effect.met()
        ctx.notes.byte_fault = self.fault
        return response


Action = Refuse | ApplyThen | Delay | Drop | HangUp | Throttle | Alter | Spoil


def refuses(action: Action) -> bool:
    """Whether an error in the answer is the fault's own; the error of a request that is only late is the broker's."""
    match action:
        case Refuse() | ApplyThen(Refuse()):
            return True
        case Alter(values):
            return any(path.endswith("error_code") for path in values)
        case _:
            return False
