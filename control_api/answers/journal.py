"""The journal: every request with its response."""

from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

from control_api.answers.common import TimeMs
from control_api.fields import About


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One request with its response. `error` is the first error code in the response, None without one.

    `outcome` is "answered", "is being served" (then `duration_ms` is None), or the reason why there is no response.
    """

    id: int
    at_ms: TimeMs
    api: str
    version: int = 0
    broker: int = -1
    listener: str = ""
    connection: int = -1
    correlation_id: int = -1
    client_id: str | None = None
    software: str | None = None
    duration_ms: Annotated[float | None, About("null: the request is being served")] = None
    outcome: str = "answered"
    error: str | None = None
    fault: Annotated[str | None, About("ids of the faults that applied, separated by commas")] = None
    request: dict[str, Any] = field(default_factory=dict)
    response: dict[str, Any] | None = None
    client: Annotated[str, About("HOST:PORT")] = ""
    request_bytes: int = 0
    response_bytes: int = 0
    topics: Annotated[tuple[str, ...], About("topics that request and response name, at most 10")] = ()
    groups: Annotated[tuple[str, ...], About("groups, like `topics`")] = ()
    transactional_ids: Annotated[tuple[str, ...], About("transactional ids, like `topics`")] = ()
    hints: Annotated[
        tuple[str, ...],
        About("near misses: a topic with a similar name, a fault of which all conditions but one hold"),
    ] = ()
    ts_us: Annotated[int, About("arrival in microseconds since 1970, by the machine's clock")] = 0


class JournalEntries(TypedDict):
    """Requests, oldest first."""

    entries: list[JournalEntry]
    kept: Annotated[int, About("number of requests in the journal")]
    dropped: Annotated[int, About("number of older requests that were dropped")]
    oldest: Annotated[int, About("lowest id in the journal; earlier requests were dropped")]
    next: Annotated[int, About("all requests with lower ids have finished: continue with `since` this id")]
