"""pytest: the fixtures `kafka` and `kafka_cluster`, and the marker `@pytest.mark.kafka(brokers=3, ...)`.

A session (with pytest-xdist: each worker) starts a server process when a test first wants one and hands it, reset, to
the tests that follow. A test whose faults no request met fails. A failing test's report tells the last requests, the
unmet faults, and why the cluster refused what it refused.
"""

import json
import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import pytest

from understudy.errors import StartError, UnderstudyError

if TYPE_CHECKING:  # a session that asks for no cluster shall not pay for the client
    from understudy.client import Cluster
    from understudy.results import JournalEntry
    from understudy.wishes import StartOptions

IDLE_LIMIT = 4
LAST_REQUESTS = 20
MOST_WHYS = 50


class Pool:
    """The server processes of this session: lent to one test at a time, kept for the next one that wants the same."""

    def __init__(self) -> None:
        self.idle: list[tuple[str, Cluster]] = []
        self.lent: dict[int, str] = {}

    def take(self, options: dict[str, Any]) -> "Cluster":
        """A fresh or freshly reset cluster with these options."""
        from understudy.client import start

        key = json.dumps(options, sort_keys=True, default=str)
        for spot, (wanted, cluster) in enumerate(self.idle):
            if wanted == key:
                del self.idle[spot]
                if revived(cluster):
                    break
                cluster.stop()
        else:
            cluster = start(**options)
        self.lent[id(cluster)] = key
        return cluster

    def give_back(self, cluster: "Cluster") -> None:
        """Keep it for the next test; of those that wait the longest unused goes when there are too many."""
        key = self.lent.pop(id(cluster))
        if cluster.process is None or not cluster.process.alive:
            cluster.stop()
            return
        self.idle.append((key, cluster))
        while len(self.idle) > IDLE_LIMIT:
            self.idle.pop(0)[1].stop()

    def close(self) -> None:
        """Stop them all."""
        for _, cluster in self.idle:
            cluster.stop()
        self.idle.clear()


def revived(cluster: "Cluster") -> bool:
    """Reset it; False if it has died or does not answer."""
    try:
        cluster.reset()
    except UnderstudyError:
        return False
    return True


POOL = pytest.StashKey[Pool]()
LENT: "pytest.StashKey[list[Cluster]]" = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """--kafka-journal."""
    group = parser.getgroup("understudy", "a mock Kafka cluster")
    group.addoption("--kafka-journal", metavar="DIR", help="keep the wire journal of failed tests there")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers", "kafka(**options): options of the cluster of the fixture `kafka`, as in understudy.start()"
    )
    config.stash[POOL] = Pool()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop what was started."""
    if POOL in config.stash:
        config.stash[POOL].close()


def options_of(node: pytest.Item) -> dict[str, Any]:
    """The marker's options; those of a test win over its class's, those over its module's."""
    said: dict[str, Any] = {}
    for marker in reversed(list(node.iter_markers("kafka"))):
        if marker.args:
            such = "such as @pytest.mark.kafka(brokers=3, topics={'orders': 3})"
            pytest.fail(f"@pytest.mark.kafka takes keyword arguments only, {such}", pytrace=False)
        said |= marker.kwargs
    return said


def lend(request: pytest.FixtureRequest, options: dict[str, Any]) -> "Cluster":
    """A cluster for this test, given back when the test is over."""
    pool = request.config.stash[POOL]
    cluster, problem = None, ""
    try:
        cluster = pool.take(options)
    except (StartError, TypeError) as error:
        problem = str(error)
    if cluster is None:  # a sentence for whoever wrote the options, not a walk through our code
        pytest.fail(f"no cluster for this test: {problem}", pytrace=False)
    request.node.stash.setdefault(LENT, []).append(cluster)
    request.addfinalizer(lambda: pool.give_back(cluster))
    return cluster


def lent_to(item: pytest.Item) -> "list[Cluster]":
    """The clusters of this test, in the order in which it asked."""
    return item.stash[LENT] if LENT in item.stash else []  # noqa: SIM401 - the stash's get() loses the type


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> "Cluster":
    """A cluster as just started, steered by its methods; clients connect to `kafka.bootstrap_servers`."""
    return lend(request, options_of(request.node))


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> "Callable[..., Cluster]":
    """A factory, `kafka_cluster(brokers=3, ...)`, of further clusters for as long as the test runs."""

    def make(**options: "Unpack[StartOptions]") -> "Cluster":
        return lend(request, dict(options))

    return make


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a test that passed although a fault of it was never met."""
    result = yield
    unmet = [line for cluster in lent_to(item) for line in unmet_faults(cluster)]
    if unmet:
        pytest.fail("no request met these faults:\n" + "\n".join(unmet), pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell what the cluster saw, in the report of a test that failed."""
    report = yield
    if report.failed and report.when != "teardown":
        lent = lent_to(item)
        for number, cluster in enumerate(lent, start=1):
            title = "understudy" if len(lent) == 1 else f"understudy, cluster {number}"
            report.sections += [(f"{title}: {part}", text) for part, text in story(cluster)]
            keep_journal(item, cluster, number)
    return report


def unmet_faults(cluster: "Cluster") -> list[str]:
    """One line for each fault that no request met; none if the cluster is gone, which the test has noticed."""
    try:
        return [f"  {json.dumps({'match': state.match, 'do': state.do})}" for state in cluster.faults.unmet()]
    except UnderstudyError:
        return []


def story(cluster: "Cluster") -> Iterator[tuple[str, str]]:
    """Titles and texts for the report; what cannot be asked any more is left out."""
    from understudy.table import plain

    try:
        entries = [entry for entry in cluster.journal.find(limit=10 * LAST_REQUESTS) if not is_routine(entry)]
        yield "last requests", "\n".join(map(request_line, entries[-LAST_REQUESTS:])) or "none"
        unmet = unmet_faults(cluster)
        if unmet:
            yield "unmet faults", "\n".join(unmet)
        told = [plain(each) for each in whys(cluster)]
        if told:
            yield "why it refused", "\n".join(told)
    except (UnderstudyError, TypeError) as error:
        yield "the cluster does not tell", str(error)
    log = cluster.log()
    if log:
        yield "the server's log", log


def whys(cluster: "Cluster") -> Iterator[str]:
    """The last refusal of each transactional id, producer and group; a producer with a name is told by it."""
    named = set()
    for transaction in cluster.transactions.list():
        named.add(transaction.producer_id)
        refusal = cluster.transactions[transaction.transactional_id].why()
        if refusal.error:
            yield f"{transaction.transactional_id}: {refusal.why}"
    for producer in cluster.producers.list()[-MOST_WHYS:]:
        refusal = cluster.producers[producer.producer_id].why()
        if refusal.error and producer.producer_id not in named:
            yield f"producer {producer.producer_id} ({producer.client_id}): {refusal.why}"
    for group in cluster.groups.list()[-MOST_WHYS:]:
        refusal = cluster.groups[group.group_id].why()
        if refusal.error:
            yield f"group {group.group_id}: {refusal.why}"


def is_routine(entry: "JournalEntry") -> bool:
    """What connected consumers send all the time, and which went well."""
    return entry.api in {"Fetch", "Heartbeat"} and entry.error is None and entry.fault is None


def request_line(entry: "JournalEntry") -> str:
    """A request in one line."""
    from understudy.table import plain

    told = entry.error or ("ok" if entry.outcome == "answered" else entry.outcome)
    parts = [
        f"{entry.at_ms % 86_400_000 / 1000:9.3f}",
        f"broker {entry.broker} connection {entry.connection} {entry.client_id or '-'}:",
        f"{entry.api} v{entry.version}",
        f"-> {told}" + ("" if entry.duration_ms is None else f" ({entry.duration_ms:.1f} ms)"),
        *([f"[fault {entry.fault}]"] if entry.fault else []),
    ]
    return plain(" ".join(parts))


def keep_journal(item: pytest.Item, cluster: "Cluster", number: int) -> None:
    """With --kafka-journal DIR: the whole journal as JSON, and as a capture for Wireshark."""
    folder = item.config.getoption("--kafka-journal")
    if not folder:
        return
    stem = Path(folder) / f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', item.nodeid)}-{number}"
    stem.parent.mkdir(parents=True, exist_ok=True)
    try:
        entries = [asdict(entry) for entry in cluster.journal.find()]
        stem.with_name(stem.name + ".json").write_text(json.dumps(entries, indent=1), encoding="utf-8")
        stem.with_name(stem.name + ".pcap").write_bytes(cluster.journal.pcap())
    except UnderstudyError as error:
        stem.with_name(stem.name + ".txt").write_text(f"{error}\n{cluster.log()}", encoding="utf-8")
