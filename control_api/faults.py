"""Verbs about faults: the requests that a fault matches, how often, and its effect.

``Fault`` is the body of ``POST /v1/faults``. ``FaultOptions`` are the same fields in one flat object: the keyword
arguments of ``faults.add``, and the options of ``understudy ctl faults add``.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Required, TypedDict

from control_api.fields import About
from control_api.verb import Removed, Verb

if TYPE_CHECKING:
    from control_api.fault_actions import Action, Disconnect, Error
else:  # Python's alternatives to JSON, which only type checkers need
    Action = Disconnect = Error = Any


# --- which requests, how often ---------------------------------------------------------------------------------------


class FaultConditions(TypedDict, total=False):
    """Conditions on a request, joined by AND."""

    api: Annotated[str, About("name of the API, such as EndTxn")]
    versions: Annotated[
        tuple[Annotated[int, About(least=0)], Annotated[int, About(least=0)]] | list[int],
        About("first and last version of the request", like="[first, last]", such=[0, 3]),
    ]
    broker: Annotated[int, About("id of the broker that receives the request")]
    listener: Annotated[str, About("name of the listener that the request came through")]
    client_id: Annotated[str, About("client.id of the client")]
    topic: Annotated[str, About("topic that the request names")]
    partition: Annotated[int, About("partition that the request names", least=0)]
    offset: Annotated[
        int,
        About(
            "with topic and partition: a Produce that appends, or a Fetch that starts, at this offset or later", least=0
        ),
    ]
    group: Annotated[str, About("group id")]
    transactional_id: Annotated[str, About("transactional id")]
    request: Annotated[Mapping[str, Any], About("path in the request -> required value", such={"committed": True})]


class FaultLimits(TypedDict, total=False):
    """Limits on how often a fault affects matching requests."""

    skip: Annotated[int, About("number of matching requests to skip first", least=0, most=2**31 - 1, default=0)]
    times: Annotated[
        int | None, About("maximum number of requests to affect; null: all", least=1, most=2**31 - 1, default=1)
    ]
    probability: Annotated[float, About("probability of affecting a matching request", above=0, most=1, default=1.0)]


# --- what is done ----------------------------------------------------------------------------------------------------


class InsteadOfReply(TypedDict, total=False):
    """What happens instead of a response."""

    error: Annotated[
        str | Error,
        About("Kafka error code, by name, to return instead of processing the request", such="NOT_COORDINATOR"),
    ]
    disconnect: Annotated[Literal["close", "reset"] | Disconnect, About("close the connection")]
    drop: Annotated[Literal[True], About("never respond; the connection stays open and silent")]
    delay_ms: Annotated[int, About("delay of the response, by the cluster's clock", least=1)]


class Drip(TypedDict, total=False):
    """A response that is sent in small pieces."""

    size: Annotated[int, About("bytes of each piece", least=1, default=1)]
    # 10 ms: ours, so that each piece arrives in a read of its own.
    every_ms: Annotated[int, About("time between pieces, by the cluster's clock", least=0, default=10)]


class ByteFault(TypedDict, total=False):
    """Faults in the bytes of a response."""

    truncate: Annotated[int, About("number of bytes to send before the connection is closed", least=0)]
    corrupt: Annotated[
        tuple[int, Annotated[int, About(least=1, most=255)]] | list[int],
        About(
            "flip bits of one byte; the offset counts from the size field of the frame, a negative one from the end",
            like="[offset, mask] with a mask from 1 to 255",
        ),
    ]
    correlation_id: Annotated[
        int, About("correlation id of the response", least=-(2**31), most=2**31 - 1, like="an int32")
    ]
    drip: Annotated[Drip, About("send the response in small pieces", such={"size": 1, "every_ms": 10})]
    extra: Annotated[str, About("hexadecimal bytes to send after the response")]


class FaultEffects(InsteadOfReply, total=False):
    """Effect of a fault on a request."""

    where: Annotated[
        Literal["before", "after"],
        About("wait before or after serving the request", default="before", goes_with="delay_ms"),
    ]
    apply_then: Annotated[
        InsteadOfReply | Action | Mapping[str, Any],
        About("process the request, then do this instead of responding", such={"disconnect": "close"}, one=True),
    ]
    throttle_ms: Annotated[int, About("respond with this throttle time (KIP-219)", least=1)]
    alter: Annotated[
        Mapping[str, Any], About("path in the response, such as topics.*.error_code -> new value", least=1)
    ]
    bytes: Annotated[
        ByteFault | Mapping[str, Any], About("corrupt the bytes of the response", such={"truncate": 10}, one=True)
    ]


class FaultRequest(FaultLimits, total=False):
    """The body of ``POST /v1/faults``."""

    match: Annotated[FaultConditions, About("conditions, joined by AND", such={"api": "Produce"})]
    do: Required[Annotated[FaultEffects, About("effect of the fault", such={"error": "NOT_COORDINATOR"}, one=True)]]


class FaultOptions(FaultConditions, FaultLimits, FaultEffects, total=False):
    """A fault: conditions on requests (joined by AND), how often it applies, and its effect."""


class FaultList(TypedDict, total=False):
    """Filter for a list of faults."""

    unmet: Annotated[bool, About("only faults that no request has matched", default=False)]


class ApiQuery(TypedDict, total=False):
    """Filter for a list of APIs."""

    api: Annotated[str, About("name of the API, such as EndTxn; by default all of them")]


class FaultWait(TypedDict, total=False):
    """Wait for a fault's hits."""

    wait_hits: Annotated[int, About("number of hits to wait for", least=0, default=0)]
    # Ten seconds: ours, longer than a client's retries.
    timeout_ms: Annotated[int, About("maximum time to wait, in real time", least=0, default=10_000)]


VERBS = (
    Verb("apis", "GET", "/v1/apis", "apis(...)",
         "the served APIs with their versions, and the conditions and effects of their faults", query=ApiQuery,
         answer="faults.Apis", items="apis", columns=("name", "key", "versions", "conditions", "errors"),
         example={"api": "EndTxn"}),
    Verb("faults add", "POST", "/v1/faults", "faults.add(...)", "add a fault for matching requests",
         body=FaultRequest, answer="faults.FaultState"),
    Verb("faults list", "GET", "/v1/faults", "faults.list()", "all faults", query=FaultList,
         answer="faults.Faults", items="faults",
         columns=("id", "meets", "does", "hits", "remaining")),
    Verb("faults show", "GET", "/v1/faults/{fault}", "faults[id].show()", "one fault; can wait for its hits",
         query=FaultWait, answer="faults.FaultState"),
    Verb("faults remove", "DELETE", "/v1/faults/{fault}", "faults[id].remove()", "remove one fault",
         answer="faults.FaultState"),
    Verb("faults clear", "DELETE", "/v1/faults", "faults.clear()", "remove all faults", answer=Removed),
)  # fmt: skip
