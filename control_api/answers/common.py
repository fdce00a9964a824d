"""Types that several answers share."""

from dataclasses import dataclass
from typing import Annotated

from control_api.fields import About

TimeMs = Annotated[int, About("the cluster's time, in milliseconds since 1970")]
Rule = Annotated[str, About("rule that decided: an id of the specification, or `steering` for the control plane")]
Citation = Annotated[str, About("source of the rule: a KIP or a Kafka class, and a link to the specification")]
Forgotten = Annotated[int, About("number of older events that were dropped; -1: unknown, but not zero", detail=True)]
Count = Annotated[int, About("number of events folded into this one: old successful events are merged")]
FaultIds = Annotated[str | None, About("ids of the faults that caused the error, separated by commas")]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Explanation of the last refusal; `error` is None if no refusal is in the log.

    `also` has what else is known, such as members that are gone, and what the members of a group wait for now.
    `forgotten` older events were dropped, perhaps refusals among them; -1: their number is unknown.
    """

    why: str
    error: str | None = None
    at_ms: TimeMs | None = None
    rule: Rule = ""
    citation: Citation = ""
    forgotten: Forgotten = 0
    also: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the explanation."""
        return "\n".join((self.why, *self.also))
