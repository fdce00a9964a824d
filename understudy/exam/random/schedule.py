"""A schedule: the clients of an application, and the steps and faults in order. As JSON it can be played again."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROLES: Final = {
    "plain": "producer without enable.idempotence",
    "idempotent": "producer with enable.idempotence",
    "transactional": "producer with a transactional id",
    "reader": "consumer of assigned partitions",
    "member": "member of a group",
    "sharer": "member of a share group",
    "admin": "creates topics",
    "copier": "copies from one topic to another in transactions, as a member of a group",
}
FAULT: Final = "fault"
"""The kind of a step that changes the cluster; all others are steps of the application."""


class ScheduleError(Exception):
    """A file that is no schedule; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `at_ms` is its number: shrinking orders steps by it."""

    number: int
    kind: str
    fields: Mapping[str, Any]

    @property
    def at_ms(self) -> int:
        """Return its place in the order."""
        return self.number

    def __str__(self) -> str:
        """Return a line for people."""
        if self.kind == FAULT:
            return f"    fault: {self.fields['name']}: {verbs_of(self.fields)}, for {self.fields['lasts_ms']} ms"
        more = {name: value for name, value in self.fields.items() if name != "client" and value is not None}
        shown = " ".join(f"{name}={json.dumps(value)}" for name, value in more.items())
        return f"{self.fields.get('client', '')} {self.kind} {shown}".strip()


def verbs_of(fields: Mapping[str, Any]) -> str:
    """Return the verbs of a fault, with their arguments."""
    shown = []
    for each in fields["steps"]:
        arguments = " ".join(f"{name}={json.dumps(value)}" for name, value in each["arguments"].items())
        shown.append(f"{each['verb']} {arguments}".strip())
    return "; ".join(shown)


@dataclass(frozen=True, slots=True)
class Schedule:
    """What is played. `clients`: name -> `role` and its options (topic, group, protocol, isolation)."""

    seed: int
    clients: Mapping[str, Mapping[str, Any]]
    steps: Sequence[Step]

    def only(self, numbers: Collection[int]) -> "Schedule":
        """Return the schedule with some of its steps."""
        return Schedule(self.seed, self.clients, [each for each in self.steps if each.number in numbers])

    def used(self) -> dict[str, Mapping[str, Any]]:
        """Return the clients that have a step."""
        named = {each.fields.get("client") for each in self.steps}
        return {name: about for name, about in self.clients.items() if name in named}

    def lines(self) -> list[str]:
        """Return lines for people: the clients, then the steps."""
        clients = [
            f"{name}: {ROLES[about['role']]}" + "".join(f", {k} {v}" for k, v in about.items() if k != "role")
            for name, about in self.used().items()
        ]
        return [*clients, *map(str, self.steps)]

    def as_json(self) -> dict[str, Any]:
        """Return the part of a file that `parse` reads."""
        play = [{"step": each.kind, **each.fields} for each in self.steps]
        return {"seed": self.seed, "clients": self.used(), "play": play}


def parse(document: Any, about: str) -> Schedule:
    """Return the schedule in a document. Raises ScheduleError."""
    exam = document.get("exam") if isinstance(document, Mapping) else None
    if not isinstance(exam, Mapping) or not isinstance(exam.get("play"), list):
        raise ScheduleError(f"{about} has no schedule; understudy exam --random --save FOLDER writes one")
    try:
        steps = [
            Step(number, each["step"], {name: value for name, value in each.items() if name != "step"})
            for number, each in enumerate(exam["play"])
        ]
        clients = {str(name): dict(client) for name, client in exam["clients"].items()}
        for client in clients.values():
            ROLES[client["role"]]
        for step in steps:
            if step.kind == FAULT:
                verbs_of(step.fields)
            elif "client" in step.fields:
                clients[step.fields["client"]]
        return Schedule(int(exam["seed"]), clients, steps)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ScheduleError(f"{about} is no schedule ({error!r}); was it edited?") from None


def read(path: str) -> Schedule:
    """Return the schedule in a file. Raises ScheduleError."""
    try:
        return parse(json.loads(Path(path).read_text(encoding="utf-8")), path)
    except OSError as error:
        raise ScheduleError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise ScheduleError(f"{path} is not JSON; understudy exam --random --save FOLDER writes schedules") from None
