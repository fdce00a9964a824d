"""One real Kafka and one Understudy for the session, and histories to play on both."""

from collections.abc import Iterator

import pytest

from comparison.histories.run import Histories, Report
from tests.differential.many import clusters, clusters_of_several
from tests.differential.quorum import clusters_of_controllers
from tests.storage.kafka_tools import need_kafka

REPORTS = pytest.StashKey[list[Report]]()


@pytest.fixture(scope="session")
def histories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Histories]:
    """Both clusters, warmed up."""
    need_kafka()
    for (only,) in clusters(tmp_path_factory.mktemp("differential")):
        yield only


@pytest.fixture(scope="session")
def histories_of_three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Histories]:
    """Two clusters of three brokers each."""
    need_kafka()
    yield from clusters_of_several(tmp_path_factory.mktemp("three"))


@pytest.fixture(scope="session")
def histories_of_controllers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Histories]:
    """Two clusters of three controllers and three brokers each."""
    need_kafka()
    yield from clusters_of_controllers(tmp_path_factory.mktemp("controllers"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What the histories asked and covered."""
    for report in config.stash.get(REPORTS, []):
        terminalreporter.section("histories on both")
        for row in report.lines():
            terminalreporter.write_line(row)
