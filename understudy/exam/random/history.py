"""What the application sent, read and was promised: the events of `understudy audit --history`, kept in memory."""

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass
class History:
    """The events of a play, in order. `problems` are findings that are no matter of records: check and sentence."""

    events: list[dict[str, Any]] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)
    keys: dict[str, str | None] = field(default_factory=dict)
    """Value of a record that was sent -> its key."""

    def check_key(self, reader: str, value: str, key: str | None) -> None:
        """Note a record that was read with another key than it was sent with."""
        if key != self.keys.get(value, key):
            text = f"{value!r} was sent with the key {self.keys[value]!r}, and {reader} has it with {key!r}"
            self.problems.append(("history-key", text))

    def write(self, event: str, client: str, **fields: Any) -> None:
        """Add an event; fields that are None are left out."""
        named = {name: value for name, value in fields.items() if value is not None}
        self.events.append({"event": event, "client": client, **named})

    def of(self, event: str) -> list[dict[str, Any]]:
        """Return the events of one kind."""
        return [each for each in self.events if each["event"] == event]

    def lines(self) -> str:
        """Return the JSON lines."""
        return "".join(json.dumps(each) + "\n" for each in self.events)
