"""Sequence diagrams of clients, coordinators, partition leaders and logs."""

from dataclasses import dataclass
from typing import Annotated, Literal

from control_api.answers.common import FaultIds, TimeMs
from control_api.fields import About

LaneKind = Literal["client", "coordinator", "broker", "log"]
StepKind = Literal["request", "answer", "append", "marker", "state", "fault", "hold", "gap"]
ShapeKind = Literal["line", "box", "text"]


@dataclass(frozen=True, slots=True)
class Lane:
    """One participant, drawn as a vertical line."""

    kind: LaneKind
    title: Annotated[str, About("client id, coordinator, broker or partition")]
    detail: Annotated[str, About("such as the client's software, its connections and epochs")] = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One row of a diagram: a request, its response, or an event.

    `source` and `target` are positions in the diagram's lanes; they are equal for an event at one participant, such as
    a state change. Equal consecutive requests are one step with a `count`.
    """

    kind: StepKind
    at_ms: TimeMs
    source: int
    target: int
    text: str
    count: int = 1
    error: Annotated[str | None, About("first error code in the response, or why there was no response")] = None
    reason: Annotated[str, About("for a refusal: its cause")] = ""
    fault: FaultIds = None
    entry: Annotated[int | None, About("id of the request in the journal")] = None


@dataclass(frozen=True, slots=True)
class Shape:
    """A part of the drawing, in pixels: a line, a box (upper left corner) or a text (baseline)."""

    kind: ShapeKind
    style: Annotated[str, About("such as request, answer, refused, state")]
    x: int
    y: int
    x2: Annotated[int, About("end of a line, or right edge of a box")] = 0
    y2: int = 0
    text: str = ""
    step: Annotated[int, About("position of the step that it belongs to; -1: none")] = -1


@dataclass(frozen=True, slots=True)
class Diagram:
    """A sequence diagram as steps between lanes; the same as text, as Mermaid, and as a drawing.

    Names from clients are unchanged, except that control characters are escaped.
    """

    title: str
    text: Annotated[str, About("the diagram in characters, for terminals and reports")]
    mermaid: Annotated[str, About("the diagram in Mermaid's language")]
    lanes: tuple[Lane, ...] = ()
    steps: tuple[Step, ...] = ()
    shapes: Annotated[tuple[Shape, ...], About("the drawing, which /v1/diagrams.svg renders")] = ()
    width: Annotated[int, About("width of the drawing, in pixels")] = 0
    height: int = 0
    head: Annotated[int, About("height of the lanes' titles at the top of the drawing")] = 0
    left_out: Annotated[int, About("number of older requests that are not shown")] = 0

    def __str__(self) -> str:
        """Return the diagram in characters."""
        return self.text
