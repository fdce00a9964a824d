"""What happens in a cluster, at one glance: the console's first page."""

from dataclasses import dataclass
from typing import Annotated

from understudy.control_api.answers.common import TimeMs
from understudy.control_api.answers.faults import FaultState
from understudy.control_api.fields import About

Series = Annotated[tuple[int, ...], About("requests in each step of the window, the oldest first")]


@dataclass(frozen=True, slots=True)
class Activity:
    """The requests of one API, client or topic within the window."""

    name: str
    requests: int = 0
    errors: Annotated[int, About("requests whose answer has an error code, or that got no answer")] = 0
    series: Series = ()


@dataclass(frozen=True, slots=True)
class CountedError:
    """An error code that an API answered within the window; an answer with several codes counts for each of them."""

    api: str
    error: Annotated[str, About("name of the error code, or why there was no answer")]
    outcome: Annotated[bool, About("whether `error` is the reason why there was no answer, and no code")] = False
    count: int = 0
    entry: Annotated[int, About("id of the latest such request in the journal")] = -1
    client_id: Annotated[str, About("client of the latest such request")] = ""


@dataclass(frozen=True, slots=True)
class ClientActivity:
    """The connections of one client id and software, open ones and those that were used within the window."""

    client_id: str
    software: Annotated[str, About("name and version; empty: unknown")] = ""
    host: str = ""
    connections: Annotated[tuple[int, ...], About("numbers of the connections, as in the journal")] = ()
    open: Annotated[int, About("how many of them are open")] = 0
    apis: Annotated[tuple[str, ...], About("APIs with the versions used, such as Produce v12")] = ()
    requests: int = 0
    errors: int = 0
    throttled_ms: Annotated[int, About("for how long the client is throttled from now on")] = 0
    series: Series = ()


@dataclass(frozen=True, slots=True)
class OverviewGroup:
    """A group in short."""

    group_id: str
    type: str = ""
    state: str = ""
    members: int = 0
    lag: Annotated[int | None, About("records to read, over all partitions; null: unknown", wide=True)] = None


@dataclass(frozen=True, slots=True)
class OverviewTransaction:
    """A transaction that is open, is being ended, or is held."""

    transactional_id: str
    state: str = ""
    deadline_ms: Annotated[int | None, About("when its coordinator aborts it; null: it is being ended")] = None
    partitions: int = 0
    held_at: Annotated[str | None, About("step at which its end is held")] = None
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
    """What happens in the cluster. Requests are counted by the machine's clock, over a window that ends now."""

    now_ms: Annotated[int, About("the cluster's time")]
    window_ms: int = 0
    step_ms: int = 0
    requests: int = 0
    errors: int = 0
    series: Series = ()
    error_series: Annotated[tuple[int, ...], About("as `series`, of requests with an error")] = ()
    skipped: Annotated[int, About("requests of the window, or shortly before, that were too many to be counted")] = 0
    first_entry: Annotated[
        int | None, About("id of the first counted request in the journal: with `since`, a search finds those counted")
    ] = None
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
        About("what else was changed on purpose, such as a frozen clock or a broker that is down"),
    ] = ()
