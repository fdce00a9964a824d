"""One cluster for the session, and every collected client played against it once."""

import os
import signal
from collections.abc import Iterator

import pytest

from tests.clients import targets
from tests.clients.drivers import Driver, Runs

TABLE = pytest.StashKey[list[str]]()
# What takes longest begins first.
SLOW_FIRST = ("rust-rdkafka", "kafka-tools-4.3.1", "confluent-kafka-javascript", "franz-go", "franz-go-transactions")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The cluster to drive the clients against."""
    parser.addoption("--target", default=None, help="understudy (default), kafka or HOST:PORT,...; also TARGET")


@pytest.fixture(scope="session")
def target_name(pytestconfig: pytest.Config) -> str:
    """`--target`, else TARGET, else understudy."""
    return str(pytestconfig.getoption("--target", default=None) or os.environ.get("TARGET", "understudy"))


@pytest.fixture(scope="session")
def runs(request: pytest.FixtureRequest, target_name: str) -> Iterator[Runs]:
    """The session's runs against one cluster of three brokers."""
    if target_name == "kafka":
        targets.prepare_kafka()
    cluster = targets.start(3, target_name)
    running = Runs(cluster)
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("terminated"))  # so that no broker is left behind
    drivers = {driver.name: driver for driver in map(_driver_of, request.session.items) if driver is not None}
    running.start(sorted(drivers.values(), key=lambda driver: (driver.name not in SLOW_FIRST, driver.name)))
    try:
        yield running
    finally:
        running.close()
        cluster.close()
        request.config.stash[TABLE] = [f"against {cluster.name}, {cluster.brokers} brokers", *running.table()]


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
