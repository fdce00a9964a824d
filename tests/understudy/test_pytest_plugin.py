from collections.abc import Iterator
from importlib.metadata import entry_points

import pytest

from tests.understudy.fake import FakeProcess
from understudy.client import cluster as cluster_module
from understudy.launcher import ServerProcess

FAULT = {"id": "f1", "hits": 0, "match": {"api": "EndTxn"}, "do": {"drop": True}}


FOR_TESTS = "--for-tests"


@pytest.fixture(autouse=True)
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FakeProcess]]:
    """The server processes that the inner session started; all have ended when it has."""
    started: list[FakeProcess] = []
    monkeypatch.setattr(FakeProcess, "started", started)
    monkeypatch.setattr(FakeProcess, "answers", {})
    monkeypatch.setattr(cluster_module, "ServerProcess", FakeProcess)
    yield started
    assert [process for process in started if process.alive] == []


def run(pytester: pytest.Pytester, code: str, *arguments: str) -> pytest.RunResult:
    """Run a test file in a session of its own."""
    pytester.makepyfile(code)
    loaded = [] if entry_points(group="pytest11", name="understudy") else ["-p", "understudy.pytest_plugin"]
    unused = [part for name in ("cacheprovider", "xdist", "hypothesispytest") for part in ("-p", f"no:{name}")]
    scope = ("-o", "asyncio_default_fixture_loop_scope=function")
    return pytester.runpytest_inprocess(*loaded, *unused, *scope, *arguments)


def test_one_process_serves_the_session_and_is_reset_between_tests(
    pytester: pytest.Pytester, processes: list[FakeProcess]
) -> None:
    """The first test gets it fresh, the second reset: without the clients of before, at an address of its own."""
    code = """
        def test_one(kafka): assert kafka.bootstrap_servers != kafka.aio.bootstrap_servers + "0"
        def test_two(kafka):
            kafka.health()
            assert kafka.bootstrap_servers == kafka.aio.bootstrap_servers == "127.0.0.1:2"
    """
    run(pytester, code).assert_outcomes(passed=2)
    assert len(processes) == 1
    assert processes[0].control.seen[1] == ("POST", "/v1/reset", {"disconnect": True})
    assert [path for _, path, _ in processes[0].control.seen] == [
        *("/v1/faults?unmet=true", "/v1/reset", "/v1/health", "/v1/faults?unmet=true"),
    ]


def test_the_marker_chooses_the_cluster(pytester: pytest.Pytester, processes: list[FakeProcess]) -> None:
    """A test's marker wins over its module's; equal arguments share a process."""
    code = """
        import pytest
        pytestmark = pytest.mark.kafka(brokers=3, seed=1)
        def test_one(kafka): pass
        @pytest.mark.kafka(seed=2)
        def test_two(kafka): pass
        @pytest.mark.kafka(seed=1)
        def test_three(kafka): pass
    """
    run(pytester, code, "--strict-markers").assert_outcomes(passed=3)
    assert [process.options[4:] for process in processes] == [
        [FOR_TESTS, "--brokers", "3", "--seed", "1"],
        [FOR_TESTS, "--brokers", "3", "--seed", "2"],
    ]


def test_clients_do_not_pause_unless_the_test_wants_it(pytester: pytest.Pytester, processes: list[FakeProcess]) -> None:
    """`--for-tests`, which lets each setting of the marker go first; without it, all is as in Kafka."""
    code = """
        import pytest
        @pytest.mark.kafka(settings={"num.partitions": 2})
        def test_one(kafka): pass
        @pytest.mark.kafka(for_tests=False)
        def test_two(kafka): pass
    """
    run(pytester, code).assert_outcomes(passed=2)
    assert [process.options[4:] for process in processes] == [[FOR_TESTS, "--set", "num.partitions=2"], []]


def test_each_call_of_the_factory_gets_its_own_cluster(pytester: pytest.Pytester, processes: list[FakeProcess]) -> None:
    """Two in one test are two processes; the next test gets one of them."""
    code = """
        def test_two_at_once(kafka_cluster):
            first, second = kafka_cluster(brokers=2), kafka_cluster(brokers=2)
            assert first.control_url != second.control_url
        def test_another(kafka_cluster):
            kafka_cluster(brokers=2)
    """
    run(pytester, code).assert_outcomes(passed=2)
    assert len(processes) == 2


def test_a_fault_that_no_request_met_fails_the_test(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test itself fails, not its teardown, and the fault is printed."""
    monkeypatch.setattr(FakeProcess, "answers", {"POST /v1/faults": FAULT, "GET /v1/faults": {"faults": [FAULT]}})
    result = run(pytester, "def test_it(kafka): kafka.faults.add(api='EndTxn', drop=True)")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["no request met these faults:", '*{"match": {"api": "EndTxn"}, "do": {"drop": true}}'])


def test_an_optional_fault_may_be_missed(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """With optional=True, the test passes without a hit."""
    monkeypatch.setattr(FakeProcess, "answers", {"POST /v1/faults": FAULT, "GET /v1/faults": {"faults": [FAULT]}})
    code = "def test_it(kafka): kafka.faults.add(optional=True, api='EndTxn', drop=True)"
    run(pytester, code).assert_outcomes(passed=1)


STORY = {
    "GET /v1/report": {
        "text": "as one text",
        "requests": [{"id": 1, "at_ms": 5, "text": "12:00:03.120 broker 1 b: EndTxn v4 -> PRODUCER_FENCED (0.3 ms)"}],
        "refusals": [
            {"subject": "transactional id x", "error": "PRODUCER_FENCED", "why": "fenced: client b came later"},
            {"subject": "group g", "error": "ILLEGAL_GENERATION", "why": "another generation"},
        ],
        "hints": ["topic 'order' does not exist; did you mean orders?"],
    },
    "GET /v1/journal.pcap": b"pcap",
}


def test_a_failing_test_shows_what_the_cluster_saw(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Last requests, why it refused, the server's log; and the journal is kept where asked."""
    monkeypatch.setattr(FakeProcess, "answers", STORY)
    result = run(pytester, "def test_it(kafka): assert not kafka", "--kafka-journal", "kept")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*understudy: last requests*",
            "12:00:03.120 broker 1 b: EndTxn v4 -> PRODUCER_FENCED (0.3 ms)",
            "*understudy: why requests were refused*",
            "transactional id x: fenced: client b came later",
            "group g: another generation",
            "*understudy: hints*",
            "topic 'order' does not exist; did you mean orders[?]",
            "*understudy: the server's log*",
            "the last of 30 lines",
        ]
    )
    result.stdout.no_fnmatch_line("*as one text*")
    kept = sorted(path.name for path in (pytester.path / "kept").iterdir())
    assert kept == [f"{result_name(pytester)}-1.json", f"{result_name(pytester)}-1.pcap"]


def test_a_journal_that_cannot_be_kept_does_not_end_the_session(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report of the test has the reason; further tests run."""
    monkeypatch.setattr(FakeProcess, "answers", STORY)
    (pytester.path / "kept").touch()
    two = "def test_it(kafka): assert not kafka\ndef test_another(): pass"
    result = run(pytester, two, "--kafka-journal", "kept/journals")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*understudy: the journal*", "--kafka-journal cannot be written: *"])


def test_a_journal_is_kept_in_the_folder_of_the_session(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in that in which a test happens to be; and tests whose names differ in odd characters have one each."""
    monkeypatch.setattr(FakeProcess, "answers", STORY)
    code = """
        import pytest
        @pytest.mark.parametrize("name", ["a/b", "a b", "x" * 300])
        def test_it(kafka, tmp_path, monkeypatch, name):
            monkeypatch.chdir(tmp_path)
            assert not kafka
    """
    run(pytester, code, "--kafka-journal", "kept").assert_outcomes(failed=3)
    kept = [path for path in (pytester.path / "kept").iterdir() if path.suffix == ".json"]
    assert len(kept) == 3


def test_a_cluster_that_cannot_be_reset_is_stopped_at_the_end(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, processes: list[FakeProcess]
) -> None:
    """One whose data directory must be kept: each further test has the reason, its process and folder are not left."""
    problem = {"title": "Conflict", "detail": "DIR is not ours", "status": 409}
    monkeypatch.setattr(FakeProcess, "answers", {"POST /v1/reset": (409, problem)})
    code = """
        def test_one(kafka): pass
        def test_two(kafka): pass
        def test_three(kafka): pass
    """
    result = run(pytester, code)
    result.assert_outcomes(passed=1, errors=2)
    assert result.stdout.str().count("the cluster of the previous test cannot be reset") >= 2
    assert len(processes) == 1


def result_name(pytester: pytest.Pytester) -> str:
    """How the test file's one test is called in a file's name."""
    return f"{next(pytester.path.glob('test_*.py')).name}_test_it"


def test_a_server_that_dies_during_a_test_is_named(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, without a traceback, also if the test noticed nothing; the next test gets a new server; one may stop it."""
    monkeypatch.setattr(cluster_module, "ServerProcess", ServerProcess)
    code = """
        import os, pytest, signal
        def kill(kafka):
            os.kill(kafka.process.process.pid, signal.SIGKILL)
        def test_that_notices(kafka):
            kill(kafka)
            kafka.reset()
        def test_that_does_not(kafka):
            kafka.reset()
            kill(kafka)
            kafka.process.process.wait()
        def test_that_kills_it_last(kafka):
            kill(kafka)
        def test_that_fails_by_itself(kafka):
            kill(kafka)
            assert False, "its own reason"
        def test_that_stops_it(kafka):
            kafka.stop()
        def test_after_it(kafka):
            kafka.reset()
    """
    result = run(pytester, code)
    result.assert_outcomes(passed=2, failed=4)
    for test in ("test_that_notices", "test_that_does_not", "test_that_kills_it_last", "test_that_fails_by_itself"):
        part = result.stdout.str().split(f"_ {test} _")[1].split("\n____")[0].split("short test summary")[0]
        assert part.count("was killed by signal 9 during this test") == 1, part
    result.stdout.no_fnmatch_line("*http*client*")
    result.stdout.no_fnmatch_line("*Unreachable*")


def test_a_fixture_of_a_wider_scope_is_shown_the_others(pytester: pytest.Pytester) -> None:
    """`kafka` belongs to one test; the others are named."""
    code = """
        import pytest
        @pytest.fixture(scope="module")
        def application(kafka): pass
        def test_it(application): pass
    """
    result = run(pytester, code)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["for a fixture of a module or a session there are kafka_module and kafka_session"])


def test_a_marker_without_a_cluster_is_no_silent_pass(pytester: pytest.Pytester, processes: list[FakeProcess]) -> None:
    """A marker of the test itself; one of the module is for those of its tests that use a cluster."""
    code = """
        import pytest
        pytestmark = pytest.mark.kafka(seed=1)
        @pytest.mark.kafka(brokers=3)
        def test_marked(): pass
        def test_other(): pass
        @pytest.mark.kafka(brokers=3)
        def test_with_a_cluster(request):
            request.getfixturevalue("kafka")
    """
    result = run(pytester, code)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["the test has the marker kafka and uses no cluster: add the argument `kafka`"])
    assert len(processes) == 1


def test_a_server_that_died_is_replaced(pytester: pytest.Pytester, processes: list[FakeProcess]) -> None:
    """After a server has died the next test gets a new one."""
    code = """
        def test_one(kafka): kafka.process.stop()
        def test_two(kafka): kafka.health()
    """
    run(pytester, code).assert_outcomes(passed=2)
    assert len(processes) == 2


def test_a_shared_server_that_died_is_replaced(pytester: pytest.Pytester, processes: list[FakeProcess]) -> None:
    """With the fixtures that use it, for the next test, whose report mentions it if it fails; other fixtures stay."""
    code = """
        import pytest

        @pytest.fixture(scope="session")
        def lasting(): return object()

        @pytest.fixture(scope="session")
        def application(kafka_session, lasting): return kafka_session.process, lasting

        def test_one(application, kafka_session, kafka_module):
            global first
            first = application
            application[0].stop()
            kafka_module.process.stop()

        def test_two(application, kafka_session, kafka_module):
            assert application[0] is kafka_session.process is not first[0]
            assert application[1] is first[1]
            kafka_session.health(), kafka_module.health()

        def test_three(application, kafka_session, kafka_module):
            assert application[0] is kafka_session.process
    """
    run(pytester, code).assert_outcomes(passed=3)
    assert len(processes) == 4


def test_a_shared_server_that_was_killed_is_reported(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the test that killed it, and by the next one, if it fails as what earlier tests had made is gone."""
    monkeypatch.setattr(cluster_module, "ServerProcess", ServerProcess)
    code = """
        import os, signal
        def test_one(kafka_session, kafka_module):
            os.kill(kafka_session.process.process.pid, signal.SIGKILL)
            kafka_session.process.process.wait()
        def test_two(kafka_session, kafka_module):
            kafka_session.topics.list(), kafka_module.topics.list()
            assert False, "its own reason"
        def test_three(kafka_session):
            kafka_session.topics.list()
    """
    result = run(pytester, code)
    result.assert_outcomes(passed=1, failed=2)
    text = result.stdout.str()
    assert text.count("was killed by signal 9 during this test") >= 1
    assert text.count("was killed by signal 9 before this test, for which kafka_session has a new cluster") == 1
    assert "kafka_module has a new cluster" not in text


SHARED = """
    import pytest
    pytestmark = pytest.mark.kafka(brokers=2)

    @pytest.fixture(scope="session")
    def kafka_session_options(): return {"brokers": 3}

    @pytest.fixture(scope="module")
    def application(kafka_module): return kafka_module.bootstrap_servers

    def test_one(application, kafka_module, kafka_session): kafka_module.health()
    def test_two(application, kafka_module, kafka_session, kafka): assert kafka not in (kafka_module, kafka_session)
    def test_three(kafka_module): assert kafka_module.bootstrap_servers
"""


def test_a_module_and_a_session_share_a_cluster_each(pytester: pytest.Pytester, processes: list[FakeProcess]) -> None:
    """Nothing is reset between their tests, and `kafka` is another cluster all the same."""
    run(pytester, SHARED).assert_outcomes(passed=3)
    assert [process.options[process.options.index("--brokers") + 1] for process in processes] == ["3", "2", "2"]
    assert [path for process in processes for _, path, _ in process.control.seen if path == "/v1/reset"] == []


def test_the_report_of_a_failed_test_shows_shared_clusters(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The module's own, too. A fault that an earlier test left unmet is not the next one's."""
    monkeypatch.setattr(FakeProcess, "answers", STORY | {"GET /v1/faults": {"faults": [FAULT]}})
    result = run(pytester, "def test_one(kafka_module): pass\ndef test_two(kafka_module): assert not kafka_module")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*understudy: last requests*", "*broker 1 b: EndTxn v4 -> PRODUCER_FENCED*"])


def test_an_equal_fault_of_an_earlier_test_is_another_one(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each test of a shared cluster answers for its own faults."""
    monkeypatch.setattr(FakeProcess, "answers", {"POST /v1/faults": FAULT, "GET /v1/faults": {"faults": [FAULT]}})
    code = """
        def test_one(kafka_module): pass
        def test_two(kafka_module):
            kafka_module.faults.add(api="EndTxn", drop=True)
            faults = kafka_module.process.control.answers["GET /v1/faults"]["faults"]
            faults.append({**faults[0], "id": "f2"})
    """
    run(pytester, code).assert_outcomes(passed=1, failed=1)


def test_the_report_of_a_shared_cluster_begins_with_the_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, processes: list[FakeProcess]
) -> None:
    """With the time of its setup, so that consumers of earlier tests are known as such; the test's own has all."""
    clock = {"now_ms": 1_795_470_000_000, "frozen": False}
    monkeypatch.setattr(FakeProcess, "answers", STORY | {"GET /v1/clock": clock})
    code = """
        def test_one(kafka_module): assert not kafka_module
        def test_two(kafka_module): assert not kafka_module
    """
    run(pytester, code).assert_outcomes(failed=2)
    (process,) = processes
    report_paths = [path for _, path, _ in process.control.seen if path.startswith("/v1/report")]
    assert report_paths == ["/v1/report?since=0", "/v1/report?since=1795470000000"]


def test_asynchronous_tests_use_the_same_fixture(pytester: pytest.Pytester) -> None:
    """With pytest-asyncio and with anyio's own plugin."""
    code = """
        import pytest
        @pytest.mark.asyncio
        async def test_asyncio(kafka): assert (await kafka.aio.health()).status == "ok"
        @pytest.mark.anyio
        @pytest.mark.parametrize("anyio_backend", ["asyncio"])
        async def test_anyio(kafka, anyio_backend): assert (await kafka.aio.health()).status == "ok"
    """
    run(pytester, code, "-o", "asyncio_mode=strict").assert_outcomes(passed=2)


def test_a_marker_with_positional_arguments_is_refused(pytester: pytest.Pytester) -> None:
    """A marker with positional arguments is refused in a sentence that names the test."""
    code = """
        import pytest
        @pytest.mark.kafka(3)
        def test_it(kafka): pass
    """
    result = run(pytester, code)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*@pytest.mark.kafka takes keyword arguments only, such as*"])


def test_an_unknown_option_is_refused_in_one_sentence(pytester: pytest.Pytester) -> None:
    """With the nearest name, and without a walk through our code."""
    code = """
        import pytest
        @pytest.mark.kafka(broker=3)
        def test_it(kafka): pass
    """
    result = run(pytester, code)
    result.assert_outcomes(errors=1)
    sentence = "no cluster for this test: understudy.start has no option 'broker' (did you mean brokers[?])"
    result.stdout.fnmatch_lines([sentence])
    result.stdout.no_fnmatch_line("*pytest_plugin.py*")


def test_a_session_that_asks_for_no_cluster_starts_none(
    pytester: pytest.Pytester, processes: list[FakeProcess]
) -> None:
    """The plugin costs nothing to those who do not use it."""
    run(pytester, "def test_it(): pass").assert_outcomes(passed=1)
    assert processes == []
