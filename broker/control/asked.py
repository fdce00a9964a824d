"""What a verb gets: the cluster, the names in the path, the query, the body."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from broker.control.problems import no_whole_number, not_found, unprocessable
from broker.node import Node

if TYPE_CHECKING:
    from broker.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Asked:
    """One request to the control plane, its body already parsed: a mapping, empty where none was sent."""

    cluster: "Cluster"
    names: Mapping[str, str]
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)

    def node(self) -> Node:
        """The broker named in the path. Raises Problem 404."""
        text = self.names["broker"]
        node = self.cluster.nodes.get(int(text)) if text.isascii() and text.isdigit() else None
        if node is None:
            raise not_found(f"there is no broker {text}; there are {', '.join(map(str, self.cluster.nodes))}")
        return node

    def integer(self, name: str, default: int | None = None, *, least: int = 0) -> int:
        """A whole number of the body. Raises Problem 422."""
        value = self.body.get(name, default)
        if value is None:
            raise unprocessable(f"the body needs {name!r}, a whole number", name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise unprocessable(no_whole_number(name, value, least), name)
        return value

    def number(self, name: str, default: int, *, least: int = 0) -> int:
        """A whole number of the query. Raises Problem 422."""
        text = self.query.get(name)
        if text is None:
            return default
        try:
            value = int(text)
        except ValueError:
            raise unprocessable(f"{name!r} must be a whole number, not {text!r}", name) from None
        if value < least:
            raise unprocessable(f"{name!r} must be at least {least}, not {value}", name)
        return value

    def flag(self, name: str) -> bool:
        """``true`` or ``false`` of the query; false where it is not there. Raises Problem 422."""
        text = self.query.get(name, "false").lower()
        if text not in ("true", "false"):
            raise unprocessable(f"{name!r} must be true or false, not {text!r}", name)
        return text == "true"

    def only(self, *known: str) -> None:
        """No other fields than these may be in the body. Raises Problem 422."""
        for name in self.body:
            if name not in known:
                allowed = f"known fields: {', '.join(known)}" if known else "there is nothing to say"
                raise unprocessable(f"unknown field {name!r}; {allowed}", name)
