"""Serve: the event loop, signals, the banner, the ready file. One process, one loop, one cluster."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

# kio imports hypothesis and structlog imports rich where they happen to be installed: a server starts in half the time
# without them, and needs neither.
for _module in ("hypothesis", "rich"):
    sys.modules.setdefault(_module, None)  # type: ignore[arg-type]

import anyio
import structlog

from broker import descriptors
from broker.clock import PushedClock
from broker.cluster import Cluster
from broker.control.door import open_control
from broker.endpoints import PortTaken
from broker.logs import configure_logging
from broker.options import ServeOptions
from broker.settings import BrokerSettings
from broker.wire_journal.feed import CannotWrite, Feed
from protocol.errors import KafkaError
from storage.files import DirectoryLockedError
from storage.log_dir import WrongDirectoryError

_log = structlog.get_logger(__name__)
EXIT_CANNOT_START = 1
_SECOND_SIGNAL_EXIT = 130


def serve(options: ServeOptions) -> int:
    """Run a cluster until it is told to stop; the process's exit code.

    0 after an orderly stop; 1, with one sentence on stderr, where it cannot start.
    """
    configure_logging(options.log_format, options.log_level)
    descriptors.raise_limit()
    uvloop = _uvloop()
    try:
        return anyio.run(_serve, options, backend_options={"loop_factory": uvloop} if uvloop else {})
    except CannotStart as error:
        print(f"understudy serve: {error}", file=sys.stderr)
        return EXIT_CANNOT_START


class CannotStart(Exception):
    """The one sentence that says why not, and what to do."""


def _uvloop() -> Callable[[], Any] | None:
    """uvloop where the platform has it."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _serve(options: ServeOptions) -> int:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    _on_signals(loop, stopped.set)
    refusal: CannotStart | None = None
    feed: Feed | None = None
    async with anyio.create_task_group() as tasks:
        cluster = Cluster(options, PushedClock(loop), tasks)
        try:
            feed = await _open_journal(cluster, options)
            await cluster.start()
            control_url = await open_control(cluster, options, tasks)
        except (CannotWrite, PortTaken, DirectoryLockedError, WrongDirectoryError, KafkaError, OSError) as error:
            refusal = CannotStart(_sentence(error, options))
        else:
            announce(cluster, options, control_url)
            await stopped.wait()
            cluster.stop()
        tasks.cancel_scope.cancel()
    if feed is not None:
        await feed.close()
    if refusal is not None:
        raise refusal
    if options.ready_file is not None:
        with suppress(OSError):
            options.ready_file.unlink()
    return 0


async def _open_journal(cluster: Cluster, options: ServeOptions) -> Feed | None:
    """What writes the journal's files, where they are asked for."""
    if options.journal_dir is None:
        return None
    settings = BrokerSettings(1, options.settings)
    feed = await Feed.open(options.journal_dir, settings, cluster)
    cluster.journal.recorder = feed
    return feed


def _sentence(error: Exception, options: ServeOptions) -> str:
    """What is wrong and what to do about it, in one sentence."""
    if isinstance(error, PortTaken):
        option = options.option_of_port(error.port)
        return f"port {error.port} is taken; choose another one with {option}, or 0 for a free one"
    if isinstance(error, KafkaError) or (isinstance(error, OSError) and options.data_dir is not None):
        return f"the data directory {options.data_dir} cannot be used: {error}"
    return str(error)


def _on_signals(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    """The first SIGTERM or SIGINT stops in order, the second one at once."""
    signals = 0

    def received() -> None:
        nonlocal signals
        signals += 1
        if signals > 1:
            os._exit(_SECOND_SIGNAL_EXIT)
        stop()

    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, received)


def announce(cluster: Cluster, options: ServeOptions, control_url: str | None) -> None:
    """The banner on stdout, and the ready file for programs (contract 2)."""
    servers = [f"{host}:{port}" for host, port in cluster.bootstrap]
    if options.ready_file is not None:
        brokers = [
            {"id": node.id, "host": host, "port": port}
            for node, (host, port) in zip(cluster.nodes.values(), cluster.bootstrap, strict=True)
        ]
        ready = {
            "bootstrap_servers": servers,
            "control_url": control_url,
            "cluster_id": cluster.cluster_id,
            "pid": os.getpid(),
            "brokers": brokers,
        }
        write_atomically(options.ready_file, json.dumps(ready) + "\n")
    print(f"understudy is ready: {len(servers)} broker{'s' * (len(servers) > 1)}, cluster {cluster.cluster_id}")
    print(f"bootstrap.servers={','.join(servers)}")
    if control_url is not None:
        print(f"control={control_url}")
    sys.stdout.flush()
    for note in options.notes:
        _log.info(note)


def write_atomically(path: Path, text: str) -> None:
    """Write a file that is either not there or whole."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text)
    partial.replace(path)
