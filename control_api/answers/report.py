"""The report for a failed test."""

from dataclasses import dataclass
from typing import Annotated

from control_api.answers.common import TimeMs
from control_api.answers.faults import FaultState
from control_api.fields import About


@dataclass(frozen=True, slots=True)
class ReportedRequest:
    """One request of the report; the journal has it in full, under the same id."""

    id: int
    at_ms: TimeMs
    text: Annotated[str, About("the request, the names in it, and its result, in one line")]
    api: str = ""
    error: Annotated[str | None, About("first error code in the response")] = None
    fault: Annotated[str | None, About("ids of the faults that applied, separated by commas")] = None
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
    """A report of what happened in the cluster. `text` has all of it; control characters in names are escaped."""

    text: str
    now_ms: Annotated[int, About("the cluster's time; the next report can start here")] = -1
    requests: Annotated[
        tuple[ReportedRequest, ...],
        About("oldest first, without successful ApiVersions, Fetch and Heartbeat"),
    ] = ()
    refusals: tuple[ReportedRefusal, ...] = ()
    unmet_faults: Annotated[tuple[FaultState, ...], About("faults that matched no request")] = ()
    diagrams: Annotated[
        tuple[str, ...], About("sequence diagrams of the most relevant transactional ids, in characters")
    ] = ()
    hints: Annotated[tuple[str, ...], About("what may explain why a test waits or gets no records")] = ()

    def __str__(self) -> str:
        """Return the text."""
        return self.text
