"""A cluster with a registry: its listener, its HTTP application, its verbs; and the decoding of messages."""

import errno
import socket
from functools import partial
from typing import TYPE_CHECKING

from anyio.abc import TaskGroup

from broker.cluster.cluster import Cluster
from broker.control.server import listen, serve_app, url_of
from broker.options import ServeOptions
from broker.settings.endpoints import PortTaken
from broker.start.runner import CannotStart, run
from broker.start.server import announcement, further
from broker.time.clock import PushedClock
from pipeline.values.formats import Schema, SchemaError, decoder, read_file
from pipeline.values.registry import RegistryError as RemoteError
from registry.decoding import Decoding, LocalSource, RemoteSource, Source
from registry.faults import Faults
from registry.options import OPTION, At, Options, check_installed, with_topic
from registry.store import Store
from registry.verbs import verbs_of

if TYPE_CHECKING:
    from starlette.applications import Starlette

_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - an address for this machine, where all are listened on


def serve(options: ServeOptions, registry_options: Options) -> int:
    """Run brokers and registry until the process is stopped; return the exit code (`broker.start.runner.run`)."""

    def build(options: ServeOptions, clock: PushedClock, tasks: TaskGroup) -> ClusterWithSchemas:
        return ClusterWithSchemas(options, clock, tasks, registry_options)

    return run("serve", options, build, announcement, further=further)


def beside(options: ServeOptions, clock: PushedClock, tasks: TaskGroup) -> Cluster:
    """Build a cluster with a registry of its own, on a free port. Raises OptionError: a library is not installed."""
    check_installed()
    at = At(options.listeners[0][0].host, 0)
    return ClusterWithSchemas(with_topic(options), clock, tasks, Options(at, None, ()))


class ClusterWithSchemas(Cluster):
    """A cluster with a registry beside its brokers, or with schemas from elsewhere to decode messages."""

    def __init__(self, options: ServeOptions, clock: PushedClock, tasks: TaskGroup, registry_options: Options) -> None:
        super().__init__(options, clock, tasks)
        self._own, self._store, self._faults = registry_options, Store(self), Faults(clock)

    async def start(self) -> None:
        """Read the schemas of files, start the brokers, then the registry.

        Raises:
            CannotStart: the registry's port is in use; a file or a URL cannot be used. Others as in `Cluster.start`.
        """
        try:
            files = {place: (name, schema) for name, place, schema in map(_read, self._own.files)}
            source: Source | None = None if self._own.url is None else RemoteSource(self._own.url)
        except (SchemaError, RemoteError) as error:
            raise CannotStart(str(error)) from error
        await super().start()
        if self._own.at is not None:
            url = self._listen(self._own.at)
            source = source or LocalSource(url, self._store.state)
        self.beside.decode = Decoding(source, files).decode

    def _listen(self, at: At) -> str:
        """Open the registry's listener; return its URL."""
        try:
            listener = listen(at.host, at.port)
        except PortTaken as error:
            raise CannotStart(_sentence(error)) from error
        host, port = _ANYWHERE.get(at.host, at.host), listener.getsockname()[1]
        url = self.beside.addresses["schema_registry_url"] = url_of(host, port)
        self.beside.verbs.update(verbs_of(url, self._store.state, self._faults))
        self.beside.on_reset.append(self._faults.on_reset)
        self.start_task(partial(serve_app, self._build, self, listener))
        return url

    def _build(self) -> "Starlette":
        from registry.app import build_app
        from registry.registry import Registry

        return build_app(Registry(self._store, self.cluster_id), self._faults)


def _read(argument: tuple[str, str]) -> tuple[str, tuple[str, str | None], Schema]:
    """Return a file's name, side and topic, and compiled schema. Raises SchemaError."""
    side, text = argument
    place, schema = read_file(text, side)
    decoder(schema, framed=False)
    return text.rpartition("=")[2], place, schema


def _sentence(error: PortTaken) -> str:
    """Return the problem and its remedy, in one sentence."""
    if error.errno in (errno.EADDRNOTAVAIL, None) or isinstance(error.__cause__, socket.gaierror):
        return f"{error.host} is not an address of this machine; {OPTION} needs one that is, or 0.0.0.0 for all"
    return f"port {error.port} of {OPTION} is taken; choose another one, or 0 for a free one"
