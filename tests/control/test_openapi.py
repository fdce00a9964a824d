"""The OpenAPI document is complete, and the server does what the table of verbs describes."""

import ast
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, get_type_hints
from urllib.parse import urlsplit

import pytest
from confluent_kafka import Consumer, Producer
from jsonschema import ValidationError
from starlette.responses import Response

import broker.control
from broker.control.openapi import document as described
from broker.control.request import ControlRequest
from broker.control.verbs import function_of, module_of
from broker.options import parse
from control_api.fields import kind_of
from control_api.verb import Verb
from control_api.verbs import VERBS
from tests.control.conftest import QUICK
from tests.control.harness import ControlPlane
from tests.control.schemas import check
from tests.control.test_security import AUTHORIZER
from tests.serving import Server, start, until
from understudy import ControlError, StartError, connect, results


@pytest.fixture
def document(plane: ControlPlane) -> dict[str, Any]:
    """As it is served."""
    openapi: dict[str, Any] = plane.http("GET", "/openapi.json")
    return openapi


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of each verb."""
    return [(method.upper(), path, what) for path, verbs in document["paths"].items() for method, what in verbs.items()]


def test_each_verb_is_in_the_module_that_its_first_call_imports() -> None:
    """A server answers any verb first: the module that is imported for it registers its function."""
    assert [verb.name for verb in VERBS if function_of(verb).__module__ != module_of(verb)] == []


def test_every_verb_is_described(document: dict[str, Any]) -> None:
    """Summary, parameters, answers; names of operations are unique."""
    described = operations(document)
    assert {(method, path) for method, path, _ in described} == {(verb.method, verb.path) for verb in VERBS}
    assert len({what["operationId"] for _, _, what in described}) == len(described)
    for _, path, what in described:
        assert what["summary"].endswith(".")
        named = {row["name"] for row in what["parameters"] if row["in"] == "path"}
        assert named == {part[1:-1] for part in path.split("/") if part.startswith("{")}
        assert all(row["schema"] for row in what["parameters"])
        assert "422" in what["responses"]
        assert {"200", "201"} & set(what["responses"])
    assert document["openapi"].startswith("3.1")


def test_bodies_are_closed(document: dict[str, Any]) -> None:
    """A field that is not described is refused; versions take names of APIs."""
    for _, path, what in operations(document):
        if "requestBody" in what and path != "/v1/versions":
            reference = what["requestBody"]["content"]["application/json"]["schema"]["$ref"]
            body = document["components"]["schemas"][reference.rpartition("/")[2]]
            assert body["additionalProperties"] is False, path


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_function_takes_and_answers_the_types_of_its_row(verb: Verb) -> None:
    """Body, then query; what is no JSON, and what is streamed, is a Response."""
    hints = get_type_hints(function_of(verb))
    answer = hints.pop("return")
    assert answer is Response or kind_of(answer).type is kind_of(verb.answer_type).type
    assert hints.pop("request") is ControlRequest
    assert list(hints.values()) == [each for each in (verb.body, verb.query) if each is not None]


def test_answers_are_made_with_all_of_their_fields() -> None:
    """Their defaults are for clients of older servers: a field that the server forgets is a mistake."""
    wanted = {name: {field.name for field in fields(getattr(results, name))} for name in results.__all__}
    missing, constructed = [], set()
    for path in Path(broker.control.__path__[0]).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        ours = [node for node in imports if (node.module or "").startswith("control_api.answers.")]
        known = {alias.name: alias.name for node in ours for alias in node.names}
        known |= {f"answer.{name}": name for name in wanted}
        for node in ast.walk(tree):
            name = known.get(ast.unparse(node.func), "") if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and name in wanted.keys() - {"Health"}:
                constructed.add(name)
                keywords = {keyword.arg for keyword in node.keywords}
                missing += [f"{path.name}:{node.lineno} {name}.{each}" for each in wanted[name] - keywords]
    assert missing == []
    assert {"Transaction", "Partition", "Refusal"} <= constructed


# --- answers ---------------------------------------------------------------------------------------------------------


@contextmanager
def something_of_everything(plane: ControlPlane) -> Iterator[dict[str, str]]:
    """Records, an open and an aborted transaction, a group with a member; ids of member, fault, ACL and producer."""
    conf = {"bootstrap.servers": plane.bootstrap, "transactional.id": "x"}
    producer = Producer(conf)
    producer.init_transactions(60)
    for end in (producer.abort_transaction, None):
        producer.begin_transaction()
        producer.produce("t", b"\xff", key=b"k", partition=0, headers=[("h", b"v"), ("h", None)])
        producer.flush(60)
        if end is not None:
            end(20)
    consumer = Consumer({**conf, "transactional.id": "", "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["u"])
    plane.kafka.topics["u"].write("v")
    until(lambda: consumer.poll(0.1), "a record")
    consumer.commit(asynchronous=False)
    (member,) = plane.kafka.groups["g"].show().members
    fault = plane.kafka.faults.add(api="EndTxn", drop=True, optional=True).id
    acl = plane.kafka.acls.add("User:alice", "READ", "TOPIC", "t").id
    yield {
        "member": member.member_id,
        "fault": fault,
        "acl": acl,
        "producer": str(plane.kafka.producers.list()[0].producer_id),
    }
    consumer.close()


PARTITION, TRANSACTION = "/v1/topics/t/partitions/0", "/v1/transactions/x"
EVERYTHING: list[tuple[str, str, dict[str, Any] | None]] = [
    *(
        ("GET", f"/v1/{path}", None)
        for path in ("health", "overview", "cluster", "clock", "topics", "topics/t", "transactions")
    ),
    *(
        ("GET", f"/v1/{path}", None)
        for path in ("groups", "groups/g", "groups/g/why", "versions", "faults", "faults/FAULT", "journal")
    ),
    *(("GET", f"/v1/{path}", None) for path in ("producers", "producers/PRODUCER", "producers/PRODUCER/why")),
    *(("GET", path, None) for path in (PARTITION, f"{PARTITION}/records", TRANSACTION, f"{TRANSACTION}/why")),
    ("POST", "/v1/topics/t/records", {"records": [{"value": "v"}]}),
    ("POST", f"{PARTITION}/leader", {"broker": 2}),
    ("POST", f"{PARTITION}/isr", {"replicas": [2]}),
    ("DELETE", f"{PARTITION}/producers/0", None),
    ("POST", "/v1/coordinators/move", {"type": "transaction", "key": "x", "broker": 2}),
    ("PUT", f"{TRANSACTION}/producer", {"epoch": 7}),
    ("POST", f"{TRANSACTION}/hold", {"at": "markers"}),
    ("GET", TRANSACTION, None),
    ("GET", "/v1/diagrams?transactional_id=x", None),
    ("POST", f"{TRANSACTION}/release", None),
    ("POST", f"{TRANSACTION}/abort", None),
    ("POST", "/v1/faults", {"do": {"delay_ms": 1}, "match": {"topic": "t"}}),
    ("DELETE", "/v1/faults/FAULT", None),
    ("DELETE", "/v1/acls/ACL", None),
    ("DELETE", "/v1/faults", None),
    ("POST", "/v1/groups/g/rebalance", None),
    ("POST", "/v1/groups/g/members/MEMBER/evict", None),
    ("POST", "/v1/groups/offline/offsets", {"topic": "t", "to": "latest"}),
    ("PUT", "/v1/versions", {"EndTxn": {"min": 0, "max": 3}, "InitProducerId": None}),
    ("POST", "/v1/retention/run", None),
    ("POST", "/v1/compaction/run", None),
    *(
        ("POST", f"/v1/brokers/2/{verb}", None)
        for verb in ("pause", "resume", "log-dir/fail", "log-dir/repair", "stop", "start", "kill")
    ),
    ("POST", "/v1/controllers", {}),
    ("DELETE", "/v1/controllers/3003", None),
    *(("POST", f"/v1/controllers/3001/{verb}", None) for verb in ("stop", "start", "pause", "resume", "kill")),
    ("GET", "/v1/cluster", None),
    ("DELETE", "/v1/brokers/2", None),
    ("POST", "/v1/brokers", {"rack": "r"}),
    ("POST", "/v1/clock/advance", {"ms": 1}),
    ("POST", "/v1/clock/freeze", None),
    ("POST", "/v1/clock/thaw", None),
    ("POST", "/v1/controllers/3001/start", None),
    ("POST", "/v1/snapshots", None),
    ("GET", "/v1/snapshots", None),
    ("POST", "/v1/snapshots/1/restore", None),
    ("POST", "/v1/journal/rotate", None),
    ("POST", "/v1/clusters", {}),
    ("DELETE", "/v1/clusters/2", None),
    ("DELETE", "/v1/journal", None),
    ("POST", "/v1/reset", None),
]


def test_every_verb_answers_by_its_schema(tmp_path: Path) -> None:
    """All verbs with an answer in JSON, on a cluster that has some of everything."""
    process = start(
        brokers=2,
        controllers=3,
        features={"kraft.version": 1},
        topics=["t:2", "u:1"],
        settings={**QUICK, **AUTHORIZER},
        journal=tmp_path,
    )
    plane, walked = ControlPlane(Server(process)), set()
    with something_of_everything(plane) as ids:
        for method, path, body in EVERYTHING:
            filled = path.replace("FAULT", ids["fault"]).replace("MEMBER", ids["member"]).replace("ACL", ids["acl"])
            filled = filled.replace("PRODUCER", ids["producer"])
            plane.http(method, filled, body)
            plain = path.partition("?")[0]
            walked |= {
                (verb.method, verb.path) for verb in VERBS if verb_matches(verb.path, plain) and verb.method == method
            }
    process.stop()
    wanted = {(verb.method, verb.path) for verb in VERBS if verb.answer and verb.example is None}
    assert walked >= wanted, "or give the verb an example, which tests/test_steering.py makes a call of"


def verb_matches(template: str, path: str) -> bool:
    """Whether a path is one of a verb's."""
    return len(template.split("/")) == len(path.split("/")) and all(
        part.startswith("{") or part == segment
        for part, segment in zip(template.split("/"), path.split("/"), strict=True)
    )


def test_every_answer_is_described_to_its_last_field() -> None:
    """No schema leaves an object's fields open, except for the user's own objects, and fields of Kafka's messages."""
    schemas = described()["components"]["schemas"]
    assert {where for name, schema in schemas.items() for where in open_objects(schema, name)} == OPEN


OPEN = {
    "FaultState.match",
    "FaultState.do",
    "FaultConditions.request",
    "FaultEffects.alter",
    "RecordedStep.arguments",
    "ScenarioStep.arguments",
    "JournalEntry.request",
    "JournalEntry.response",
}


def open_objects(schema: Any, where: str) -> Iterator[str]:
    """Where a schema takes any fields."""
    if isinstance(schema, Mapping):
        if schema.get("type") == "object" and "additionalProperties" not in schema:
            yield where
        for name, part in schema.get("properties", {}).items():
            yield from open_objects(part, f"{where}.{name}")
        for part in (*schema.get("anyOf", ()), schema.get("items"), schema.get("additionalProperties")):
            yield from open_objects(part, where)


def test_an_answer_that_is_not_as_described_would_be_seen() -> None:
    """A field too many, one too few, one of another type."""
    right = {"id": 1, "state": "running"}
    check("POST", "/v1/brokers/1/kill", right)
    for wrong in ({"id": 1}, {**right, "more": 1}, {**right, "id": "1"}, {**right, "state": "dead"}):
        with pytest.raises(ValidationError):
            check("POST", "/v1/brokers/1/kill", wrong)


# --- the token -------------------------------------------------------------------------------------------------------


def test_a_token_is_asked_for_everywhere_but_at_the_health_check() -> None:
    """At every verb, 401 without it or with another one; with it, everything is as without one."""
    process = start(control_token="s3cret")
    url = str(process.ready.control_url)
    statuses: dict[tuple[str, str], list[int]] = {}
    for verb in VERBS:
        path = re.sub(r"{\w+}", "1", verb.path)
        for token in (None, "other", "s3cret"):
            statuses.setdefault((verb.method, verb.path), []).append(status(url, verb.method, path, token))
    health = statuses.pop(("GET", "/v1/health"))
    assert health == [200, 200, 200]
    assert {tuple(codes[:2]) for codes in statuses.values()} == {(401, 401)}
    assert {codes[2] for codes in statuses.values()} <= {200, 201, 404, 409, 422}
    assert statuses["GET", "/v1/cluster"] == [401, 401, 200]
    with pytest.raises(ControlError, match="--control-token") as refused:
        connect(url).info()
    assert refused.value.status == 401
    assert connect(url, token="s3cret").info().topics == 0
    process.stop()


def status(url: str, method: str, path: str, token: str | None) -> int:
    """Of a call, perhaps with a token."""
    place = urlsplit(url)
    connection = HTTPConnection(str(place.hostname), place.port, timeout=60)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        connection.request(method, path, headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


def test_other_machines_are_let_in_with_a_token_only() -> None:
    """A control plane that they can reach does not start without one."""
    with pytest.raises(StartError, match="needs --control-token TOKEN"):
        start(control_host="0.0.0.0")
    options = {"control-host": ["0.0.0.0"], "control-token": ["s3cret"]}
    assert (parse(options).control_host, parse(options).control_token) == ("0.0.0.0", "s3cret")
