"""Where the rows are asked: of clusters in the test's own process, but those with the mark `sockets`, of servers.

``TARGET=kafka pytest tests/scenarios``: of a real Apache Kafka (``on_kafka``). ``TARGET=server``: all of servers.
``TARGET=proxy``: through `understudy proxy` (``tests.through_proxy``).
"""

import json
import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Protocol

import pytest

from tests.conftest import BrokerWith
from tests.in_process import ServersInProcess
from tests.scenarios import on_kafka
from tests.scenarios.core.asking import create, topic
from tests.scenarios.guarded import Guarded, guarded_by
from tests.scenarios.on_kafka import TARGET, OnKafka, kafkas
from tests.server import Server
from tests.serving import Servers

SERVER = "server"
OUTCOMES = pytest.StashKey[dict[str, tuple[str, str]]]()


class Lasting(Protocol):
    """One broker that can be stopped and started over its data, with these settings."""

    server: Server

    def restart(self) -> Server:
        """Stop and start cleanly; the clock is frozen."""
        ...


class LastingUnderstudy:
    """Ours, in process or not."""

    def __init__(self, started: BrokerWith, data_dir: Path, settings: dict[str, object]) -> None:
        self._started, self._options = started, {"settings": settings, "data_dir": str(data_dir)}
        self.server = self._start()

    def _start(self) -> Server:
        server = self._started(**self._options)
        server.freeze()
        return server

    def restart(self) -> Server:
        """Stop and start."""
        self.server.stop()
        self.server = self._start()
        return self.server


class LastingKafka:
    """A real one."""

    def __init__(self, server: OnKafka) -> None:
        self._kafka = server
        self.server: Server = server

    def restart(self) -> Server:
        """Stop and start."""
        self._kafka.finish_test()
        for verb in ("stop", "start"):
            self._kafka.control("POST", f"/v1/brokers/1/{verb}")
        return self.server


class LastingWith(Protocol):
    """``lasting_with({...})``: a broker with these settings that outlives a restart."""

    def __call__(self, settings: dict[str, object]) -> Lasting:
        """Start it."""
        ...


@pytest.fixture
def guarded(broker_with: BrokerWith) -> Iterator[Guarded]:
    """A broker with an authorizer, and the topics foo and bar, on which the client has no rights yet."""
    if TARGET == "proxy":
        pytest.skip("its clients differ by their addresses, and brokers see the proxy's")
    with guarded_by(broker_with) as stage:
        create(stage.admin, topic("foo"), topic("bar"))
        yield stage


@pytest.fixture(scope="session", autouse=True)
def real_clusters() -> Iterator[None]:
    """End the session's real clusters, if there are any."""
    yield
    on_kafka.end()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests with the mark `also_over_sockets` both ways."""
    if TARGET == "understudy" and metafunc.definition.get_closest_marker("also_over_sockets") is not None:
        metafunc.parametrize("broker_with", ["in process", SERVER], indirect=True)


def over_sockets(item: pytest.Function) -> bool:
    """Whether a test runs on a server's process: all do if the target is one, and those with the mark `sockets`."""
    own = item.callspec.params.get("broker_with") if hasattr(item, "callspec") else None
    return TARGET in {SERVER, "proxy"} or own == SERVER or item.get_closest_marker("sockets") is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that start a server's process."""
    for item in items:
        if isinstance(item, pytest.Function) and "broker_with" in item.fixturenames and over_sockets(item):
            item.add_marker("processes")


@pytest.fixture(scope="session")
def clusters_in_process() -> Iterator[ServersInProcess]:
    """All clusters in process, on one event loop."""
    with ServersInProcess() as running:
        yield running


if TARGET == "kafka":

    @pytest.fixture
    def broker_with() -> Iterator[BrokerWith]:
        """A factory of real clusters."""
        yield kafkas().fresh
        kafkas().finish_test()

    @pytest.fixture
    def lasting_with() -> Iterator[LastingWith]:
        """A factory of real brokers."""

        def started(settings: dict[str, object]) -> Lasting:
            return LastingKafka(kafkas().fresh(settings=settings))

        yield started
        kafkas().finish_test()

else:

    @pytest.fixture
    def broker_with(request: pytest.FixtureRequest) -> Iterator[BrokerWith]:
        """A factory of clusters in process; of servers for a test with the mark `sockets`."""
        fixture = "servers" if over_sockets(request.node) else "clusters_in_process"
        running: Servers | ServersInProcess = request.getfixturevalue(fixture)
        with running.test():
            yield running.fresh

    @pytest.fixture
    def lasting_with(broker_with: BrokerWith, tmp_path: Path) -> LastingWith:
        """A factory of brokers of ours, each over a directory of its own."""
        numbers = count()
        return lambda settings: LastingUnderstudy(broker_with, tmp_path / str(next(numbers)), settings)


# --- what came of each test, for the ledger (tests/differential/rows.py) --------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    """Begin to note outcomes, if ``ROWS_FILE`` asks for them."""
    if os.environ.get("ROWS_FILE"):
        config.stash[OUTCOMES] = {}
        config.pluginmanager.register(Noting(config.stash[OUTCOMES]))


class Noting:
    """Notes the outcome of each test, and why it was skipped or failed."""

    def __init__(self, outcomes: dict[str, tuple[str, str]]) -> None:
        self._outcomes = outcomes

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that fails or is skipped in its set-up has no call."""
        if report.when == "call" or not report.passed:
            why = ""
            if report.skipped and isinstance(report.longrepr, tuple):
                why = report.longrepr[2].removeprefix("Skipped: ")
            elif report.failed:
                why = str(report.longreprtext).strip().splitlines()[-1][:200]
            self._outcomes[report.nodeid] = (report.outcome, why)

    def pytest_sessionfinish(self) -> None:
        """Write them down."""
        Path(os.environ["ROWS_FILE"]).write_text(json.dumps(self._outcomes), encoding="utf-8")
