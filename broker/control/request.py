"""A request to the control plane as commands get it: the cluster, the names in the path, and the raw body."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from broker.control.activity import Activity
from broker.control.hosting import Clusters
from broker.control.problems import conflict, not_found
from broker.control.recorder import Recorder
from broker.control.watched import Watched
from broker.request.node import Node
from protocol.deferred import dataclass

if TYPE_CHECKING:
    from broker.cluster.cluster import Cluster

_MOST_DIGITS = 19  # of 2^63 - 1


def number_in(text: str) -> int | None:
    """Parse a number in a path: decimal digits, at most as many as an int64 has; None for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """A request to the control plane. ``document`` is its body as sent; empty without a body."""

    source: Watched
    names: Mapping[str, str]
    document: Mapping[str, object] = field(default_factory=dict)
    given_up: Callable[[], Awaitable[bool]] | None = None
    """Returns whether the caller has closed the connection."""
    activity: Activity = field(default_factory=Activity)
    """The counts of the latest requests, kept between calls."""
    recorder: Recorder = field(default_factory=Recorder)
    """The calls that changed the cluster since its start or last reset."""
    clusters: Clusters | None = None
    """All clusters of the process; ``None`` outside of a server."""
    base_url: str = ""
    """The URL of the control plane as the caller wrote it, without a path."""

    @property
    def cluster(self) -> "Cluster":
        """Return the cluster of this process.

        Raises:
            Problem: 409, this process is a proxy, which has none.
        """
        cluster = self.source.own
        if cluster is None:
            raise conflict(
                f"this is {self.source.description}: it observes requests and injects faults, but does not control "
                "the brokers, their clock or their data; that needs a server of `understudy serve`"
            )
        return cluster

    def section(self, name: str) -> dict[str, object]:
        """Return an object in the body as it was sent; empty if it is missing."""
        section = self.document.get(name)
        return dict(section) if isinstance(section, Mapping) else {}

    def node(self) -> Node:
        """Return the broker named in the path. Raises Problem 404."""
        text = self.names["broker"]
        number = number_in(text)
        node = None if number is None else self.cluster.nodes.get(number)
        if node is None:
            raise not_found(f"there is no broker {text}; there are {', '.join(map(str, self.cluster.nodes))}")
        return node

    def controllers(self) -> dict[int, Node]:
        """Return the controllers that are nodes of their own. Raises Problem 409 if there are none."""
        if not self.cluster.controllers:
            raise conflict("the first broker is the controller; start with --controllers 3 for a quorum of three")
        return self.cluster.controllers

    def controller(self) -> Node:
        """Return the controller named in the path. Raises Problem 404, or 409 if there are none of their own."""
        text, controllers = self.names["controller"], self.controllers()
        number = number_in(text)
        node = None if number is None else controllers.get(number)
        if node is None:
            raise not_found(f"there is no controller {text}; there are {', '.join(map(str, controllers))}")
        return node
