"""Opens the registry beside a cluster: its listener, its HTTP application, its verbs of the control plane."""

import errno
import socket
from functools import partial
from typing import TYPE_CHECKING

from anyio.abc import TaskGroup

from broker.__main__ import announcement
from broker.clock import PushedClock
from broker.cluster.cluster import Cluster
from broker.control.server import listen, serve_app, url_of
from broker.network.endpoints import PortTaken
from broker.options import ServeOptions
from broker.runner import CannotStart, run
from registry.faults import Faults
from registry.options import OPTION, At
from registry.store import Store
from registry.verbs import verbs_of

if TYPE_CHECKING:
    from starlette.applications import Starlette

_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - an address for this machine, where all are listened on


def serve(options: ServeOptions, at: At) -> int:
    """Run brokers and registry until the process is asked to stop; its exit code, as :func:`broker.runner.run`."""

    def build(options: ServeOptions, clock: PushedClock, tasks: TaskGroup) -> ClusterWithRegistry:
        return ClusterWithRegistry(options, clock, tasks, at)

    return run("serve", options, build, announcement)


class ClusterWithRegistry(Cluster):
    """A cluster with a registry beside its brokers."""

    def __init__(self, options: ServeOptions, clock: PushedClock, tasks: TaskGroup, at: At) -> None:
        super().__init__(options, clock, tasks)
        self._at, self._store, self._faults = at, Store(self), Faults(clock)

    async def start(self) -> None:
        """Start the brokers, then the registry.

        Raises:
            CannotStart: the registry's port is in use. Else as `Cluster.start`.
        """
        await super().start()
        try:
            listener = listen(self._at.host, self._at.port)
        except PortTaken as error:
            raise CannotStart(_sentence(error)) from error
        host, port = _ANYWHERE.get(self._at.host, self._at.host), listener.getsockname()[1]
        url = self.beside.addresses["schema_registry_url"] = url_of(host, port)
        self.beside.verbs.update(verbs_of(url, self._store.state, self._faults))
        self.beside.on_reset.append(self._faults.on_reset)
        self.start_task(partial(serve_app, self._build, self, listener))

    def _build(self) -> "Starlette":
        from registry.app import build_app
        from registry.registry import Registry

        return build_app(Registry(self._store, self.cluster_id), self._faults)


def _sentence(error: PortTaken) -> str:
    """The problem and its remedy, in one sentence."""
    if error.errno in (errno.EADDRNOTAVAIL, None) or isinstance(error.__cause__, socket.gaierror):
        return f"{error.host} is no address of this machine; {OPTION} needs one that is, or 0.0.0.0 for all of them"
    return f"port {error.port} of {OPTION} is taken; choose another one, or 0 for a free one"
