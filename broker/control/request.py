"""What a verb gets besides its body and its query: the cluster, and the names in the path."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.control.activity import Activity
from broker.control.problems import conflict, not_found
from broker.control.recorder import Recorder
from broker.control.watched import Watched
from broker.node import Node

if TYPE_CHECKING:
    from broker.cluster.cluster import Cluster

_MOST_DIGITS = 19


def number_in(text: str) -> int | None:
    """A number in a path: decimal digits, no more than an int64 has; None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


@dataclass(frozen=True, slots=True)
class Asked:
    """One request to the control plane. ``document`` is its body as it was sent: empty where none was."""

    source: Watched
    names: Mapping[str, str]
    document: Mapping[str, object] = field(default_factory=dict)
    given_up: Callable[[], Awaitable[bool]] | None = None
    """Whether the caller has closed the connection."""
    activity: Activity = field(default_factory=Activity)
    """The counts of the latest requests, which the control plane keeps from one request to the next."""
    recorder: Recorder = field(default_factory=Recorder)
    """What has steered the cluster since its start or its last reset."""

    @property
    def cluster(self) -> "Cluster":
        """Understudy's own cluster.

        Raises:
            Problem: 409: this is a proxy, which has none.
        """
        own = self.source.own
        if own is None:
            raise conflict(
                f"this is {self.source.description}: it observes requests and injects faults, but the brokers, their "
                "clock and their data are not its own; only a server of `understudy serve` can do that"
            )
        return own

    def section(self, name: str) -> dict[str, object]:
        """An object in the body as it was sent; empty where there is none."""
        found = self.document.get(name)
        return dict(found) if isinstance(found, Mapping) else {}

    def node(self) -> Node:
        """The broker named in the path. Raises Problem 404."""
        text = self.names["broker"]
        number = number_in(text)
        node = None if number is None else self.cluster.nodes.get(number)
        if node is None:
            raise not_found(f"there is no broker {text}; there are {', '.join(map(str, self.cluster.nodes))}")
        return node
