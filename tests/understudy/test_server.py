"""The command and its server, as one process: starting, being ready, and stopping as the contract has it."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, fields
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

import understudy
from control_api.verbs import VERBS
from tests.forking import CAN_FORK, parent_of
from tests.understudy.serving import COMMAND, FREE, ROOT, serve, value
from understudy import launcher, results
from understudy.client import Cluster
from understudy.launcher import environment

PATIENCE_S = 20
"""For a busy machine. A server that waits for its connections does not end at all: the tests keep them open."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A running cluster of two brokers."""
    with understudy.start(brokers=2, topics=["orders:3"]) as started:
        yield started


@pytest.mark.skipif(not CAN_FORK, reason="nothing is forked here")
def test_the_server_is_a_child_of_who_starts_it(cluster: Cluster) -> None:
    """In a fresh interpreter, as a user's: elsewhere, tests fork their servers."""
    assert cluster.process is not None
    assert parent_of(cluster.process.ready.pid) == os.getpid()


@pytest.mark.parametrize(
    ("options", "option"),
    [
        (("--host", "192.0.2.1"), "--host"),
        (("--control-host", "192.0.2.1", "--control-token", "t"), "--control-host"),
        (("--listener", "X://192.0.2.1:0"), "--listener"),
    ],
)
def test_an_address_of_another_machine_is_called_that(options: tuple[str, ...], option: str) -> None:
    """192.0.2.0/24 belongs to no machine (RFC 5737): the sentence speaks of the address, not of a taken port."""
    done = subprocess.run(
        [*COMMAND, "serve", *FREE, *options], capture_output=True, text=True, timeout=120, check=False
    )
    sentence = f"192.0.2.1 is not an address of this machine; {option} needs one that is, or 0.0.0.0 for all"
    assert (done.returncode, done.stderr) == (1, f"understudy serve: {sentence}\n")


def test_the_banner_and_the_ready_file_agree(tmp_path: Path) -> None:
    """bootstrap.servers and control, on lines of their own and as JSON."""
    ready = tmp_path / "ready.json"
    with serve(*FREE, "--brokers", "2", "--ready-file", str(ready)) as (process, lines):
        while not ready.exists():
            assert process.poll() is None
        document = json.loads(ready.read_text())
    assert document["pid"] == process.pid
    assert value(lines, "bootstrap.servers") == ",".join(document["bootstrap_servers"])
    assert value(lines, "control") == document["control_url"]
    assert document["bootstrap_servers"] == [f"{broker['host']}:{broker['port']}" for broker in document["brokers"]]
    assert [broker["id"] for broker in document["brokers"]] == [1, 2]
    assert document["cluster_id"]


def test_a_ready_file_of_an_earlier_server_is_replaced_and_another_file_is_not(tmp_path: Path) -> None:
    """An empty one will do too, as mktemp makes it; another server's is left there at the end."""
    ready = tmp_path / "ready.json"
    ready.touch()
    with serve(*FREE, "--ready-file", str(ready)) as (process, _):
        assert json.loads(ready.read_text())["pid"] == process.pid
        process.kill()
        process.wait()
        assert ready.exists()
        with serve(*FREE, "--ready-file", str(ready)) as (second, _):
            assert json.loads(ready.read_text())["pid"] == second.pid
            others = json.dumps(json.loads(ready.read_text()) | {"pid": 1})
            ready.write_text(others)
    assert ready.read_text() == others
    for content in ("mine", "{}", '{"pid": 1}', "[]"):
        ready.write_text(content)
        command = [*COMMAND, "serve", *FREE, "--ready-file", str(ready)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        sentence = "exists and was not written by understudy; choose another name, or remove it first"
        assert (done.returncode, done.stderr) == (1, f"understudy serve: --ready-file {ready} {sentence}\n")
        assert ready.read_text() == content


def test_a_ready_file_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    """The name of the file that it is written to first is longer than its own, and no file can have it."""
    ready = tmp_path / ("r" * 250)
    command = [*COMMAND, "serve", *FREE, "--ready-file", str(ready)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    sentence = "cannot be written: File name too long"
    assert (done.returncode, done.stderr) == (1, f"understudy serve: --ready-file {ready} {sentence}\n")


def test_every_listener_can_be_found(tmp_path: Path) -> None:
    """In the ready file and at GET /v1/cluster: name, protocol, where clients find it, where it listens."""
    ready = tmp_path / "ready.json"
    options = ("--brokers", "2", "--listener", "DOCKER://0.0.0.0:0,advertised=kafka:29092")
    with serve(*FREE, *options, "--ready-file", str(ready)) as (_, lines):
        brokers = [asdict(broker) for broker in understudy.connect(value(lines, "control")).info().brokers]
        ready_brokers = json.loads(ready.read_text())["brokers"]
        assert [each["listeners"] for each in ready_brokers] == [list(each["listeners"]) for each in brokers]
        for number, broker in enumerate(brokers):
            main, docker = broker["listeners"]
            place = (main["name"], main["protocol"], main["host"], main["port"])
            assert place == ("PLAINTEXT", "PLAINTEXT", broker["host"], broker["port"])
            assert (main["bound_host"], main["bound_port"]) == (main["host"], main["port"])
            assert (docker["name"], docker["host"], docker["port"]) == ("DOCKER", "kafka", 29092 + number)
            with socket.create_connection(("127.0.0.1", docker["bound_port"]), 10):
                assert docker["bound_host"] == "0.0.0.0"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_it_while_connections_are_open(number: signal.Signals) -> None:
    """In good order: exit code 0, with a client connected and a keep-alive connection to the control plane open."""
    with hangup_is(signal.SIG_DFL), serve(*FREE) as (process, lines):
        host, _, port = value(lines, "bootstrap.servers").partition(":")
        with closing(HTTPConnection(value(lines, "control").removeprefix("http://"), timeout=60)) as control:
            control.request("GET", "/v1/health")
            assert control.getresponse().read()
            with socket.create_connection((host, int(port))):
                process.send_signal(number)
                assert process.wait(PATIENCE_S) == 0


def test_a_hangup_that_is_ignored_stays_ignored() -> None:
    """As nohup wants it; a SIGTERM then still stops the server."""
    with hangup_is(signal.SIG_IGN), serve(*FREE) as (process, lines):
        process.send_signal(signal.SIGHUP)
        with closing(HTTPConnection(value(lines, "control").removeprefix("http://"), timeout=60)) as control:
            control.request("GET", "/v1/health")
            assert control.getresponse().status == 200
        process.terminate()
        assert process.wait(PATIENCE_S) == 0


@contextmanager
def hangup_is(disposition: signal.Handlers) -> Iterator[None]:
    """A server that starts in the block inherits this disposition of SIGHUP, not that of the tests themselves."""
    before = signal.signal(signal.SIGHUP, disposition)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def test_it_ends_with_the_process_that_started_it() -> None:
    """--lifeline: standard input closes when the starter is gone, even by SIGKILL."""
    with serve(*FREE, "--lifeline") as (process, _):
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 0


def test_it_ends_with_its_starter_also_if_it_cannot_stop() -> None:
    """An event loop that hangs takes no SIGTERM: after a while the lifeline ends the process itself."""
    code = """
        import signal, threading
        from understudy import lifeline
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        lifeline.PATIENCE_S = 0.01
        lifeline.hold()
        threading.Event().wait()
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE) as process:
        try:
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(PATIENCE_S) == 1
        finally:
            process.kill()


def test_a_standard_input_that_was_never_open_counts_as_closed() -> None:
    """--lifeline with `<&-`: the server ends at once, instead of never."""
    command = ["sh", "-c", 'exec "$@" <&-', "sh", *COMMAND, "serve", *FREE, "--lifeline"]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, timeout=PATIENCE_S, check=False)
    assert done.returncode in {0, -signal.SIGTERM}


def test_ctrl_c_is_not_for_a_server_that_python_started(cluster: Cluster) -> None:
    """A shell, a debugger or a notebook signals its process group: the server of `understudy.start` is in another."""
    assert cluster.process is not None
    assert os.getpgid(cluster.process.ready.pid) != os.getpgid(0)


@pytest.mark.parametrize("token", ["secret", "-begins-with-a-dash", " has blanks "])
def test_the_token_is_not_on_the_command_line(token: str) -> None:
    """Every user of a machine can read that; but for one with blanks around it, which no variable can hold."""
    with understudy.start(control_token=token) as kafka:
        assert kafka.health().status == "ok"
        assert kafka.process is not None
        line = Path(f"/proc/{kafka.process.ready.pid}/cmdline").read_bytes().decode()
        assert (token in line) == (token != token.strip())
        assert token.strip() not in " ".join(kafka.process.options)


def test_a_topic_may_begin_with_a_dash() -> None:
    """A topic's name may begin with a dash on the command line, as in Kafka."""
    with understudy.start(topics=["-t"]) as kafka:
        assert [topic.name for topic in kafka.topics.list()] == ["-t"]


def test_an_ipv6_address_is_in_brackets() -> None:
    """In the ready file, after a reset and for one who connects: Go and librdkafka take no other spelling."""
    with understudy.start(host="::1", control_host="::1", controller_port=0) as kafka:
        first = kafka.bootstrap_servers
        assert first.startswith("[::1]:")
        kafka.reset(disconnect=True)
        assert kafka.bootstrap_servers.startswith("[::1]:")
        assert understudy.connect(kafka.control_url).bootstrap_servers == kafka.bootstrap_servers != first


def test_a_taken_port_is_one_sentence_that_names_port_and_option(cluster: Cluster) -> None:
    """A port that is in use ends the start with exit code 1 and a sentence that names it."""
    port = cluster.bootstrap_servers.partition(",")[0].rpartition(":")[2]
    command = [*COMMAND, "serve", "--port", port, "--control-port", "off"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert f"port {port} " in done.stderr
    assert "--port" in done.stderr


def test_nonsense_is_one_sentence_and_exit_code_2() -> None:
    """From the command line to the exit code."""
    command = [*COMMAND, "serve", "--set", "num.partitons=3"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=120, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("understudy serve: --set num.partitons=3: ")
    assert "num.partitions" in done.stderr


def test_the_servers_packages_are_its_own(tmp_path: Path) -> None:
    """A user's own packages broker, storage and protocol do no harm, and the client imports none of the server's."""
    for name in ("broker", "storage", "protocol"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise ImportError('this is the user\\'s {name}')\n")
    script = (
        "import sys; import understudy\n"
        "with understudy.start() as kafka: print(kafka.health().status)\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('broker', 'storage', 'protocol')])\n"
    )
    env = environment() | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "ok\n[]\n"), done.stderr
    with serve(*FREE, command=[sys.executable, "-m", "understudy"], cwd=tmp_path, env=env) as (_, lines):
        assert value(lines, "bootstrap.servers")


def test_options_can_be_given_in_the_environment() -> None:
    """By variables UNDERSTUDY_* alone, as for a container."""
    env = {"UNDERSTUDY_PORT": "0", "UNDERSTUDY_CONTROL_PORT": "0", "UNDERSTUDY_BROKERS": "2"}
    with serve(env=env) as (_, lines):
        assert value(lines, "bootstrap.servers").count(":") == 2


def test_the_table_of_verbs_is_the_servers(cluster: Cluster) -> None:
    """Every verb of the OpenAPI document has a row, so that Python and ctl can call it."""
    paths = fetch(f"{cluster.control_url}/openapi.json")["paths"]
    served = {(method.upper(), nameless(path)) for path, methods in paths.items() for method in methods}
    served -= {("GET", path) for path in ("/", "/openapi.json")}
    known = {(verb.method, nameless(verb.path)): verb.name for verb in VERBS}
    assert served - known.keys() == set()


def fetch(url: str) -> Any:
    """A JSON document."""
    with urllib.request.urlopen(url) as answer:  # noqa: S310 - the cluster's own
        return json.load(answer)


def nameless(path: str) -> str:
    """A path with its names taken out: the server may call them otherwise."""
    return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/v1/health", results.Health), ("/v1/cluster", results.ClusterInfo), ("/v1/clock", results.ClockState)],
)
def test_the_results_have_the_servers_names(cluster: Cluster, path: str, kind: type) -> None:
    """What the server answers is what the client's types hold: nothing is dropped, nothing is made up."""
    document = fetch(f"{cluster.control_url}{path}")
    assert set(document) == {spot.name for spot in fields(kind)}


def test_the_cluster_can_be_steered(cluster: Cluster) -> None:
    """From start to reset, by the blocking client."""
    info = cluster.info()
    assert [broker.id for broker in info.brokers] == [1, 2]
    before = cluster.clock.show().now_ms
    assert cluster.clock.advance(minutes=15).now_ms >= before + 900_000
    cluster.brokers[2].kill()
    assert [broker.up for broker in cluster.info().brokers] == [True, False]
    cluster.brokers[2].start()
    assert [broker.up for broker in cluster.info().brokers] == [True, True]
    cluster.reset()
    assert cluster.clock.show().ahead_ms == 0


def test_a_refusal_of_the_server_names_the_wrong_field(cluster: Cluster) -> None:
    """Problem details, not a stack trace."""
    with pytest.raises(understudy.ControlError) as refused:
        cluster.brokers[9].kill()
    assert refused.value.status == 404
    with pytest.raises(understudy.ControlError) as refused:
        cluster.reset(keep=["everything"])
    assert (refused.value.status, refused.value.field) == (422, "keep")


def test_a_server_that_cannot_start_raises_its_error() -> None:
    """StartError carries the sentence of a server that cannot start."""
    with pytest.raises(understudy.StartError, match=r"code 2: understudy serve: --brokers needs a number from 1"):
        understudy.start(brokers=0)


def test_a_server_that_is_not_ready_in_time_is_an_error_with_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that runs and is never ready: what the limit was, and how busy the machine is."""
    monkeypatch.setattr(launcher, "START_PATIENCE_S", 0.0)
    sentence = r"^the server was not ready after 0 s, at load average \d+ on \d+ cores: "
    with pytest.raises(understudy.StartError, match=sentence):
        understudy.start()


def test_a_data_directory_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    """Without the number of the system's error."""
    (tmp_path / "file").touch()
    done = subprocess.run(
        [*COMMAND, "serve", "--port", "0", "--control-port", "off", "--data-dir", tmp_path / "file" / "data"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    sentence = f"the data directory {tmp_path}/file/data cannot be used: Not a directory"
    assert done.stderr == f"understudy serve: {sentence}\n"
