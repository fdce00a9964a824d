"""Serve: the event loop, signals, the banner, the ready file. One process, one loop, one cluster."""

import asyncio
import errno
import os
import socket
import sys

# kio imports hypothesis and structlog imports rich where they happen to be installed: a server starts in half the time
# without them, and needs neither.
for _module in ("hypothesis", "rich"):
    sys.modules.setdefault(_module, None)  # type: ignore[arg-type]

import anyio
import structlog

from broker.clock import PushedClock
from broker.cluster.cluster import Cluster
from broker.control.server import open_control
from broker.event_loop import backend_options, on_signals
from broker.journal.feed import CannotWrite, Feed
from broker.logs import configure_logging
from broker.network import file_limits
from broker.network.endpoints import PortTaken
from broker.options import ServeOptions
from broker.ready_file import NotAReadyFile, ReadyFile
from broker.settings import BrokerSettings
from protocol.errors import KafkaError
from storage.files import DirectoryLockedError
from storage.log_dir import WrongDirectoryError

_log = structlog.get_logger(__name__)
EXIT_CANNOT_START = 1
_REFUSALS = (CannotWrite, PortTaken, NotAReadyFile, DirectoryLockedError, WrongDirectoryError, KafkaError, OSError)


def serve(options: ServeOptions) -> int:
    """Run a cluster until it is asked to stop; the process's exit code.

    0 after an orderly stop; 1, with one sentence on stderr, where it cannot start.
    """
    configure_logging(options.log_format, options.log_level)
    file_limits.raise_limit()
    try:
        return anyio.run(_serve, options, backend_options=backend_options())
    except CannotStart as error:
        print(f"understudy serve: {error}", file=sys.stderr)
        return EXIT_CANNOT_START


class CannotStart(Exception):
    """The cluster cannot start; the message is one sentence with the reason and the remedy."""


async def _serve(options: ServeOptions) -> int:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    on_signals(loop, stopped.set)
    refusal: CannotStart | None = None
    feed: Feed | None = None
    async with anyio.create_task_group() as tasks:
        cluster = Cluster(options, PushedClock(loop), tasks)
        try:
            if options.ready_file is not None:
                ReadyFile(options.ready_file).prepare()
            feed = await _open_journal(cluster, options)
            await cluster.start()
            control_url = await open_control(cluster, options, tasks)
        except _REFUSALS as error:
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
        ReadyFile(options.ready_file).remove()
    return 0


async def _open_journal(cluster: Cluster, options: ServeOptions) -> Feed | None:
    """The recorder of the journal's files, if they are wanted."""
    if options.journal_dir is None:
        return None
    settings = BrokerSettings(1, options.settings)
    feed = await Feed.open(options.journal_dir, settings, cluster)
    cluster.journal.recorder = feed
    return feed


def _sentence(error: Exception, options: ServeOptions) -> str:
    """The problem and its remedy, in one sentence."""
    if isinstance(error, PortTaken):
        option = options.option_of_port(error.port)
        if error.errno in (errno.EADDRNOTAVAIL, None) or isinstance(error.__cause__, socket.gaierror):
            where = options.option_of_host(error.host)
            return f"{error.host} is no address of this machine; {where} needs one that is, or 0.0.0.0 for all of them"
        if error.errno == errno.EACCES:
            return f"port {error.port} needs more rights than this process has; choose one from 1024 on with {option}"
        return f"port {error.port} is taken; choose another one with {option}, or 0 for a free one"
    if isinstance(error, KafkaError) or (isinstance(error, OSError) and options.data_dir is not None):
        return f"the data directory {options.data_dir} cannot be used: {error}"
    return str(error)


def announce(cluster: Cluster, options: ServeOptions, control_url: str | None) -> None:
    """The banner on stdout, and the ready file for programs (contract 2)."""
    servers = [f"{host}:{port}" for host, port in cluster.bootstrap]
    if options.ready_file is not None:
        brokers = [
            {
                "id": node.id,
                "host": host,
                "port": port,
                "listeners": [each._asdict() for each in cluster.listeners_of(node)],
            }
            for node, (host, port) in zip(cluster.nodes.values(), cluster.bootstrap, strict=True)
        ]
        ready = {
            "bootstrap_servers": servers,
            "control_url": control_url,
            "cluster_id": cluster.cluster_id,
            "pid": os.getpid(),
            "brokers": brokers,
        }
        ReadyFile(options.ready_file).write(ready)
    print(f"understudy is ready: {len(servers)} broker{'s' * (len(servers) > 1)}, cluster {cluster.cluster_id}")
    print(f"bootstrap.servers={','.join(servers)}")
    if cluster.controller is not None:
        print(f"bootstrap.controllers={cluster.controller.opened.host}:{cluster.controller.opened.port}")
    if control_url is not None:
        print(f"control={control_url}")
    sys.stdout.flush()
    for note in options.notes:
        _log.info(note)
