"""Fixtures of the tests of the proxy: a proxy in a process of its own, in front of a server of ours."""

import json
from collections.abc import Iterator
from typing import Any, Protocol

import pytest

from tests.forking import Started
from tests.serving import Server
from understudy.launcher import command_line


class ProxyTo(Protocol):
    """``proxy_to(server.addresses[0], port=0, ...)``: the options of ``understudy proxy``."""

    def __call__(self, upstream: str, **options: Any) -> Server:
        """A proxy in front of that address, as just started."""
        ...


@pytest.fixture(scope="session")
def running() -> Iterator[dict[str, Server]]:
    """The session's proxies, by their options."""
    proxies: dict[str, Server] = {}
    yield proxies
    for each in proxies.values():
        each.finish_test()
        each.process.stop()


@pytest.fixture
def proxy_to(running: dict[str, Server]) -> Iterator[ProxyTo]:
    """A factory of proxies, each as just started."""

    def start(upstream: str, **more_options: Any) -> Server:
        options = {"upstream": upstream, "port": 0, "control_port": 0, "log_format": "json", "seed": 1, **more_options}
        name = json.dumps(options, sort_keys=True, default=str)
        proxy = running.get(name)
        if proxy is None:
            proxy = running[name] = Server(Started(command_line(**options), "proxy"))
        else:
            proxy.reset()
        return proxy

    yield start
    for each in running.values():
        each.finish_test()
