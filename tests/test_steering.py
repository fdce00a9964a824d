"""docs/faults-and-time.md, and examples of verbs: each is done in three forms, which send the same request."""

import contextlib
import io
import json
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from confluent_kafka import Consumer, Producer

import understudy
from control_api.verbs import VERBS
from tests.conftest import BrokerWith
from tests.control import schemas
from tests.serving import Server, until
from tests.test_docs import TASK
from tools.generate_reference import example
from understudy.cli import main

PAGE = Path(__file__).resolve().parent.parent / "docs" / "faults-and-time.md"
CLIENT = PAGE.parent.parent / "examples" / "steering.py"
TASKS = TASK.findall(PAGE.read_text(encoding="utf-8"))
EXAMPLES = [example(verb) for verb in VERBS if verb.example is not None]


class Proxy(ThreadingHTTPServer):
    """Hands requests on to a control plane, and remembers method, path, query, body, and the answer's status."""

    def __init__(self, control_url: str) -> None:
        super().__init__(("127.0.0.1", 0), Passing)
        self.control_url, self.passed = control_url, list[tuple[Any, ...]]()

    @property
    def url(self) -> str:
        """Its own."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class Passing(BaseHTTPRequestHandler):
    """One request."""

    server: Proxy

    def handle_one_request(self) -> None:
        """Any method."""
        self.raw_requestline = self.rfile.readline()
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        place, path = urlsplit(self.server.control_url), urlsplit(self.path)
        connection = HTTPConnection(str(place.hostname), place.port, timeout=60)
        connection.request(self.command, self.path, body)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        document = json.loads(body) if body else {}
        if answer.status in {200, 201} and content.startswith(b"{"):
            schemas.check(self.command, self.path, json.loads(content))
        self.server.passed.append((self.command, path.path, dict(parse_qsl(path.query)), document, answer.status))
        self.send_response_only(answer.status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of --journal."""
    return str(tmp_path_factory.mktemp("requests"))


@pytest.fixture
def server(broker_with: BrokerWith, journal: str) -> Server:
    """The cluster of the page's example."""
    settings = {
        "default.replication.factor": 3,
        "group.initial.rebalance.delay.ms": 0,
        "log.dirs": "/disk2",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    return broker_with(
        brokers=3,
        controllers=3,
        features={"kraft.version": 1},
        topics=["orders:3"],
        settings=settings,
        journal=journal,
        schema_registry=0,
        seed=5,  # broker 1 leads partition 0
    )


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """In front of its control plane."""
    proxy = Proxy(str(server.process.ready.control_url))
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield proxy
    proxy.shutdown()
    thread.join()
    proxy.server_close()


def prepare_nodes(server: Server, task: str) -> None:
    """Kill or pause the node that a task starts or resumes, fail what it repairs, add what it removes."""
    if re.search("brokers|controllers", task) and ("start" in task or "resume" in task):
        nodes, number = re.findall(r"(brokers|controllers)\D*(\d+)", task)[0]
        server.control("POST", f"/v1/{nodes}/{number}/{'kill' if 'start' in task else 'pause'}")
    if "repair" in task:
        server.control("POST", f"/v1/brokers/{re.findall(r'[23]', task)[0]}/log-dir/fail")
    if "controllers" in task and ("remove" in task or "DELETE" in task):
        server.control("POST", "/v1/controllers", {"id": 3003})


@contextlib.contextmanager
def staged(server: Server, task: str) -> Iterator[str]:
    """Reset the cluster, and make what a task mentions; the task, with the id of the member that there is."""
    server.reset()
    bootstrap, opened = ",".join(server.addresses), contextlib.ExitStack()
    with opened:
        if "users" in task:
            server.control("POST", "/v1/users/alice", {"password": "alice-secret"})
        if "ACL_ID" in task:
            acl = {"principal": "User:bob", "operation": "READ", "resource_type": "TOPIC", "resource_name": "bills"}
            task = task.replace("ACL_ID", server.control("POST", "/v1/acls", acl)["id"])
        if "payments-1" in task or "producers" in task or "forget" in task:
            server.make_coordinators()
            producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "payments-1"})
            producer.init_transactions(60)
            producer.begin_transaction()
            producer.produce("orders", b"open", partition=0)
            producer.flush(60)
        if "groups" in task and '"match"' not in task and "offsets" not in task:
            server.make_coordinators()
            consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "shipping", "client.id": "shipping-1"})
            opened.callback(consumer.close)
            consumer.subscribe(["orders"])
            until(lambda: consumer.poll(0.05) or consumer.assignment(), "an assignment")
            (member,) = server.control("GET", "/v1/groups/shipping")["members"]
            task = task.replace("MEMBER", member["member_id"])
        if "release" in task:
            server.control("POST", "/v1/transactions/payments-1/hold", {"at": "prepare"})
        if "faults" in task and "faults add" not in task and "faults.add" not in task and '"do"' not in task:
            fault = server.control("POST", "/v1/faults", {"match": {"api": "Metadata"}, "do": {"delay_ms": 1}})
            Producer({"bootstrap.servers": bootstrap}).list_topics(timeout=60)
            task = re.sub(r'(faults/|faults\["|show |remove )1', rf"\g<1>{fault['id']}", task)
        if "restore" in task:
            server.control("POST", "/v1/snapshots")
        prepare_nodes(server, task)
        with a_cluster_if_named(server, task) as task:
            yield task


@contextlib.contextmanager
def a_cluster_if_named(server: Server, task: str) -> Iterator[str]:
    """The task with the id of a cluster made for it, if it names one; all but the first are ended afterwards."""
    if "CLUSTER_ID" in task:
        task = task.replace("CLUSTER_ID", server.control("POST", "/v1/clusters", {})["id"])
    try:
        yield task
    finally:
        for cluster in server.control("GET", "/v1/clusters")["clusters"][1:]:
            server.control("DELETE", f"/v1/clusters/{cluster['id']}")


def by_http(line: str, url: str) -> None:
    """Method, path, body."""
    method, path, *body = line.split(" ", 2)
    place = urlsplit(url)
    connection = HTTPConnection(str(place.hostname), place.port, timeout=60)
    connection.request(method, path, body[0] if body else None)
    connection.getresponse().read()
    connection.close()


def by_python(line: str, url: str) -> None:
    """An expression."""
    eval(line, {"kafka": understudy.connect(url), "understudy": understudy})  # our own page  # noqa: S307


def by_shell(line: str, url: str) -> None:
    """Run a command of the shell."""
    stream = io.TextIOWrapper(io.BytesIO(), write_through=True)  # an image is written as bytes
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        code = main([*shlex.split(line)[1:], "--control", url])
    assert code == 0, stream.buffer.getvalue()


@pytest.mark.parametrize("lines", [*TASKS, *EXAMPLES], ids=lambda lines: lines[2].removeprefix("understudy ctl ")[:40])
def test_each_task_makes_the_same_request_in_each_form(
    server: Server, proxy: Proxy, lines: tuple[str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a cluster as the page describes it, and with the answer that the OpenAPI document promises."""
    monkeypatch.chdir(tmp_path)
    reported = []
    for send, line in zip((by_http, by_python, by_shell), lines, strict=True):
        with staged(server, line) as task:
            url = proxy.url
            proxy.passed.clear()
            send(task, url)
            reported.append([plain(each) for each in proxy.passed])
    (http,), python, (shell,) = reported
    assert http[-1] in {200, 201}
    assert shell == http
    assert http in python
    assert [file.name for file in tmp_path.iterdir()] == (["kafka.pcap"] if "--output" in lines[2] else [])


OF_CLIENTS = [
    shell for _, _, shell in TASKS
    if ("payments-1" in shell or "shipping" in shell or "producers" in shell) and "faults" not in shell
]  # fmt: skip


def test_the_pages_client_makes_what_the_recipes_name(
    broker_with: BrokerWith, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Group, transactional id, producer: each command about them succeeds as printed, one after another."""
    server = broker_with(brokers=3, topics=["orders:3"], settings={"group.initial.rebalance.delay.ms": 0})
    server.reset()
    server.make_coordinators()
    url = str(server.process.ready.control_url)
    kafka = understudy.connect(url)

    def there() -> str:
        """The member's id, while it and an open transaction are there."""
        open_ones = [each.transactional_id for each in kafka.transactions.list() if each.state == "Ongoing"]
        members = [each for group in kafka.groups.list() if group.group_id == "shipping" for each in group.members]
        return members[0].member_id if open_ones == ["payments-1"] and members and members[0].assignment else ""

    with subprocess.Popen([sys.executable, CLIENT, ",".join(server.addresses)], cwd=tmp_path) as clients:
        try:
            for shell in [each for each in OF_CLIENTS if "reset-offsets" not in each]:
                member = until(there, f"the clients, before {shell}", 60)
                by_shell(shell.replace("MEMBER", member), url)
        finally:
            clients.send_signal(signal.SIGINT)
        assert clients.wait(60) == 0
    for shell in [each for each in OF_CLIENTS if "reset-offsets" in each]:
        by_shell(shell, url)
    assert len(OF_CLIENTS) >= 15
    assert "Traceback" not in capfd.readouterr().err


def plain(passed: tuple[Any, ...]) -> tuple[Any, ...]:
    """A request, without the ids of its member, its fault and its cluster."""
    method, path, query, body, status = passed
    return method, re.sub(r"/(members|faults|clusters)/[^/]+", r"/\1/ID", path), query, body, status
