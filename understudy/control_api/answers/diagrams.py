"""Sequence diagrams of what happened between clients, coordinators, partition leaders and logs."""

from dataclasses import dataclass
from typing import Annotated, Literal

from understudy.control_api.answers.common import FaultIds, TimeMs
from understudy.control_api.fields import About

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
    """One row of a diagram: a request, its answer, or what happened in between.

    `source` and `target` are positions in the diagram's lanes; the same one for what happens at a participant, such
    as a change of state. Equal neighbouring requests are one step: `count` of them.
    """

    kind: StepKind
    at_ms: TimeMs
    source: int
    target: int
    text: str
    count: int = 1
    error: Annotated[str | None, About("first error code in the answer, or why there was none")] = None
    reason: Annotated[str, About("of a refusal: what caused it")] = ""
    fault: FaultIds = None
    entry: Annotated[int | None, About("id of the request in the journal")] = None


@dataclass(frozen=True, slots=True)
class Shape:
    """A part of the drawing, in pixels: a line, or a box or text at its left upper corner or baseline."""

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
    """What happened, as steps between lanes; the same as text, as Mermaid, and as a drawing.

    Names of clients are in it as they were sent, except for control characters, which are escaped.
    """

    title: str
    text: Annotated[str, About("the diagram in characters, for terminals and reports")]
    mermaid: Annotated[str, About("the diagram in Mermaid's language")]
    lanes: tuple[Lane, ...] = ()
    steps: tuple[Step, ...] = ()
    shapes: Annotated[tuple[Shape, ...], About("the drawing; /v1/diagrams.svg is made of it")] = ()
    width: Annotated[int, About("of the drawing, in pixels")] = 0
    height: int = 0
    head: Annotated[int, About("height of the lanes' titles at the top of the drawing")] = 0
    left_out: Annotated[int, About("number of older requests that are not shown")] = 0

    def __str__(self) -> str:
        """The diagram in characters."""
        return self.text
