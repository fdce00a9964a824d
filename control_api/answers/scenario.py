"""A recorded scenario."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypedDict

from control_api.answers.common import TimeMs
from control_api.fields import About


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A call that changed the cluster, with its arguments under their names in the Python client."""

    verb: str
    arguments: dict[str, Any] = field(default_factory=dict)
    at_ms: TimeMs = -1
    made: Annotated[str, About("id of the fault that it added; empty: none")] = ""
    calls: Annotated[tuple[str, ...], About("the same over HTTP, in Python and in a shell")] = ()


class ScenarioRecord(TypedDict):
    """The steps since the start or the last reset, in order; a scenario file is this document."""

    scenario: Annotated[Literal[1], About("version of the format of scenario files")]
    steps: list[RecordedStep]
    dropped: Annotated[int, About("number of older steps that were dropped")]
