"""Serve the proxy: the event loop, signals, the banner, the ready file."""

import asyncio
import errno
import os
import socket
import sys

# As in broker.__main__: a server starts in half the time without them, and needs neither.
for _module in ("hypothesis", "rich"):
    sys.modules.setdefault(_module, None)  # type: ignore[arg-type]

import anyio
import structlog

from broker.clock import PushedClock
from broker.control.server import open_control
from broker.event_loop import backend_options, on_signals
from broker.journal.feed import CannotWrite, Feed
from broker.logs import configure_logging
from broker.network import file_limits
from broker.network.endpoints import PortTaken
from broker.ready_file import NotAReadyFile, ReadyFile
from proxy.options import ProxyOptions
from proxy.proxy import Proxy

_log = structlog.get_logger(__name__)
EXIT_CANNOT_START = 1
_REFUSALS = (CannotWrite, PortTaken, NotAReadyFile, OSError)


class CannotStart(Exception):
    """The proxy cannot start; the message is one sentence with the reason and the remedy."""


def serve(options: ProxyOptions) -> int:
    """Run a proxy until it is asked to stop; the process's exit code.

    0 after an orderly stop; 1, with one sentence on stderr, where it cannot start.
    """
    configure_logging(options.log_format, options.log_level)
    file_limits.raise_limit()
    try:
        return anyio.run(_serve, options, backend_options=backend_options())
    except CannotStart as error:
        print(f"understudy proxy: {error}", file=sys.stderr)
        return EXIT_CANNOT_START


async def _serve(options: ProxyOptions) -> int:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    on_signals(loop, stopped.set)
    refusal: CannotStart | None = None
    feed: Feed | None = None
    async with anyio.create_task_group() as tasks:
        proxy = Proxy(options, PushedClock(loop), tasks)
        try:
            if options.ready_file is not None:
                ReadyFile(options.ready_file).prepare()
            if options.journal_dir is not None:
                proxy.journal.recorder = feed = await Feed.open(options.journal_dir, proxy.settings, proxy)
            await proxy.start()
            control_url = await open_control(proxy, options, tasks)
        except _REFUSALS as error:
            refusal = CannotStart(_sentence(error, options))
        else:
            announce(proxy, options, control_url)
            await stopped.wait()
            proxy.stop()
        tasks.cancel_scope.cancel()
    if feed is not None:
        await feed.close()
    if refusal is not None:
        raise refusal
    if options.ready_file is not None:
        ReadyFile(options.ready_file).remove()
    return 0


def _sentence(error: Exception, options: ProxyOptions) -> str:
    """The problem and its remedy, in one sentence."""
    if not isinstance(error, PortTaken):
        return str(error)
    if error.errno in (errno.EADDRNOTAVAIL, None) or isinstance(error.__cause__, socket.gaierror):
        where = options.option_of_host(error.host)
        return f"{error.host} is no address of this machine; {where} needs one that is, or 0.0.0.0 for all of them"
    option = options.option_of_port(error.port)
    return f"port {error.port} cannot be used; choose another one with {option}, or 0 for a free one"


def announce(proxy: Proxy, options: ProxyOptions, control_url: str | None) -> None:
    """The banner on stdout, and the ready file for programs, as those of `understudy serve`."""
    servers = [f"{host}:{port}" for host, port in proxy.bootstrap]
    if options.ready_file is not None:
        ready = {
            "bootstrap_servers": servers,
            "control_url": control_url,
            "cluster_id": proxy.cluster_id,
            "pid": os.getpid(),
            "brokers": [{"id": each.id, "host": each.host, "port": each.port} for each in proxy.upstreams],
        }
        ReadyFile(options.ready_file).write(ready)
    print(f"understudy is ready: {proxy.description}")
    print(f"bootstrap.servers={','.join(servers)}")
    if control_url is not None:
        print(f"control={control_url}")
    sys.stdout.flush()
