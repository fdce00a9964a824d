"""Fixtures of all tests that talk to a server: one process per set-up, as just started for each test."""

import importlib
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Protocol

import pytest
from hypothesis import settings

from tests.serving import Server, Servers

# A machine that does other things too is slow at times; pytest-timeout ends what hangs.
settings.register_profile("house", deadline=None)
settings.load_profile("house")

# Where sniffio is installed (trio brings it), anyio asks it which loop runs, and it knows it of tasks only. anyio.run,
# by which the server is started, tells it for callbacks too. Nobody else would for a cluster in a test.
if find_spec("sniffio") is not None:
    importlib.import_module("sniffio").thread_local.name = "asyncio"


class BrokerWith(Protocol):
    """``broker_with(settings={...}, brokers=3, ...)``: the options of ``understudy.launcher.words``."""

    def __call__(self, **options: Any) -> Server:
        """A server with these options, as just started."""
        ...


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """The session's server processes; all are stopped at its end."""
    running = Servers()
    yield running
    running.close()


@pytest.fixture
def broker_with(servers: Servers) -> Iterator[BrokerWith]:
    """A factory of servers with options; connections are closed after the test."""
    yield servers.fresh
    servers.finish_test()


@pytest.fixture
def broker(broker_with: BrokerWith) -> Server:
    """One broker with Kafka's own defaults, as just started."""
    return broker_with()
