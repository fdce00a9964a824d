"""The commands of pages that a user copies: each block that names this file is run, as are the files in examples/ci."""

import contextlib
import io
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, Producer
from confluent_kafka import admin as kafka_admin

from tests.conftest import BrokerWith
from tests.serving import Server, start, until
from understudy.cli import main

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"<!-- run by tests/test_recipes\.py: (\w+) -->\n```\n(.*?)^```", re.MULTILINE | re.DOTALL)
REPEATS = ("--follow", "--watch")


def lines(kind: str) -> list[tuple[str, str]]:
    """Return page and command of each line in blocks of a kind; lines that end with a backslash are joined."""
    return [
        (page.name, line)
        for page in PAGES
        for language, text in BLOCK.findall(page.read_text(encoding="utf-8"))
        if language == kind
        for line in text.replace("\\\n", " ").splitlines()
    ]


def ctl(line: str, url: str) -> str:
    """Run a line of `understudy ctl` and return what it prints."""
    out = io.TextIOWrapper(io.BytesIO(), write_through=True)
    with contextlib.redirect_stdout(out):
        assert main([*shlex.split(line)[1:], "--control", url]) == 0
    printed = out.buffer
    assert isinstance(printed, io.BytesIO)
    return printed.getvalue().decode()


def test_every_kind_of_block_is_run() -> None:
    """Each kind of code block in the documentation is run by a test."""
    kinds = {kind for page in PAGES for kind, _ in BLOCK.findall(page.read_text(encoding="utf-8"))}
    assert kinds == {"start", "debug", "suite"}


@pytest.mark.parametrize("page", ["README.md", "index.md"])
def test_the_first_commands_work(page: str) -> None:
    """`make serve` is a server for tests; its test is tests/test_makefile.py."""
    first, *others = [line for name, line in lines("start") if name == page]
    assert first == "make serve"
    process = start(for_tests=True)
    env = os.environ | {"UNDERSTUDY_CONTROL_URL": str(process.ready.control_url), "PYTHONPATH": str(ROOT)}
    script = "set -e\n" + "\n".join(others)
    option = f"--bootstrap-server {process.ready.bootstrap_servers[0]}"
    script = re.sub(r"(understudy (?:produce|consume) .*)", rf"\1 {option}", script)
    script = script.replace(".venv/bin/understudy", f"{sys.executable} -m understudy")
    try:
        done = subprocess.run(["bash", "-c", script], env=env, check=True, capture_output=True, text=True, timeout=120)
    finally:
        process.stop()
    assert done.stdout.count("a first order\n") == 1
    assert "1 record produced to orders" in done.stderr
    assert re.search(r"Produce v\d+ orders-0 -> closed: .*\[fault 1\]", done.stdout)
    assert re.search(r"Produce v\d+ orders-0 -> ok", done.stdout)


# --- docs/debugging.md -----------------------------------------------------------------------------------------------


@pytest.fixture
def staged(broker_with: BrokerWith) -> Iterator[Server]:
    """The cluster of the pages' example: an open transaction of `payments-1`, a member in `shipping`."""
    server = broker_with(brokers=3, topics=["orders:3"], settings={"group.initial.rebalance.delay.ms": 0})
    server.make_coordinators()
    bootstrap = ",".join(server.addresses)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "payments-1"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("orders", b"open", partition=0)
    producer.flush(60)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "shipping", "client.id": "shipping-1"})
    consumer.subscribe(["orders"])
    until(lambda: consumer.poll(0.05) or consumer.assignment(), "an assignment")
    yield server
    consumer.close()


def test_the_commands_for_debugging_work(staged: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other; each shows what the page promises."""
    monkeypatch.chdir(tmp_path)
    url = str(staged.process.ready.control_url)
    commands = [line for _, line in lines("debug") if not any(option in line for option in REPEATS)]
    assert len(commands) >= 8
    printed = {line: ctl(line, url) for line in commands}
    assert [file.name for file in tmp_path.iterdir()] == ["kafka.pcap"]
    for line, text in printed.items():
        wanted = {"why": "refused", "report": "last requests", "describe": "epoch", "list": "shipping-1"}
        if "--transactional-id" in line:
            assert json.loads(text)["entries"][0]["api"]
        elif "pcap" not in line:
            (verb,) = [verb for verb in wanted if f" {verb}" in line]
            assert wanted[verb] in text, line


@pytest.mark.parametrize("line", [line for _, line in lines("debug") if any(option in line for option in REPEATS)])
def test_the_commands_that_go_on_print_and_end_with_ctrl_c(staged: Server, line: str) -> None:
    """On a terminal, as people use them."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", *shlex.split(line), "--control", str(staged.process.ready.control_url)]
    process = subprocess.Popen(command, stdout=theirs, env=os.environ | {"TERM": "xterm"})
    os.close(theirs)
    shown = b""
    while b"shipping" not in shown and b"begun" not in shown:
        shown += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # Linux: the other end is closed
        while os.read(ours, 65536):
            pass
    os.close(ours)
    assert process.wait(60) == 0


# --- docs/exam.md ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def serving(command: str, folder: Path) -> Iterator[dict[str, Any]]:
    """The cluster of a serve command on free ports; its ready file."""
    ready = folder / "ready.json"
    more = ["--port", "0", "--control-port", "0", "--ready-file", str(ready), "--lifeline"]
    argv = [sys.executable, "-m", *shlex.split(command), *more]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        until(lambda: ready.exists() or process.poll() is not None, "the ready file")
        yield json.loads(ready.read_text(encoding="utf-8"))
        process.stdin.close()
        assert process.wait(60) == 0


@pytest.mark.parametrize("command", [line for _, line in lines("suite")])
def test_the_clusters_for_suites_of_clients_are_as_the_page_promises(command: str, tmp_path: Path) -> None:
    """Ids, replicas, `acks=all`; ACLs where there is an authorizer."""
    with serving(command, tmp_path) as ready:
        bootstrap = ",".join(ready["bootstrap_servers"])
        kafka: Any = kafka_admin  # its types name less than it exports
        admin = kafka.AdminClient({"bootstrap.servers": bootstrap})
        ids = [0, 1, 2] if "--brokers 0,1,2" in command else [1, 2, 3]
        assert sorted(admin.list_topics(timeout=60).brokers) == ids
        admin.create_topics([kafka.NewTopic("t", 1)])["t"].result(60)
        topic = until(lambda: admin.list_topics("t", timeout=60).topics["t"].partitions.get(0), "the topic")
        assert sorted(topic.replicas) == ids
        failures: list[Any] = []
        producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
        producer.produce("t", b"v", on_delivery=lambda error, _record: failures.append(error))
        assert (producer.flush(60), failures) == (0, [None])
        if "authorizer" in command:
            acl = kafka.AclBinding(
                kafka.ResourceType.TOPIC, "t", kafka.ResourcePatternType.LITERAL, "User:a", "*",
                kafka.AclOperation.READ, kafka.AclPermissionType.ALLOW,
            )  # fmt: skip
            admin.create_acls([acl])[acl].result(60)


# --- examples/ci -----------------------------------------------------------------------------------------------------


def github() -> tuple[list[str], list[str]]:
    """The scripts before and after the test; installation and the test itself are the user's."""
    workflow = yaml.safe_load((ROOT / "examples" / "ci" / "github.yml").read_text(encoding="utf-8"))
    steps = [step["run"] for step in workflow["jobs"]["test"]["steps"] if "run" in step]
    at = steps.index("make test")
    return [step for step in steps[:at] if not step.startswith("pip install")], steps[at + 1 :]


def gitlab() -> tuple[list[str], list[str]]:
    """The scripts before and after the test; GitLab runs the lines of a script in one shell."""
    job = yaml.safe_load((ROOT / "examples" / "ci" / "gitlab.yml").read_text(encoding="utf-8"))["test"]
    assert "after_script" not in job, "software and processes of the script are not there with each executor"
    (script,) = job["script"]
    first, *after, last, end = script.splitlines()
    assert (first, last.strip(), end) == ("make test || {", "exit 1", "}")
    before = [line for line in job["before_script"] if not line.startswith("pip install")]
    return ["\n".join(before)], ["\n".join(after)]


@pytest.mark.parametrize("recipe", [github, gitlab])
def test_the_recipes_for_ci_start_a_cluster_and_report(recipe: Any, tmp_path: Path) -> None:
    """In bash, step by step, with free ports from the environment."""
    before, after = recipe()
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    command = bin_folder / "understudy"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m understudy "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    env = os.environ | {"PATH": f"{bin_folder}:{os.environ['PATH']}", "UNDERSTUDY_PORT": "0",
                        "UNDERSTUDY_CONTROL_PORT": "0", "PYTHONPATH": str(ROOT)}  # fmt: skip

    def run(script: str) -> str:
        step = ["bash", "-e", "-c", script]
        done = subprocess.run(step, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    for script in before:
        run(script)
    ready = json.loads((tmp_path / "kafka.json").read_text(encoding="utf-8"))
    try:
        producer = Producer({"bootstrap.servers": ",".join(ready["bootstrap_servers"])})
        assert len(producer.list_topics("orders", timeout=60).topics["orders"].partitions) == 6
        env["UNDERSTUDY_CONTROL_URL"] = ready["control_url"]
        assert "Metadata" in "".join(run(script) for script in after)
    finally:
        os.kill(ready["pid"], signal.SIGTERM)
    assert (tmp_path / "kafka.pcap").stat().st_size > 24
