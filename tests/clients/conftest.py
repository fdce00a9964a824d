"""One cluster for the session, and every collected client played against it once."""

import os
import signal
from pathlib import Path

import pytest

from tests.clients import targets
from tests.clients.drivers import Driver, Runs

RUNS = pytest.StashKey[Runs]()
TABLE = pytest.StashKey[list[str]]()
# What takes longest begins first.
SLOW_FIRST = ("rust-rdkafka", "kafka-tools-4.3.1", "confluent-kafka-javascript", "franz-go", "franz-go-transactions")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The cluster to drive the clients against."""
    parser.addoption("--target", default=None, help="understudy (default), kafka or HOST:PORT,...; also TARGET")


def target_of(config: pytest.Config) -> str:
    """`--target`, else TARGET, else understudy."""
    return str(config.getoption("--target", default=None) or os.environ.get("TARGET", "understudy"))


@pytest.fixture(scope="session")
def target_name(pytestconfig: pytest.Config) -> str:
    """The kind of cluster that clients are driven against."""
    return target_of(pytestconfig)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Begin to play the clients whose steps are wanted: most of a run is waiting, so it goes on beside other tests.

    Workers of pytest-xdist share what their drivers print; each plays one at a time.
    """
    drivers = {driver.name: driver for driver in map(_driver_of, session.items) if driver is not None}
    config = session.config
    if not drivers or config.option.collectonly:
        return
    target = target_of(config)
    if target == "kafka":
        targets.prepare_kafka()
    folder: Path = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    alone = "PYTEST_XDIST_WORKER" not in os.environ
    running = Runs(targets.start(3, target), (folder if alone else folder.parent) / "clients", 2 if alone else 1)
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("terminated"))  # so that no broker is left behind
    config.stash[RUNS] = running
    running.start(sorted(drivers.values(), key=lambda driver: (driver.name not in SLOW_FIRST, driver.name)))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the cluster, when nothing is played on it any more that another worker may wait for."""
    running = session.config.stash.get(RUNS, None)
    if running is not None:
        target = running.target
        running.close()
        target.close()
        session.config.stash[TABLE] = [f"against {target.name}, {target.brokers} brokers", *running.table()]


@pytest.fixture(scope="session")
def runs(pytestconfig: pytest.Config) -> Runs:
    """The session's runs against one cluster of three brokers; workers share what their drivers printed."""
    return pytestconfig.stash[RUNS]


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
