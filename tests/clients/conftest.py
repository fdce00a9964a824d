"""One cluster for the session, and every collected client played against it once."""

import os
import signal
from collections.abc import Iterator

import pytest

from tests.clients.drivers import Driver, Runs
from tests.clients.passed import requests, running
from tests.clients.targets import BEHIND, Target
from tests.serving import Servers
from tests.through_proxy import ProxiedServers, WayTo

TABLE = pytest.StashKey[list[str]]()
# What takes longest begins first.
SLOW_FIRST = ("rust-rdkafka", "kafka-tools-4.3.1", "confluent-kafka-javascript", "franz-go-load")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The cluster to drive the clients against."""
    names = "understudy (default), kafka, proxy, proxy-kafka or HOST:PORT,..."
    parser.addoption("--target", default=None, help=f"{names}; also TARGET")


@pytest.fixture(scope="session")
def target_name(pytestconfig: pytest.Config) -> str:
    """`--target`, else TARGET, else understudy."""
    return str(pytestconfig.getoption("--target", default=None) or os.environ.get("TARGET", "understudy"))


@pytest.fixture(scope="session")
def servers(target_name: str) -> Iterator[Servers]:
    """The session's servers of ours, for tests that steer them; behind proxies where the target is."""
    running = ProxiedServers() if target_name in BEHIND else Servers()
    yield running
    running.close()


@pytest.fixture(scope="module")
def way_to(target_name: str) -> Iterator[WayTo]:
    """The way to an address: through a proxy where the target is one."""
    way = WayTo(through_proxy=target_name in BEHIND)
    yield way
    way.close()


@pytest.fixture(scope="session")
def runs(request: pytest.FixtureRequest, target_name: str) -> Iterator[Runs]:
    """The session's runs against one cluster of three brokers."""
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("terminated"))  # so that no broker is left behind
    with running(3, target_name) as cluster:
        yield from _played(request, cluster)


def _played(request: pytest.FixtureRequest, cluster: Target) -> Iterator[Runs]:
    """Start all drivers whose steps are collected."""
    runs = Runs(cluster)
    drivers = {driver.name: driver for driver in map(_driver_of, request.session.items) if driver is not None}
    runs.start(sorted(drivers.values(), key=lambda driver: (driver.name not in SLOW_FIRST, driver.name)))
    try:
        yield runs
    finally:
        runs.close()
        passed = f", {requests(cluster).total()} requests" if cluster.upstream is not None else ""
        request.config.stash[TABLE] = [f"against {cluster.name}, {cluster.brokers} brokers{passed}", *runs.table()]


def _driver_of(item: pytest.Item) -> Driver | None:
    call = getattr(item, "callspec", None)
    driver = call.params.get("driver") if call else None
    return driver if isinstance(driver, Driver) else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What each client did, and how long it took."""
    if rows := config.stash.get(TABLE, []):
        terminalreporter.section("clients")
        for row in rows:
            terminalreporter.write_line(row)
