"""The summary of a cluster: the data of the console's start page."""

from dataclasses import dataclass
from typing import Annotated

from control_api.answers.common import TimeMs
from control_api.answers.faults import FaultState
from control_api.fields import About

Series = Annotated[tuple[int, ...], About("requests in each step of the window, oldest first")]


@dataclass(frozen=True, slots=True)
class Activity:
    """The requests of one API, client or topic within the window."""

    name: str
    requests: int = 0
    errors: Annotated[int, About("requests with an error code in the response, or without a response")] = 0
    series: Series = ()


@dataclass(frozen=True, slots=True)
class CountedError:
    """An error code that an API returned within the window; a response with several codes counts for each."""

    api: str
    error: Annotated[str, About("name of the error code, or why there was no response")]
    outcome: Annotated[
        bool, About("whether `error` is the reason why there was no response, and not an error code")
    ] = False
    count: int = 0
    entry: Annotated[int, About("id of the latest such request in the journal")] = -1
    client_id: Annotated[str, About("client of the latest such request")] = ""


@dataclass(frozen=True, slots=True)
class ClientActivity:
    """The connections of one client id and software that are open or were used within the window."""

    client_id: str
    software: Annotated[str, About("name and version; empty: unknown")] = ""
    host: str = ""
    connections: Annotated[tuple[int, ...], About("numbers of the connections, as in the journal")] = ()
    open: Annotated[int, About("number of open connections")] = 0
    apis: Annotated[tuple[str, ...], About("APIs with the versions used, such as Produce v12")] = ()
    requests: int = 0
    errors: int = 0
    throttled_ms: Annotated[int, About("remaining time for which the client is throttled")] = 0
    series: Series = ()


@dataclass(frozen=True, slots=True)
class OverviewGroup:
    """The short form of a group."""

    group_id: str
    type: str = ""
    state: str = ""
    members: int = 0
    lag: Annotated[int | None, About("records to read, over all partitions; null: unknown", wide=True)] = None


@dataclass(frozen=True, slots=True)
class OverviewTransaction:
    """A transaction that is open, ending, or held."""

    transactional_id: str
    state: str = ""
    deadline_ms: Annotated[int | None, About("when its coordinator aborts it; null: it is ending")] = None
    partitions: int = 0
    held_at: Annotated[str | None, About("step at which its commit or abort is held")] = None
    stopped: Annotated[bool, About("whether it has reached the step")] = False


@dataclass(frozen=True, slots=True)
class LatestRefusal:
    """The last refusal of a transactional id, a producer or a group."""

    kind: Annotated[str, About("transactions, producers or groups")]
    name: str
    error: str
    why: str
    at_ms: TimeMs = -1


@dataclass(frozen=True, slots=True)
class Overview:
    """The summary of a cluster. Requests are counted in real time, over a window that ends now."""

    now_ms: Annotated[int, About("the cluster's time")]
    window_ms: int = 0
    step_ms: int = 0
    requests: int = 0
    errors: int = 0
    series: Series = ()
    error_series: Annotated[tuple[int, ...], About("like `series`, for requests with an error")] = ()
    skipped: Annotated[int, About("requests of the window, or shortly before it, that were too many to count")] = 0
    first_entry: Annotated[int | None, About("journal id of the first counted request, for a search with `since`")] = (
        None
    )
    apis: tuple[Activity, ...] = ()
    topics: tuple[Activity, ...] = ()
    clients: tuple[ClientActivity, ...] = ()
    counted_errors: tuple[CountedError, ...] = ()
    groups: tuple[OverviewGroup, ...] = ()
    transactions: tuple[OverviewTransaction, ...] = ()
    refusals: tuple[LatestRefusal, ...] = ()
    faults: tuple[FaultState, ...] = ()
    oddities: Annotated[
        tuple[str, ...],
        About("other disturbances, such as a frozen clock or a broker that is down"),
    ] = ()
