"""Runs the process of a cluster or a proxy: event loop, signals, control plane, banner, ready file."""

import asyncio
import errno
import gc
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import anyio
from anyio.abc import TaskGroup

from broker.control.hosting import Build, Clusters, Hosted
from broker.control.recorder import Recorder
from broker.control.server import ControlOptions, open_control
from broker.logs import Logger, configure_logging, prepare_logging
from broker.server import file_limits
from broker.settings import BrokerSettings
from broker.settings.endpoints import PortTaken
from broker.start.event_loop import backend_options, on_signals
from broker.start.ready_file import NotAReadyFile, ReadyFile
from broker.steering.journal.feed import CannotWrite, Feed, Source
from broker.time.clock import PushedClock
from control_api.spelling import host_and_port
from protocol.deferred import dataclass
from protocol.errors import KafkaError
from storage.files import DirectoryLockedError
from storage.log_dir import WrongDirectoryError

if TYPE_CHECKING:
    from broker.control.watched import Watched  # imports the control plane, which may be off
    from broker.steering.journal.traces import Traces

    class Served(Watched, Source, Protocol):
        """The object that a process serves: a cluster (``understudy serve``) or a proxy (``understudy proxy``)."""

        @property
        def bootstrap(self) -> Sequence[tuple[str, int]]:
            """Host and port of each broker, as clients connect to them."""

        async def start(self) -> None:
            """Open the brokers' ports."""

        def stop(self) -> None:
            """Close them in order."""


_log = Logger(__name__)
EXIT_CANNOT_START = 1
_FIRST_CLIENTS_S = 0.1
"""For so long after the start, clients go before imports that can wait.

Ours, more than a test that waits for the start needs to connect.
"""
_REFUSALS = (CannotWrite, PortTaken, NotAReadyFile, DirectoryLockedError, WrongDirectoryError, KafkaError, OSError)


class Options(ControlOptions, Protocol):
    """The options of a command that the runner reads."""

    @property
    def log_format(self) -> str:
        """``console`` or ``json``."""
        ...

    @property
    def log_level(self) -> str:
        """The lowest level that is logged."""
        ...

    @property
    def ready_file(self) -> Path | None:
        """The file to which the addresses are written for other programs, if given."""
        ...

    @property
    def journal_dir(self) -> Path | None:
        """The directory to which the journal is written, if given."""
        ...

    @property
    def otlp_endpoint(self) -> str | None:
        """The collector to which a span of each request is sent, if given."""
        ...

    @property
    def scenario(self) -> Path | None:
        """The scenario whose steps are run at the start, if given."""
        ...

    @property
    def data_dirs(self) -> tuple[Path, ...]:
        """The data directories; none: data are kept in memory."""
        ...

    @property
    def settings(self) -> Mapping[str, str]:
        """The configured settings, by Kafka's names."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """Notes to log once, on options that are accepted but have no effect here."""
        ...

    def option_of_port(self, port: int) -> str:
        """Return the option that gave this port, for the message that the port is taken."""
        ...

    def option_of_host(self, host: str) -> str:
        """Return the option that gave this address, for the message that this machine does not have it."""
        ...


@dataclass(frozen=True, slots=True)
class Announcement:
    """The contents of the banner and of the ready file, besides the addresses (contract 2).

    ``brokers`` are the ready file's objects; ``lines`` are printed between the bootstrap servers and the control plane.
    """

    title: str
    brokers: Sequence[dict[str, Any]]
    lines: Sequence[str] = ()
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Addresses of other servers in the process: a name, such as ``schema_registry_url``, -> a URL."""


ServedT = TypeVar("ServedT", bound="Served")
OptionsT = TypeVar("OptionsT", bound=Options)


class CannotStart(Exception):
    """The process cannot serve; the message is one sentence with the reason and the remedy."""


def run(
    command: str,
    options: OptionsT,
    build: Callable[[OptionsT, PushedClock, TaskGroup], ServedT],
    announcement: Callable[[ServedT], Announcement],
    afterwards: Callable[[], None] = lambda: None,
    further: Build | None = None,
) -> int:
    """Serve until a signal stops the process, and return its exit code. ``afterwards`` is called once it serves.

    ``further`` builds the clusters that clients of the control plane make; without it they can make none.

    The exit code is 0 after an orderly stop; 1 if it cannot start, with one sentence on stderr that names the command.
    """
    configure_logging(options.log_format, options.log_level)
    file_limits.raise_limit()
    try:
        return anyio.run(_serve, options, build, announcement, afterwards, further, backend_options=backend_options())
    except CannotStart as error:
        print(f"understudy {command}: {error}", file=sys.stderr)
        return EXIT_CANNOT_START


async def _serve(
    options: OptionsT,
    build: Callable[[OptionsT, PushedClock, TaskGroup], ServedT],
    announcement: Callable[[ServedT], Announcement],
    afterwards: Callable[[], None],
    further: Build | None,
) -> int:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    on_signals(loop, stopped.set)
    refusal: CannotStart | None = None
    observers = Observers()
    async with anyio.create_task_group() as tasks:
        served = build(options, PushedClock(loop), tasks)
        try:
            if options.ready_file is not None:
                ReadyFile(options.ready_file).prepare()
            await observers.open(served, options)
            await served.start()
            first = Hosted(served)
            if options.scenario is not None:
                await _run_scenario(served, options.scenario, first.recorder)
            control_url = await open_control(Clusters(first, tasks, further), options, tasks)
        except CannotStart as error:
            refusal = error
        except _REFUSALS as error:
            refusal = CannotStart(_sentence(error, options))
        else:
            try:
                _announce(served, options, announcement(served), control_url)
            except NotAReadyFile as error:
                refusal = CannotStart(str(error))
            else:
                gc.freeze()  # modules and classes stay alive; collecting them would only delay requests
                afterwards()
                loop.call_later(_FIRST_CLIENTS_S, prepare_logging)
                await stopped.wait()
            served.stop()
        tasks.cancel_scope.cancel()
    await observers.close()
    if refusal is not None:
        raise refusal
    if options.ready_file is not None:
        ReadyFile(options.ready_file).remove()
    return 0


class Observers:
    """Receivers of every request besides the journal in memory: the files of --journal and --otlp-endpoint's spans."""

    def __init__(self) -> None:
        self._feed: Feed | None = None
        self._traces: Traces | None = None

    async def open(self, served: "Served", options: Options) -> None:
        """Start those that the options name. Raises CannotWrite, CannotStart."""
        if options.journal_dir is not None:
            self._feed = await Feed.open(options.journal_dir, BrokerSettings(1, options.settings), served)
            served.journal.recorder = self._feed
        if options.otlp_endpoint is not None:
            try:
                from broker.steering.journal.traces import Traces  # noqa: PLC0415 - OpenTelemetry is an extra

                self._traces = Traces.to(options.otlp_endpoint, served)
            except (ImportError, ValueError) as error:
                raise CannotStart(str(error)) from None
            served.journal.tracer = self._traces

    async def close(self) -> None:
        """Write and send what is still buffered; sending has a short time limit."""
        if self._feed is not None:
            await self._feed.close()
        if self._traces is not None:
            await asyncio.to_thread(self._traces.close)


async def _run_scenario(served: "Served", path: Path, recorder: Recorder) -> None:
    """Run the steps of --scenario. Raises CannotStart."""
    from broker.control.scenario import CannotRun, run_file  # noqa: PLC0415 - few ask for it
    from control_api.scenario_file import ScenarioError, read  # noqa: PLC0415

    try:
        await run_file(served, read(str(path)), recorder)
    except (ScenarioError, CannotRun) as error:
        raise CannotStart(f"--scenario {error}") from None


def _sentence(error: Exception, options: Options) -> str:
    """Return the problem and its remedy in one sentence."""
    if isinstance(error, PortTaken):
        option = options.option_of_port(error.port)
        if error.errno in (errno.EADDRNOTAVAIL, None) or isinstance(error.__cause__, socket.gaierror):
            where = options.option_of_host(error.host)
            return f"{error.host} is not an address of this machine; {where} needs one that is, or 0.0.0.0 for all"
        if error.errno == errno.EACCES:
            return f"port {error.port} needs privileges that you do not have; choose one from 1024 on with {option}"
        return f"port {error.port} is taken; choose another one with {option}, or 0 for a free one"
    if isinstance(error, KafkaError) or (isinstance(error, OSError) and options.data_dirs):
        reason = getattr(error, "strerror", None) or error  # without the number of an OSError
        file = getattr(error, "filename", None)
        directory = ",".join(map(str, options.data_dirs))
        path = f" ({file})" if file and str(file) != directory else ""
        return f"the data directory {directory} cannot be used: {reason}{path}"
    return str(error)


def _announce(served: "Served", options: Options, banner: Announcement, control_url: str | None) -> None:
    """Print the banner to stdout, and write the ready file for programs (contract 2)."""
    servers = [host_and_port(host, port) for host, port in served.bootstrap]
    if options.ready_file is not None:
        ready = {
            "bootstrap_servers": servers,
            "control_url": control_url,
            "cluster_id": served.cluster_id,
            "pid": os.getpid(),
            "brokers": list(banner.brokers),
            **banner.addresses,
        }
        ReadyFile(options.ready_file).write(ready)
    print(f"understudy is ready: {banner.title}")
    print(f"bootstrap.servers={','.join(servers)}")
    for line in banner.lines:
        print(line)
    if control_url is not None:
        print(f"control={control_url}")
    for name, url in banner.addresses.items():
        print(f"{name.replace('_', '.')}={url}")
    sys.stdout.flush()
    for note in options.notes:
        _log.info(note)
