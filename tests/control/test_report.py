"""`GET /v1/report`, beside real clients: what each language prints when a test fails."""

import re
import socket
import ssl
from contextlib import suppress

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from kafka import KafkaProducer

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.heartbeat import HeartbeatRequest
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.serving import until


def lines(plane: ControlPlane, **query: int) -> list[str]:
    """The lines of the requests."""
    return [request.text for request in plane.kafka.report(**query).requests]


def send(plane: ControlPlane, topic: str = "t", **settings: object) -> Producer:
    """A record in partition 1 of a topic."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "client.id": "app", **settings})
    producer.produce(topic, b"v", partition=1)
    assert producer.flush(60) == 0
    return producer


@pytest.mark.verb("report")
def test_a_line_names_what_the_request_is_about(plane: ControlPlane) -> None:
    """Client, topic and partition; a topic that the request has by its id alone, too; polls are left out."""
    send(plane)
    (produce,) = [line for line in lines(plane) if " Produce v" in line]
    assert " app: Produce v" in produce
    assert " t-1 -> ok (" in produce
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    until(lambda: consumer.poll(0.1), "the record")
    consumer.commit(asynchronous=False)
    assert any(" OffsetCommit v" in line and " group g, t-1 -> ok (" in line for line in lines(plane))
    assert not [line for line in lines(plane) if " Fetch v" in line or " ApiVersions v" in line]
    consumer.close()


def test_a_line_names_the_partition_that_was_refused(plane: ControlPlane) -> None:
    """Of several, the one with the error. Without the error, no partition is named after the result."""
    fault = {"match": {"api": "Produce", "topic": "t", "partition": 1}, "do": {"error": "NOT_LEADER_OR_FOLLOWER"}}
    plane.http("POST", "/v1/faults", fault)
    producer = KafkaProducer(bootstrap_servers=plane.bootstrap, linger_ms=300, retry_backoff_ms=1)
    sent = [producer.send("t", b"v", partition=partition) for partition in (0, 1)]
    assert [future.get(60).partition for future in sent] == [0, 1]
    producer.close()
    refused, *_ = [line for line in lines(plane) if " Produce v" in line and "NOT_LEADER" in line]
    assert "t-0" in refused.partition("->")[0]
    assert " -> NOT_LEADER_OR_FOLLOWER for t-1 (" in refused
    assert "[fault " in refused
    done, *_ = [line for line in lines(plane) if " Produce v" in line and " -> ok (" in line]
    assert " for " not in done


def test_the_text_has_refusals_unmet_faults_and_hints(plane: ControlPlane) -> None:
    """Who fenced whom; a fault that no request met; a topic of nearly the same name. The shell prints the same text."""
    servers = {"bootstrap.servers": plane.bootstrap, "transactional.id": "x"}
    first = Producer({**servers, "client.id": "first"})
    first.init_transactions(60)
    first.begin_transaction()
    first.produce("t", b"v")
    assert first.flush(60) == 0
    Producer({**servers, "client.id": "second"}).init_transactions(60)
    with pytest.raises(KafkaException):
        first.commit_transaction(60)
    ended = plane.kafka.journal.find(api="EndTxn", client_id="first")[-1]
    fault = plane.kafka.faults.add(api="EndTxn", drop=True, optional=True)
    plane.kafka.topics.create("orders")
    settings = {"allow.auto.create.topics": False, "group.id": "g"}
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, **settings})
    consumer.subscribe(["order"])
    until(lambda: consumer.poll(0.1) or len(plane.kafka.report().hints) == 2, "the hint")
    consumer.close()

    answer = plane.http("GET", "/v1/report")

    assert answer["hints"] == [
        "topic 'order' does not exist; did you mean orders?",
        f"fault {fault.id} matches this request, but was added after it: EndTxn of client first, request {ended.id}",
    ]
    (refusal,) = answer["refusals"]
    assert refusal["subject"] == "transactional id x"
    assert "client `second`" in refusal["why"]
    assert [fault["do"] for fault in answer["unmet_faults"]] == [{"drop": True}]
    text = answer["text"]
    heads = [line for line in text.splitlines() if not line.startswith("  ")]
    assert heads == [
        "last requests:",
        "faults that matched no request:",
        "why requests were refused:",
        "what happened:",
        "hints:",
    ]
    assert plane.ctl_text("report").splitlines()[-1] == text.splitlines()[-1]


def test_a_group_that_was_refused_something_is_drawn(plane: ControlPlane) -> None:
    """Beside the transactional ids, which alone were drawn; not where nothing was refused."""
    settings = {"bootstrap.servers": plane.bootstrap, "group.id": "g", "enable.auto.commit": False}
    consumer = Consumer({**settings, "client.id": "reader", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    until(lambda: consumer.poll(0.1) or consumer.assignment(), "an assignment")
    assert plane.kafka.report().diagrams == ()
    (member,) = plane.kafka.groups["g"].show().members
    plane.kafka.groups["g"].evict(member.member_id)
    with pytest.raises(KafkaException):
        consumer.commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False)
    report = plane.kafka.report()
    (drawn,) = report.diagrams
    assert drawn.startswith("Group g\n")
    assert re.search(r"OffsetCommit v\d+ generation 1, t-0 -> UNKNOWN_MEMBER_ID\n.* because: ", drawn)
    assert "  Group g\n" in report.text
    consumer.close()


def test_refusals_of_what_no_coordinator_knows_are_reported(plane: ControlPlane) -> None:
    """A group without members and an id that was never initialised, also once their coordinator is down."""
    plane.server.make_coordinators()
    wire = plane.server.wire()
    assert wire.call(ApiKey.HEARTBEAT, 4, HeartbeatRequest("g", 1, "gone")).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    ended = wire.call(ApiKey.END_TXN, 3, EndTxnRequest("x", 1, 0, committed=True))
    assert ended.error_code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    expected = [("transactional id x", "INVALID_PRODUCER_ID_MAPPING"), ("group g", "UNKNOWN_MEMBER_ID")]
    assert [(each.subject, each.error) for each in plane.kafka.report().refusals] == expected
    plane.kafka.brokers[1].kill()
    assert [(each.subject, each.error) for each in plane.kafka.report().refusals] == expected


def test_since_leaves_out_what_an_earlier_test_did(plane: ControlPlane) -> None:
    """Requests before it; the answer's own time is where the next report begins."""
    send(plane)
    plane.kafka.clock.freeze()
    plane.kafka.clock.advance(ms=1)
    before = plane.kafka.report()
    assert any(" Produce v" in request.text for request in before.requests)
    assert lines(plane, since=before.now_ms) == []
    assert plane.kafka.report(since=before.now_ms).text.startswith("last requests:\n  none")
    send(plane)
    assert [line for line in lines(plane, since=before.now_ms) if " Produce v" in line]


def test_the_newest_requests_are_those_that_are_shown(plane: ControlPlane) -> None:
    """A report shows as many of the newest requests as asked for; 0 shows none."""
    send(plane)
    everything = lines(plane)
    assert len(everything) > 2
    assert lines(plane, limit=2) == everything[-2:]
    assert lines(plane, limit=0) == []


def test_what_a_waiting_client_waits_for_is_a_hint(plane_of: ControlPlaneOf) -> None:
    """A new group, which waits for further members; a frozen clock; a transaction that is held."""
    plane = plane_of(topics=["t:2"], settings={"group.initial.rebalance.delay.ms": 600_000})
    assert plane.kafka.report().hints == ()
    consumer = Consumer({"bootstrap.servers": plane.bootstrap, "group.id": "g"})
    consumer.subscribe(["t"])
    until(lambda: consumer.poll(0.05) or plane.kafka.report().hints, "the hint")
    plane.kafka.clock.freeze()
    producer = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": "x"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("t", b"v")
    assert producer.flush(60) == 0
    plane.kafka.transactions["x"].hold(at="markers")
    with suppress(KafkaException):
        producer.commit_transaction(0.2)
    until(lambda: len(plane.kafka.report().hints) == 3, "the hold")
    frozen, group, held = plane.kafka.report().hints
    assert frozen.startswith("the clock is frozen")
    assert re.fullmatch(
        r"group g was empty and waits 600 s until \S+ for more members to join, with 1 so far: "
        r"group.initial.rebalance.delay.ms",
        group,
    )
    assert held == "transactional id x is held at markers until released"
    plane.kafka.clock.thaw()


def test_names_give_no_orders_to_a_terminal(plane: ControlPlane) -> None:
    """A client id with control characters is escaped in the text, as in each line."""
    send(plane, **{"client.id": "evil\x1b[2J"})
    report = plane.kafka.report()
    assert r"evil\x1b[2J:" in report.text
    assert "\x1b" not in report.text + "".join(request.text for request in report.requests)


def test_a_limit_out_of_bounds_is_refused(plane: ControlPlane) -> None:
    """A limit out of bounds is refused in a sentence that names the bound."""
    status, problem = plane.refused("GET", "/v1/report?limit=1001")
    assert (status, problem["field"]) == (422, "limit")


def test_a_connection_that_is_closed_for_what_it_sent_is_a_hint(plane: ControlPlane) -> None:
    """TLS to a listener without it; the journal, which has requests, cannot show it. A reset forgets it."""
    pattern = r"broker 1 closed the connection of 127.0.0.1:\d+ at \S+: TLS on a plaintext listener"
    assert not re.search(pattern, plane.kafka.report().text)
    host, _, port = plane.bootstrap.rpartition(":")
    with socket.create_connection((host, int(port))) as client, pytest.raises((ssl.SSLError, ConnectionError)):
        ssl.create_default_context().wrap_socket(client, server_hostname="localhost")
    assert re.search(pattern, plane.kafka.report().text)
    plane.server.reset()
    assert not re.search(pattern, plane.kafka.report().text)
