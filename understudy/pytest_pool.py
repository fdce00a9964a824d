"""The clusters of a pytest session: each is used by one test at a time, then reset for the next one or ended.

Without pytest-xdist each set of options has a server process of this session's. Workers of pytest-xdist share one
server with all other test processes of this user (`understudy.shared`), where each set of options has a cluster. What
the shared server does not have, such as a data directory or listeners, has a process of its own there, too.
"""

import json
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from control_api.plugins import references
from understudy.errors import ControlError, StartError, UnderstudyError

if TYPE_CHECKING:  # sessions without a cluster do not import the client
    from understudy.client import Cluster
    from understudy.shared import Shared

IDLE_LIMIT = 4  # arbitrary: sets of options that tests use in turn
CONFLICT = 409
SHAREABLE = frozenset({"brokers", "topics", "settings", "as_version", "for_tests", "seed", "schema_registry"})
"""Options of `understudy.start` that `POST /v1/clusters` has."""


class Pool:
    """The clusters. `shares`: in the shared server; `fresh`: a new one for each test, where it is shared."""

    def __init__(self, *, shares: bool = False, fresh: bool = False) -> None:
        self.shares, self.fresh = shares, fresh
        self.idle: list[tuple[str, Cluster]] = []
        self.in_use: dict[int, str] = {}
        self.shared: Shared | None = None

    def take(self, options: dict[str, Any], name: str) -> "Cluster":
        """Return a new or freshly reset cluster with these options; a new one in the shared server has this name."""
        key = json.dumps(options, sort_keys=True, default=str)
        for each in [each for each in self.idle if each[0] == key]:
            cluster = each[1]
            fresh = revived(cluster)  # if this raises, the cluster remains in the pool and is stopped at the end
            self.idle.remove(each)
            if fresh:
                break
            cluster.stop()
        else:
            cluster = self.new_cluster(options, name)
        self.in_use[id(cluster)] = key
        return cluster

    def new_cluster(self, options: dict[str, Any], name: str) -> "Cluster":
        """Return a new cluster: in the shared server, or in a process of its own."""
        from understudy.client import Cluster, start
        from understudy.transport import Address

        body = shareable(options) if self.shares else None
        if body is None:
            return start(**options)
        from understudy.shared import Shared

        if self.shared is not None and self.shared.end():
            self.shared = None
        if self.shared is None:
            self.shared = Shared()
        server = Cluster(Address(self.shared.control_url), ())
        # The bound of NewCluster.name.
        return server.clusters.create(**body, name=name[:250], owner=self.shared.owner)

    def give_back(self, cluster: "Cluster") -> None:
        """Return a cluster to the pool; stop the least recently used one if there are too many."""
        key = self.in_use.pop(id(cluster))
        if not self.is_running(cluster) or (cluster.owned and self.fresh):
            cluster.stop()
            return
        self.idle.append((key, cluster))
        while len(self.idle) > IDLE_LIMIT:
            self.idle.pop(0)[1].stop()

    def is_running(self, cluster: "Cluster") -> bool:
        """Return whether its server has not ended."""
        return cluster.process.alive if cluster.process is not None else not self.crash(cluster)

    def ending(self, cluster: "Cluster", patience_s: float = 0.0) -> str:
        """Return how its server ended by itself, in one sentence; empty if it runs still after this time."""
        return cluster.process.ending(patience_s) if cluster.process is not None else self.crash(cluster)

    def crash(self, cluster: "Cluster") -> str:
        """Return how the shared server of a cluster ended, in one sentence; empty while it runs, or for another one."""
        if not cluster.owned or self.shared is None or not cluster.control_url.startswith(self.shared.control_url):
            return ""
        end = self.shared.end()
        return end and f"the shared server of the tests (process {self.shared.pid}) {end}"

    def log(self, cluster: "Cluster") -> str:
        """Return the last lines of the log of its server; if that is shared, those about this cluster."""
        if cluster.owned and self.shared is not None:
            return self.shared.log("" if self.crash(cluster) else cluster.address.cluster_id)
        return cluster.log()

    def close(self) -> None:
        """Stop all of them."""
        for _, cluster in self.idle:
            cluster.stop()
        self.idle.clear()
        if self.shared is not None:
            self.shared.close()


def revived(cluster: "Cluster") -> bool:
    """Reset the cluster, disconnecting clients; return False if it has died or does not answer."""
    try:
        cluster.reset(disconnect=True)
    except ControlError as error:
        if error.status == CONFLICT:  # a data directory that must be kept, which also blocks a new server
            raise StartError(f"the cluster of the previous test cannot be reset: {error}") from error
        return False
    except UnderstudyError:
        return False
    return True


def shareable(options: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the options as the body of `POST /v1/clusters`; None if it has no such options, or not in this form."""
    body = {name: value for name, value in options.items() if value is not None}
    topics = partitions(body.pop("topics", {}))
    registry = body.pop("schema_registry", None)
    brokers = body.get("brokers", 1)
    if not SHAREABLE.issuperset(body) or topics is None or registry not in (None, 0) or not isinstance(brokers, int):
        return None
    if os.name != "posix" or isinstance(brokers, bool) or references(body.get("settings", {})):
        return None
    return {**body, "topics": topics, **({} if registry is None else {"schema_registry": True})}


def partitions(topics: Iterable[str] | Mapping[str, int]) -> dict[str, int] | None:
    """Return topics with their number of partitions; None if they have settings, or the number is left to a setting."""
    if isinstance(topics, Mapping):
        return dict(topics)
    named = [text.split(":") for text in ([topics] if isinstance(topics, str) else topics)]
    if any(len(parts) != 2 or not parts[1].isdecimal() for parts in named):
        return None
    return {name: int(count) for name, count in named}
