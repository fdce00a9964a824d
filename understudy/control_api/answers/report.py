"""The report of a failed test."""

from dataclasses import dataclass
from typing import Annotated

from understudy.control_api.answers.common import TimeMs
from understudy.control_api.answers.faults import FaultState
from understudy.control_api.fields import About


@dataclass(frozen=True, slots=True)
class ReportedRequest:
    """One request of the report; the journal has the whole of it, under the same id."""

    id: int
    at_ms: TimeMs
    text: Annotated[str, About("the request, what it names, and its result, in one line")]
    api: str = ""
    error: Annotated[str | None, About("first error code in the answer")] = None
    fault: Annotated[str | None, About("ids of the faults that met it, joined by commas")] = None
    names: Annotated[tuple[str, ...], About("such as orders-0, group g, transactional id x")] = ()


@dataclass(frozen=True, slots=True)
class ReportedRefusal:
    """The last refusal of a transactional id, a producer or a group, and its reason."""

    subject: Annotated[str, About("such as transactional id x, producer 4000, group g")]
    error: str
    why: str
    at_ms: TimeMs = -1


@dataclass(frozen=True, slots=True)
class Report:
    """What happened in the cluster, for people. `text` has all of it; control characters in names are escaped."""

    text: str
    now_ms: Annotated[int, About("the cluster's time; the next report can begin here")] = -1
    requests: Annotated[
        tuple[ReportedRequest, ...],
        About("the oldest first; without ApiVersions, Fetch and Heartbeat that succeeded"),
    ] = ()
    refusals: tuple[ReportedRefusal, ...] = ()
    unmet_faults: Annotated[tuple[FaultState, ...], About("faults that no request met")] = ()
    diagrams: Annotated[
        tuple[str, ...], About("what happened to the transactional ids that matter most, drawn in characters")
    ] = ()
    hints: Annotated[tuple[str, ...], About("what may explain a test that waits or finds nothing")] = ()

    def __str__(self) -> str:
        """The text."""
        return self.text
