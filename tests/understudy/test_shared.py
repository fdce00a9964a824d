"""One server for the test processes of a user: found, shared, ended with its last user, and its crash reported."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import understudy
from tests.serving import until
from understudy import serve, shared
from understudy.errors import StartError
from understudy.shared import Shared, cluster_of, place

ROOT = Path(__file__).resolve().parents[2]
WORKERS = ("-n", "2")
CODE = """
    import os, pytest
    from confluent_kafka import Consumer, Producer

    @pytest.mark.parametrize("n", range(4))
    @pytest.mark.kafka(topics=["t:1"])
    def test_records(kafka, n):
        assert kafka.topics["t"].partitions[0].show().log_end_offset == 0
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0})
        producer.produce("t", b"v")
        assert producer.flush(60) == 0
        with open(os.environ["SEEN"], "a") as seen:
            print(kafka.control_url, file=seen)
"""


@pytest.fixture(autouse=True)
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for locks of this test's own, with a short path, in which no server is left at the end."""
    with TemporaryDirectory(prefix="understudy-test-") as name:
        monkeypatch.setenv("XDG_RUNTIME_DIR", name)
        monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        yield Path(name)
        until(lambda: not any(Path(name).rglob("*.socket")), "the end of the keeper")


def session(pytester: pytest.Pytester, code: str, *arguments: str) -> pytest.RunResult:
    """Run a test file in a process of its own."""
    pytester.makepyfile(code)
    loaded = [] if entry_points(group="pytest11", name="understudy") else ["-p", "understudy.pytest_plugin"]
    return pytester.runpytest_subprocess(
        *(*loaded, "-p", "no:cacheprovider", "-p", "no:hypothesispytest"),
        *("-o", "asyncio_default_fixture_loop_scope=function", *arguments),
        timeout=90,
    )


def test_a_server_that_does_not_start_is_an_error_with_its_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the last lines of the log, though there never was a connection to the keeper."""
    monkeypatch.setattr(shared, "command", lambda: ["sh", "-c", "exit 1"])
    with pytest.raises(StartError, match=r"the shared server was not ready: $"):
        Shared()
    place().log.write_text("one\nthe reason\n")
    with pytest.raises(StartError, match=r"not ready: one\nthe reason$"):
        Shared()


@pytest.mark.nightly
@pytest.mark.timeout(180)
def test_workers_share_a_server_and_have_clusters_of_their_own(
    pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each test has an empty topic, in a cluster of the server that a user outside of the session sees, too."""
    seen = tmp_path / "seen"
    monkeypatch.setenv("SEEN", str(seen))
    shared = Shared()
    session(pytester, CODE, *WORKERS).assert_outcomes(passed=4)
    urls = seen.read_text().splitlines()
    assert {url.partition("/clusters/")[0] for url in urls} == {shared.control_url}
    with_reset = len(set(urls))
    session(pytester, CODE, *WORKERS, "--kafka-fresh").assert_outcomes(passed=4)
    assert 1 <= with_reset <= 2
    assert len(set(seen.read_text().splitlines())) == with_reset + 4
    kafka = understudy.connect(shared.control_url)
    until(lambda: len(kafka.clusters.list()) == 1, "the end of what the sessions left")
    session(pytester, CODE, *WORKERS, "--kafka-server", "own").assert_outcomes(passed=4)
    assert shared.control_url not in "".join(seen.read_text().splitlines()[8:])
    shared.close()


def test_a_crash_is_reported_to_each_test_that_used_the_server(pytester: pytest.Pytester) -> None:
    """By the test's name and the signal; the next test has a new server."""
    code = """
        import os, signal, pytest
        from understudy.shared import Shared

        def test_one(kafka):
            shared = Shared()
            os.kill(shared.pid, signal.SIGSEGV)
            shared.wait()

        def test_two(kafka):
            assert kafka.health().status == "ok"
    """
    done = session(pytester, code, "-p", "no:xdist", "--kafka-server", "shared")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(
        ["*shared server of the tests (process *) ended by signal 11 (SIGSEGV) during this test*"]
    )


def test_a_user_that_is_killed_leaves_no_cluster() -> None:
    """Its clusters end with it, those of others stay."""
    shared = Shared()
    kafka = understudy.connect(shared.control_url)
    kafka.clusters.create(name="mine", owner=shared.owner)
    command = [sys.executable, "-m", "understudy", "shared", "--lifeline", "--port", "0", "--topic", "t:1"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        title, servers, body, control = [other.stdout.readline().strip() for _ in range(4)]
        assert str(shared.pid) in title
        cluster = understudy.connect(control.removeprefix("control="))
        assert cluster.bootstrap_servers == servers.removeprefix("bootstrap.servers=")
        assert [each.name for each in cluster.topics.list()] == ["t"]
        again = kafka.clusters.create(**json.loads(body.removeprefix("cluster=")))
        assert [each.name for each in again.topics.list()] == ["t"]
        other.kill()
    until(lambda: [each.name for each in kafka.clusters.list()] == ["cluster-1", "mine"], "the end of theirs")
    shared.close()


def test_the_command_ends_with_the_server_and_names_the_signal() -> None:
    """Exit code 1 and one line on stderr, for the packages of other languages."""
    shared = Shared()
    with subprocess.Popen(
        [sys.executable, "-m", "understudy", "shared", "--port", "0"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline()
        os.kill(shared.pid, signal.SIGKILL)
        _, error = other.communicate(timeout=60)
    assert other.returncode == 1
    assert error.startswith(f"the shared server, process {shared.pid}, ended by signal 9 (SIGKILL)")
    assert shared.end() == "ended by signal 9 (SIGKILL)"
    shared.close()


def test_a_folder_of_another_kind_is_not_used(runtime: Path) -> None:
    """Other users could put a server of theirs there: one sentence with what to do."""
    folder = runtime / f"understudy-{os.getuid()}"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    with pytest.raises(StartError, match="is not a folder of yours alone; remove it"):
        place()


@pytest.mark.parametrize(
    ("arguments", "body"),
    [
        (
            "--port 0 --topic orders:3 --set a=b=c --for-tests --seed 7 --as-version 3.9 --brokers 2",
            {
                "brokers": 2,
                "topics": {"orders": 3},
                "settings": {"a": "b=c"},
                "for_tests": True,
                "as_version": "3.9",
                "seed": 7,
            },
        ),
        ("--port 0", {"brokers": 1, "topics": {}, "settings": {}, "for_tests": False}),
        ("--port 9092", None),
        ("--topic orders", None),
        ("--topic orders:1:retention.ms=1", None),
        ("--brokers 0,1", None),
        ("--data-dir x", None),
        ("--control-token x", None),
    ],
)
def test_options_that_need_a_server_of_their_own(arguments: str, body: dict[str, object] | None) -> None:
    """They start one, as `serve` does; the others become a request for a cluster."""
    assert cluster_of(serve.gather(arguments.split(), {})) == body
