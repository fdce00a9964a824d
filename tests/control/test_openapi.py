"""The OpenAPI document is complete, and the client's types have the server's names."""

from dataclasses import fields
from types import NoneType
from typing import Any, get_args, get_type_hints

import pytest
from confluent_kafka import Consumer, Producer

from broker.control.verbs import VERBS
from tests.control.doors import Doors
from tests.serving import until
from understudy import results
from understudy.verbs import VERBS as SAID


@pytest.fixture
def document(doors: Doors) -> dict[str, Any]:
    """As it is served."""
    found: dict[str, Any] = doors.http("GET", "/openapi.json")
    return found


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Method, path and description of each verb."""
    return [(method.upper(), path, what) for path, verbs in document["paths"].items() for method, what in verbs.items()]


def test_every_verb_is_described(document: dict[str, Any]) -> None:
    """Summary, parameters, answers; names of operations are told apart."""
    found = operations(document)
    assert {(method, path) for method, path, _ in found} == {(verb.method, verb.path) for verb in VERBS}
    assert len({what["operationId"] for _, _, what in found}) == len(found)
    for _, path, what in found:
        assert what["summary"].endswith(".")
        named = {row["name"] for row in what["parameters"] if row["in"] == "path"}
        assert named == {part[1:-1] for part in path.split("/") if part.startswith("{")}
        assert all(row["schema"] for row in what["parameters"])
        assert {"200", "422"} <= set(what["responses"])
    assert document["openapi"].startswith("3.1")


def test_what_the_client_can_say_is_what_the_server_takes(document: dict[str, Any]) -> None:
    """Each parameter and each field of a body that the table of words has stands in the document."""
    served = {(method, nameless(path)): what for method, path, what in operations(document)}
    for verb in SAID:
        what = served[verb.method, nameless(verb.path)]
        known = {row["name"] for row in what["parameters"] if row["in"] == "query"}
        assert {row.name for row in verb.query} <= known, verb.words
        for row in verb.body:
            schema = what["requestBody"]["content"]["application/json"]["schema"]
            for step in (row.place or row.name).split(".") if row.place != "*" else ():
                assert step in schema["properties"], f"{verb.words} {row.name}"
                schema = schema["properties"][step]


def nameless(path: str) -> str:
    """A path with its names taken out."""
    return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))


def test_bodies_are_closed(document: dict[str, Any]) -> None:
    """A field that is not described is refused; versions take names of APIs."""
    for _, path, what in operations(document):
        if "requestBody" in what and path != "/v1/versions":
            assert what["requestBody"]["content"]["application/json"]["schema"]["additionalProperties"] is False


def test_results_have_the_servers_names(doors: Doors) -> None:
    """Nothing that a type of the client holds is missing in the server's answer."""
    producer = Producer({"bootstrap.servers": doors.bootstrap, "transactional.id": "x"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("t", b"v", partition=0, headers=[("h", b"v")])
    producer.flush(10)
    consumer = Consumer({"bootstrap.servers": doors.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["u"])
    doors.kafka.topics["u"].write("v")
    until(lambda: consumer.poll(0.1), "a record", 20)
    consumer.commit(asynchronous=False)
    partition = doors.http("GET", "/v1/topics/t/partitions/0")
    transaction = doors.http("GET", "/v1/transactions/x")
    group = doors.http("GET", "/v1/groups/g")
    fault = doors.http("POST", "/v1/faults", {"do": {"drop": True}, "match": {"api": "EndTxn"}})
    record = doors.http("GET", "/v1/topics/t/partitions/0/records")["records"][0]
    told = [
        (results.Topic, doors.http("GET", "/v1/topics/t")),
        (results.Partition, partition),
        (results.Segment, partition["segments"][0]),
        (results.Producer, partition["producers"][0]),
        (results.Record, record),
        (results.Header, record["headers"][0]),
        (results.Written, doors.http("POST", "/v1/topics/t/records", {"records": [{"value": "v"}]})["written"][0]),
        (results.Transaction, transaction),
        (results.TimelineEvent, transaction["timeline"][0]),
        (results.Refusal, doors.http("GET", "/v1/transactions/x/why")),
        (results.Group, group),
        (results.Member, group["members"][0]),
        (results.GroupOffset, group["offsets"][0]),
        (results.VersionRange, doors.http("GET", "/v1/versions")["apis"]["EndTxn"]),
        (results.FaultState, fault),
        *((results.JournalEntry, entry) for entry in doors.http("GET", "/v1/journal?api=Fetch")["entries"]),
    ]
    for kind, answer in told:
        assert {spot.name for spot in fields(kind)} - set(answer) == set(), kind
        nothing = {name for name, value in answer.items() if value is None}
        hints = get_type_hints(kind)
        assert [name for name in nothing & set(hints) if NoneType not in get_args(hints[name])] == [], kind
    consumer.close()
