"""The journal: every request with its answer."""

from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

from understudy.control_api.answers.common import TimeMs
from understudy.control_api.fields import About


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One request with its answer. `error` is the first error code in the answer, None without one.

    `outcome` is "answered", "is being served" (`duration_ms` is None then), or the reason why there is no answer.
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
    duration_ms: Annotated[float | None, About("null: it is being served")] = None
    outcome: str = "answered"
    error: str | None = None
    fault: Annotated[str | None, About("ids of the faults that met it, joined by commas")] = None
    request: dict[str, Any] = field(default_factory=dict)
    response: dict[str, Any] | None = None
    client: Annotated[str, About("HOST:PORT")] = ""
    request_bytes: int = 0
    response_bytes: int = 0
    topics: Annotated[tuple[str, ...], About("that request and answer name, at most 10 of them")] = ()
    groups: Annotated[tuple[str, ...], About("as `topics`")] = ()
    transactional_ids: Annotated[tuple[str, ...], About("as `topics`")] = ()
    hints: Annotated[
        tuple[str, ...],
        About("what it nearly found or met: a topic of a similar name, a fault that matches but for one field"),
    ] = ()
    ts_us: Annotated[int, About("when it arrived, in microseconds since 1970, by the machine's clock")] = 0


class JournalEntries(TypedDict):
    """Requests, the oldest first."""

    entries: list[JournalEntry]
    kept: Annotated[int, About("number of requests in the journal")]
    dropped: Annotated[int, About("number of older requests that were dropped")]
    oldest: Annotated[int, About("lowest id in the journal; requests with lower ones are gone")]
    next: Annotated[int, About("requests with lower ids are settled: ask again with `since` this id")]
