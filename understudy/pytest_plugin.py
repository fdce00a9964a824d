"""pytest: the fixtures `kafka`, `kafka_module`, `kafka_session`, `kafka_cluster`, and the marker `@pytest.mark.kafka`.

Also the fixture `sim` and the marker `@pytest.mark.kafka_simulation`: :mod:`understudy.pytest_simulation`.

A session starts a server process when a test first needs one, and resets it for each later test; workers of
pytest-xdist share a server, in which each has a cluster of its own (`understudy.pytest_pool`). A reset disconnects all
clients and moves the listeners, so that a consumer that a test left open does not join the groups of the next one. A
test fails if a fault of it matched no request. The report of a failed test shows the last requests, the unmet faults,
and why the cluster refused requests.
"""

import json
import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Unpack

import pytest

from understudy import pytest_simulation
from understudy.errors import UnderstudyError, Unreachable
from understudy.pytest_pool import Pool
from understudy.pytest_simulation import sim as sim  # noqa: PLC0414 - a fixture of this plugin

if TYPE_CHECKING:  # sessions without a cluster do not import the client
    from understudy.client import Cluster
    from understudy.options import StartOptions

LONGEST_NAME = 180  # below the 255 bytes of a file name, with a suffix
ENDING_PATIENCE_S = 1.0
"""For a server that does not answer: time within which its process may turn out to have ended."""

POOL = pytest.StashKey[Pool]()
CLUSTERS: "pytest.StashKey[list[Cluster]]" = pytest.StashKey()
REQUESTS = pytest.StashKey[dict[int, pytest.FixtureRequest]]()
"""The requests of `kafka_module` and `kafka_session`, by their clusters."""
BEGAN = pytest.StashKey[dict[int, int]]()
"""The time of each shared cluster at the start of the test."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --kafka-journal, --kafka-server and --kafka-fresh."""
    group = parser.getgroup("understudy", "a mock Kafka cluster")
    group.addoption("--kafka-journal", metavar="DIR", help="folder for the wire journals of failed tests")
    group.addoption(
        "--kafka-server",
        choices=("shared", "own"),
        help="shared with all other test processes of this user, the default with pytest-xdist; or their own",
    )
    group.addoption(
        "--kafka-fresh",
        action="store_true",
        help="a new cluster for each test, where the server is shared; not a reset",
    )
    pytest_simulation.addoption(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        "kafka_simulation(seeds=20, minutes=0.5, brokers=3, topics={}, faults='all', settings={}): the seeds and the "
        "cluster of a test with the fixture `sim`",
    )
    config.addinivalue_line(
        "markers", "kafka(**options): options of the cluster of the fixture `kafka`, as in understudy.start()"
    )
    server = config.getoption("kafka_server") or ("shared" if hasattr(config, "workerinput") else "own")
    config.stash[POOL] = Pool(shares=server == "shared", fresh=config.getoption("kafka_fresh"))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop all servers."""
    if POOL in config.stash:
        config.stash[POOL].close()


def options_of(node: pytest.Item) -> dict[str, Any]:
    """Return the options of the markers; a test's override its class's, which override its module's."""
    options: dict[str, Any] = {}
    for marker in reversed(list(node.iter_markers("kafka"))):
        if marker.args:
            such = "such as @pytest.mark.kafka(brokers=3, topics={'orders': 3})"
            pytest.fail(f"@pytest.mark.kafka takes keyword arguments only, {such}", pytrace=False)
        options |= marker.kwargs
    return options


def is_own(item: pytest.Item, cluster: "Cluster") -> bool:
    """Return whether the cluster belongs to this test alone."""
    return CLUSTERS in item.stash and cluster in item.stash[CLUSTERS]


def cluster_for(request: pytest.FixtureRequest, options: dict[str, Any]) -> "Cluster":
    """Yield a cluster for a test, a module or the session, and return it to the pool at the end."""
    pool = request.config.stash[POOL]
    cluster, problem = None, ""
    try:
        cluster = pool.take({"for_tests": True, **options}, request.node.nodeid or "session")
    except (UnderstudyError, TypeError) as error:
        problem = str(error)
    if cluster is None:  # one sentence about the options instead of a traceback through this plugin
        pytest.fail(f"no cluster for this test: {problem}", pytrace=False)
    used = request.node.stash.setdefault(CLUSTERS, [])
    used.append(cluster)
    requests = request.node.stash.setdefault(REQUESTS, {})
    requests[id(cluster)] = request

    def give_back() -> None:
        used.remove(cluster)
        del requests[id(cluster)]
        pool.give_back(cluster)

    request.addfinalizer(give_back)
    return cluster


def clusters_of(item: pytest.Item) -> "list[Cluster]":
    """Return the clusters of this test: the session's, the module's, and its own, in the order of their creation."""
    return [cluster for node in item.listchain() if CLUSTERS in node.stash for cluster in node.stash[CLUSTERS]]


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> "Cluster":
    """Return a newly started cluster, controlled by its methods; clients connect to `kafka.bootstrap_servers`.

    It has Kafka's defaults, except those that would make clients pause in each test (`understudy serve --for-tests`):
    new groups do not wait for further members, heartbeat intervals are short, and the response that creates a topic
    already contains it. Settings of the marker override them.
    """
    return cluster_for(request, options_of(request.node))


@pytest.fixture(scope="module")
def kafka_module(request: pytest.FixtureRequest) -> "Cluster":
    """Return a cluster that the tests of a module share without a reset. Options: a marker on the module."""
    return cluster_for(request, options_of(request.node))


@pytest.fixture(scope="session")
def kafka_session_options() -> "StartOptions":
    """Return options of `kafka_session`, as in `understudy.start()`: override this fixture in conftest.py."""
    return {}


@pytest.fixture(scope="session")
def kafka_session(request: pytest.FixtureRequest, kafka_session_options: "StartOptions") -> "Cluster":
    """Return a cluster that all tests of the session share (with pytest-xdist: of each worker) without a reset."""
    return cluster_for(request, dict(kafka_session_options))


@pytest.fixture
def kafka_cluster(request: pytest.FixtureRequest) -> "Callable[..., Cluster]":
    """Return a factory, `kafka_cluster(brokers=3, ...)`, of further clusters that live as long as the test."""

    def make(**options: "Unpack[StartOptions]") -> "Cluster":
        return cluster_for(request, dict(options))

    return make


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    """Replace ended clusters that this test shares with earlier ones; record the time of the others for its report."""
    replace_ended(item)
    item.stash[BEGAN] = {id(cluster): now_ms(cluster) for cluster in clusters_of(item)}
    return (yield)


def replace_ended(item: pytest.Item) -> None:
    """Tear down `kafka_module` and `kafka_session` if their server has ended, and the fixtures that use them.

    They are set up again for this test, whose report mentions it if it fails. The test during which the server
    ended has failed.
    """
    pool = item.config.stash[POOL]
    for node in item.listchain()[:-1]:
        for cluster in [*node.stash.get(CLUSTERS, ())]:
            if not pool.is_running(cluster):
                ending = pool.ending(cluster) or "the server was stopped"
                request = node.stash[REQUESTS][id(cluster)]
                definition: Any = request._fixturedef  # type: ignore[attr-defined]  # noqa: SLF001 - there is no public way
                definition.finish(request)
                text = f"{ending} before this test, for which {definition.argname} has a new cluster"
                item.add_report_section("setup", "understudy", text)


def now_ms(cluster: "Cluster") -> int:
    """Return the cluster's time; 0 if it is gone, which the test will notice."""
    try:
        return cluster.clock.show().now_ms
    except (UnderstudyError, TypeError):
        return 0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Play a test with the fixture `sim` on virtual time."""
    if not pytest_simulation.is_simulated(pyfuncitem):
        return None
    pytest_simulation.play(pyfuncitem)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Fail a passed test if no request matched one of its faults; faults of earlier tests do not count.

    A test whose server ended fails with that sentence, not with errors that follow from it. A test with a marker of its
    own that uses no cluster fails, as it would test nothing of Kafka.
    """
    shared = [cluster for cluster in clusters_of(item) if not is_own(item, cluster)]
    earlier = {(id(cluster), each) for cluster in shared for each in unmet_faults(cluster) or ()}
    try:
        result = yield
    except Unreachable:
        fail_if_ended(item, ENDING_PATIENCE_S)
        raise
    fail_if_ended(item)
    if any(marker.name == "kafka" for marker in item.own_markers) and not clusters_of(item):
        pytest.fail("the test has the marker kafka and uses no cluster: add the argument `kafka`", pytrace=False)
    unmet = []
    for cluster in clusters_of(item):
        faults = unmet_faults(cluster)
        if faults is None:  # it may have been killed in the last line, and still be ending
            fail_if_ended(item, ENDING_PATIENCE_S)
        unmet += [line for each, line in (faults or {}).items() if (id(cluster), each) not in earlier]
    if unmet:
        pytest.fail("no request met these faults:\n" + "\n".join(unmet), pytrace=False)
    return result


def fail_if_ended(item: pytest.Item, patience_s: float = 0.0) -> None:
    """Fail the test if the server of one of its clusters has ended, without the traceback of what noticed it."""
    endings = [item.config.stash[POOL].ending(cluster, patience_s) for cluster in clusters_of(item)]
    if any(endings):
        pytest.fail(f"{', '.join(filter(None, endings))} during this test", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the cluster's requests, faults and refusals to the report of a failed test."""
    report = yield
    if report.when == "setup" and re.search(r"ScopeMismatch.*fixture kafka\b", str(report.longrepr), re.DOTALL):
        report.sections.append(
            ("understudy", "for a fixture of a module or a session there are kafka_module and kafka_session")
        )
    if report.failed and report.when != "teardown":
        used = clusters_of(item)
        is_known = str(report.longrepr).endswith(" during this test")
        for number, cluster in enumerate(used, start=1):
            since_ms = item.stash.get(BEGAN, {}).get(id(cluster), 0)
            title = "understudy" if len(used) == 1 else f"understudy, cluster {number}"
            report.sections += [
                (f"{title}: {part}", text)
                for part, text in story(cluster, item.config.stash[POOL], since_ms, is_known=is_known)
            ]
            try:
                keep_journal(item, cluster, number)
            except OSError as error:  # the report of the test is worth more than its journal
                text = f"--kafka-journal cannot be written: {error}"
                report.sections.append((f"{title}: the journal", text))
    return report


def unmet_faults(cluster: "Cluster") -> dict[str, str] | None:
    """Return id -> a line, for each fault that no request matched; None if the cluster is gone."""
    try:
        return {state.id: f"  {json.dumps({'match': state.match, 'do': state.do})}" for state in cluster.faults.unmet()}
    except UnderstudyError:
        return None


def story(cluster: "Cluster", pool: Pool, since_ms: int = 0, *, is_known: bool = False) -> Iterator[tuple[str, str]]:
    """Return titles and texts for the report; sections that a dead cluster cannot provide are left out.

    `is_known`: the failure itself is that the server ended.
    """
    try:
        report = cluster.report(since=since_ms)
        yield "last requests", "\n".join(request.text for request in report.requests) or "none"
        unmet = unmet_faults(cluster)
        if unmet:
            yield "unmet faults", "\n".join(unmet.values())
        if report.refusals:
            yield (
                "why requests were refused",
                "\n".join(f"{refusal.subject}: {refusal.why}" for refusal in report.refusals),
            )
        for diagram in report.diagrams:
            title, _, lines = diagram.partition("\n")
            yield f"what happened, {title[0].lower()}{title[1:]}", lines
        if report.hints:
            yield "hints", "\n".join(report.hints)
    except (UnderstudyError, TypeError) as error:
        ending = pool.ending(cluster)
        if not ending:
            yield "the cluster does not answer", str(error)
        elif not is_known:  # it is not the test's own failure
            yield "the server", f"{ending} during this test"
    log = pool.log(cluster)
    if log:
        yield "the server's log", log


def file_name(test: str) -> str:
    """Return a file name for a test, unique even if test names differ only in characters that are not allowed."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "_", test)
    parameters = test.partition("[")[2].removesuffix("]")
    if len(name) <= LONGEST_NAME and re.fullmatch(r"[A-Za-z0-9_.-]*", parameters):
        return name
    # Four bytes distinguish the few tests whose names begin alike.
    return f"{name[:LONGEST_NAME]}-{blake2b(test.encode(errors='replace'), digest_size=4).hexdigest()}"


def keep_journal(item: pytest.Item, cluster: "Cluster", number: int) -> None:
    """With --kafka-journal DIR: write the whole journal as JSON, and as a capture for Wireshark."""
    folder = item.config.getoption("--kafka-journal")
    if not folder:
        return
    # Relative to where the session started, as the test may have changed its working directory.
    stem = item.config.invocation_params.dir / folder / f"{file_name(item.nodeid)}-{number}"
    stem.parent.mkdir(parents=True, exist_ok=True)
    try:
        entries = [asdict(entry) for entry in cluster.journal.find()]
        stem.with_name(stem.name + ".json").write_text(json.dumps(entries, indent=1), encoding="utf-8")
        stem.with_name(stem.name + ".pcap").write_bytes(cluster.journal.pcap())
    except UnderstudyError as error:
        stem.with_name(stem.name + ".txt").write_text(f"{error}\n{cluster.log()}", encoding="utf-8")
