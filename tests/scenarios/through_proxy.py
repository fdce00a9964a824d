"""The same rows through `understudy proxy`: ``TARGET=proxy``. Listeners with SASL or TLS are reached directly."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.conftest import BrokerWith
from tests.forking import Started
from tests.serving import Server, Servers
from understudy.launcher import ServerProcess, command_line

MOST_PROXIES = 3


@dataclass
class Proxied(Server):
    """A server whose brokers are reached through a proxy; the control plane is the server's own."""

    proxy: ServerProcess | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        """``HOST:PORT`` of the proxy's listener for each broker."""
        assert self.proxy is not None
        return self.proxy.ready.bootstrap_servers


class Proxies:
    """The session's proxies, by what is behind them."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, ...], ServerProcess] = {}

    def to(self, server: Server) -> ServerProcess:
        """A proxy in front of all brokers of a server."""
        proxy = self._running.pop(server.addresses, None)
        if proxy is None:
            while len(self._running) >= MOST_PROXIES:
                self._running.pop(next(iter(self._running))).stop()
            options: dict[str, Any] = {"upstream": ",".join(server.addresses), "port": 0, "control_port": 0}
            proxy = Started(command_line(**options), "proxy")
        self._running[server.addresses] = proxy
        return proxy

    def close(self) -> None:
        """Stop all of them."""
        for proxy in self._running.values():
            proxy.stop()
        self._running.clear()


@contextmanager
def proxied(servers: Servers, proxies: Proxies) -> Iterator[BrokerWith]:
    """A factory of servers behind proxies."""
    made: list[Proxied] = []

    def fresh(**options: Any) -> Server:
        server = servers.fresh(**options)
        made.append(Proxied(server.process, proxy=proxies.to(server)))
        return made[-1]

    yield fresh
    for each in made:
        each.finish_test()
    servers.finish_test()
