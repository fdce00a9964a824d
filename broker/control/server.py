"""Starts the control plane's HTTP server if it is enabled; the HTTP stack is imported only then."""

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from anyio.abc import TaskGroup

from broker.control.hosting import Clusters
from broker.server.connections import PARTIAL_TIMEOUT
from broker.settings.endpoints import PortTaken

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from broker.control.watched import Watched


_MOMENT_S = 0.1
"""How long loading the control plane waits for a first client of the brokers, which else would wait for the loading.

Ours, more than a test that waits for the start needs to connect.
"""


class ControlOptions(Protocol):
    """The options of the control plane."""

    @property
    def control_host(self) -> str:
        """Return the address to listen on."""
        ...

    @property
    def control_port(self) -> int | None:
        """Return the port; ``None`` disables the control plane."""
        ...

    @property
    def control_token(self) -> str | None:
        """Return the token that clients must send, if any."""
        ...


async def open_control(clusters: Clusters, options: ControlOptions, tasks: TaskGroup) -> str | None:
    """Serve the control plane on the brokers' event loop; return its URL, or ``None`` if it is disabled.

    Raises:
        PortTaken: its port is in use.
    """
    if options.control_port is None:
        return None

    def build() -> "Starlette":
        from broker.control.app import build_app

        return build_app(clusters, options.control_token)

    listener = listen(options.control_host, options.control_port)
    tasks.start_soon(serve_app, build, clusters.first.source, listener)
    return url_of(options.control_host, listener.getsockname()[1])


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket for HTTP; `port` 0 picks a free port.

    Raises:
        PortTaken: the port is in use, or the host is not an address of this machine.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(64)  # ours: as many test processes may connect in one turn of the loop
    except (OSError, ValueError) as error:  # ValueError: the text cannot be a host name
        listener.close()
        raise PortTaken(port, error, host) from error
    return listener


def url_of(host: str, port: int) -> str:
    """Return the URL of a listener."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve_app(build: "Callable[[], Starlette]", source: "Watched", listener: socket.socket) -> None:
    """Import and run the HTTP stack; requests that arrive before it is ready wait in the listen backlog.

    The import takes tens of milliseconds, so the first Kafka clients go before it, unless a client of this one comes.
    """
    try:
        await _first_client(listener)
    except asyncio.CancelledError:
        listener.close()  # nothing else owns it yet
        raise
    import uvicorn

    from broker.control.deadlines import with_deadlines

    config = uvicorn.Config(
        build(),
        http=with_deadlines(lambda: source.settings.long(PARTIAL_TIMEOUT)),
        log_config=None,
        ws="none",  # "auto" imports a WebSocket library if the environment has one; the control plane has no WebSocket
        log_level="error",  # its warnings are about the peer: a Java client offers HTTP/2 with every request
        lifespan="off",
        access_log=False,
        server_header=False,
        limit_concurrency=source.shares.control,  # connections above it are refused with 503
    )
    server = uvicorn.Server(config)
    server.capture_signals = _no_signals  # type: ignore[method-assign, assignment]  # the server handles signals itself
    try:
        await server.serve([listener])
    except asyncio.CancelledError:
        server.force_exit = True
        for each in server.servers:
            each.close()
        raise


async def _first_client(listener: socket.socket) -> None:
    """Wait until a client connects, a moment at most."""
    loop = asyncio.get_running_loop()
    connects = asyncio.Event()
    loop.add_reader(listener, connects.set)
    try:
        async with asyncio.timeout(_MOMENT_S):
            await connects.wait()
    except TimeoutError:
        pass
    finally:
        loop.remove_reader(listener)


def _no_signals() -> object:
    from contextlib import nullcontext

    return nullcontext()
