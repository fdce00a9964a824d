"""Fixtures of the tests of the proxy: a proxy in a process of its own, in front of a server of ours."""

from collections.abc import Iterator
from typing import Any, Protocol

import pytest

from tests.serving import Server
from understudy.launcher import ServerProcess, command_line


class ProxyTo(Protocol):
    """``proxy_to(server.addresses[0], port=0, ...)``: the options of ``understudy proxy``."""

    def __call__(self, upstream: str, **options: Any) -> Server:
        """A proxy in front of that address, stopped after the test."""
        ...


@pytest.fixture
def proxy_to() -> Iterator[ProxyTo]:
    """A factory of proxies."""
    running: list[Server] = []

    def start(upstream: str, **given: Any) -> Server:
        options = {"upstream": upstream, "port": 0, "control_port": 0, "log_format": "json", "seed": 1, **given}
        running.append(Server(ServerProcess(command_line(**options), "proxy")))
        return running[-1]

    yield start
    for each in running:
        each.finish_test()
        each.process.stop()
