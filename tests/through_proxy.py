"""Servers of ours that are reached through `understudy proxy`: ``TARGET=proxy``, for tests/scenarios and tests/clients.

Where a test chooses the address of a listener itself, as for SASL and TLS, ``WayTo`` is the way to it; tests/scenarios
do not ask for one, and reach such a listener directly.
"""

from dataclasses import dataclass
from typing import Any

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


class ProxiedServers(Servers):
    """The session's servers, each behind a proxy."""

    def __init__(self) -> None:
        super().__init__()
        self._proxies: dict[tuple[str, ...], ServerProcess] = {}
        self._started: list[Proxied] = []

    def fresh(self, **options: Any) -> Server:
        """A server with these options, as just started, and the proxy in front of it."""
        server = super().fresh(**options)
        self._started.append(Proxied(server.process, proxy=self._to(server)))
        return self._started[-1]

    def _to(self, server: Server) -> ServerProcess:
        """A proxy in front of all brokers of a server."""
        proxy = self._proxies.pop(server.addresses, None)
        if proxy is None:
            while len(self._proxies) >= MOST_PROXIES:
                self._proxies.pop(next(iter(self._proxies))).stop()
            options: dict[str, Any] = {"upstream": ",".join(server.addresses), "port": 0, "control_port": 0}
            proxy = Started(command_line(**options), "proxy")
        self._proxies[server.addresses] = proxy
        return proxy

    def finish_test(self) -> None:
        """Close the connections that the test opened, to any server or proxy."""
        for each in self._started:
            each.finish_test()
        self._started.clear()
        super().finish_test()

    def close(self) -> None:
        """Stop all processes."""
        self.finish_test()
        for proxy in self._proxies.values():
            proxy.stop()
        self._proxies.clear()
        super().close()


class WayTo:
    """``way_to(address)``: where clients find it, which is a proxy in front of it if the target is one."""

    def __init__(self, *, through_proxy: bool) -> None:
        self.through_proxy = through_proxy
        self._proxies: list[ServerProcess] = []

    def __call__(self, address: str, **options: Any) -> str:
        """``HOST:PORT``; the options are those of the proxy."""
        return self.all(address, **options)[0]

    def all(self, *addresses: str, **options: Any) -> tuple[str, ...]:
        """The ways to several brokers of one cluster."""
        if not self.through_proxy:
            return addresses
        proxy_options = {"upstream": ",".join(addresses), "port": 0, "control_port": 0, **options}
        self._proxies.append(Started(command_line(**proxy_options), "proxy"))
        listed = Server(self._proxies[-1]).control("GET", "/v1/cluster")["brokers"]
        bound = (broker["listeners"][0] for broker in listed)  # not where it is advertised
        return tuple(f"{each['bound_host']}:{each['bound_port']}" for each in bound)

    def close(self) -> None:
        """Stop the proxies."""
        for proxy in self._proxies:
            proxy.stop()
