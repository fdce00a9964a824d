"""Sequence diagrams of what real clients did: requests, decisions, records, refusals, and why."""

import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from confluent_kafka import KafkaException, Producer

from broker.control.diagram.calls import Call
from broker.control.diagram.lanes import Lanes
from broker.steering.journal.entries import Decoded
from broker.steering.journal.ring import Entry
from protocol.apis import ApiKey
from protocol.messages.end_txn import EndTxnRequest
from tests.control.conftest import ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.serving import until
from understudy.results import Diagram, Step

SVG = "{http://www.w3.org/2000/svg}"
MERMAID = re.compile(r"    (title .*|participant p\d+ as .+|p\d+(->>|-->>|--x)p\d+: .*|Note over p\d+: .*)")


def producer_of(plane: ControlPlane, name: str = "x", **settings: Any) -> Producer:
    """A transactional producer that has its id."""
    producer = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": name, **settings})
    producer.init_transactions(60)
    return producer


def write(producer: Producer, *partitions: int) -> None:
    """A record in each partition, in a new transaction."""
    producer.begin_transaction()
    for partition in partitions:
        producer.produce("t", b"v", partition=partition)
    assert producer.flush(60) == 0


def fenced(plane: ControlPlane, **settings: Any) -> None:
    """Two producers of one transactional id: the second one fences the first."""
    first = producer_of(plane, **settings)
    write(first, 0)
    second = producer_of(plane, **settings)
    write(second, 1)
    second.commit_transaction(60)
    with pytest.raises(KafkaException):
        first.commit_transaction(60)


def texts(diagram: Diagram, kind: str) -> list[str]:
    """The texts of the steps of a kind."""
    return [step.text for step in diagram.steps if step.kind == kind]


def between(diagram: Diagram, step: Step) -> tuple[str, str]:
    """The titles of a step's lanes."""
    return diagram.lanes[step.source].title, diagram.lanes[step.target].title


@pytest.mark.verb("diagrams show", "diagrams svg")
def test_a_fenced_producer_has_a_lane_of_its_own_and_the_reason_is_beside_the_refusal(plane: ControlPlane) -> None:
    """Although both clients have the same client id. Markers lead from the coordinator over the leader to the log."""
    fenced(plane, **{"client.id": "app"})

    diagram = plane.kafka.diagrams.show(transactional_id="x")

    assert [(lane.kind, lane.title) for lane in diagram.lanes] == [
        ("client", "app"), ("client", "app"), ("coordinator", "transaction coordinator"), ("broker", "broker 1"),
        ("log", "t-0"), ("log", "t-1"),
    ]  # fmt: skip
    last = [step for step in diagram.steps if step.text.startswith("EndTxn")]
    assert [step.source for step in last] == [1, 0]
    (refused,) = [step for step in diagram.steps if step.entry == last[1].entry and step.kind == "answer"]
    assert refused.error == "INVALID_PRODUCER_EPOCH"
    assert refused.reason.startswith("fenced: at ")
    assert "called InitProducerId" in refused.reason
    markers = [(step.text.split()[0], between(diagram, step)) for step in diagram.steps if step.kind == "marker"]
    assert markers == [(how, ("transaction coordinator", "broker 1")) for how in ("ABORT", "COMMIT")]
    assert texts(diagram, "append") == ["offset 0", "ABORT at offset 1", "offset 0", "COMMIT at offset 1"]
    moves = [text.partition(":")[0] for text in texts(diagram, "state")]
    assert moves == ["initialised", "begun", "aborted for a new producer", "aborted", "initialised", "begun",
                     "commit decided", "committed"]  # fmt: skip
    assert [step.at_ms for step in diagram.steps] == sorted(step.at_ms for step in diagram.steps)
    until_ms = diagram.steps[-1].at_ms  # a client may look for its coordinator again at any time
    printed = plane.ctl_text("diagrams", "show", "--transactional-id", "x", "--until", str(until_ms))
    assert printed.rstrip() == diagram.text
    image = ET.fromstring(plane.kafka.diagrams.svg(transactional_id="x"))  # noqa: S314 - made by our server
    shown = [node.text for node in image.iter(f"{SVG}text")]
    assert "transaction coordinator" in shown
    assert "INVALID_PRODUCER_EPOCH" in shown


def test_clients_that_came_one_after_the_other_share_a_lane(plane: ControlPlane) -> None:
    """Where there are many; the two that were there at the same time still have lanes of their own."""
    for _ in range(3):
        fenced(plane, **{"client.id": "app"})
    diagram = plane.kafka.diagrams.show(transactional_id="x", limit=1000)
    clients = [lane.detail for lane in diagram.lanes if lane.kind == "client"]
    assert [re.findall(r"epochs \d+ to \d+", detail) != [] for detail in clients] == [True, True]
    commits = [step for step in diagram.steps if step.error == "INVALID_PRODUCER_EPOCH"]
    assert len({step.target for step in commits}) == 1


def test_a_connection_with_very_many_epochs_has_one_lane() -> None:
    """Each transaction of ``transaction.version`` 2 has an epoch of its own: the connection belongs to all of them."""
    entry, nothing = Entry(1, 1, 1, 1, 7, b"", b"", 0, 0, None, "answered"), Decoded(None, None, None, None, None)
    calls = [Call(entry, None, nothing, "EndTxn", "", "ok", None, ((4000, at), (4000, at + 1))) for at in range(3000)]
    client, coordinator = Lanes(calls).lanes()
    assert (client.detail, coordinator.title) == ("epochs 0 to 3000, connection 7", "transaction coordinator")


def test_text_and_mermaid_have_the_same_steps(plane: ControlPlane) -> None:
    """Each line of Mermaid's is one of its language; the text has the reason below the refusal."""
    fenced(plane)

    diagram = plane.kafka.diagrams.show(transactional_id="x")

    first, *lines = diagram.mermaid.splitlines()
    assert first == "sequenceDiagram"
    assert [line for line in lines if not MERMAID.fullmatch(line)] == []
    drawn = [line for line in lines if not line.lstrip().startswith(("title", "participant"))]
    assert len(drawn) == len(diagram.steps) + len([step for step in diagram.steps if step.reason])
    at = next(at for at, line in enumerate(diagram.text.splitlines()) if line.endswith(" INVALID_PRODUCER_EPOCH"))
    assert "because: fenced: at " in diagram.text.splitlines()[at + 1]


def test_a_fault_and_a_hold_are_steps(plane: ControlPlane) -> None:
    """What a fault did, at which request; where a commit was held, and when it went on."""
    producer = producer_of(plane)
    plane.kafka.transactions["x"].hold("markers", after_markers=1)
    write(producer, 0, 1)
    producer.commit_transaction(60)
    until(lambda: plane.kafka.transactions["x"].show().stopped, "the hold")
    plane.kafka.transactions["x"].release()
    until(lambda: plane.kafka.transactions["x"].show().state == "CompleteCommit", "the end")
    fault = plane.kafka.faults.add(api="EndTxn", apply_then={"disconnect": "reset"})
    write(producer, 0)
    producer.commit_transaction(60)

    diagram = plane.kafka.diagrams.show(transactional_id="x")

    assert texts(diagram, "hold") == ["held at markers until released", "released"]
    kinds = [step.kind for step in diagram.steps if step.kind in {"marker", "hold", "fault"}]
    assert kinds == ["marker", "hold", "hold", "marker", "fault", "marker"]
    assert texts(diagram, "fault") == [f"fault {fault.id}: served, then the connection is reset"]
    (hung_up,) = [step for step in diagram.steps if step.error == "closed: a fault hangs up instead of the reply"]
    assert hung_up.fault == fault.id


@pytest.mark.verb("transactions history")
@pytest.mark.parametrize("frozen", [False, True], ids=["the clock runs", "the clock is frozen"])
def test_one_transaction_of_an_id_is_chosen_from_a_list(plane: ControlPlane, frozen: bool) -> None:
    """Begin, end, outcome, partitions; its diagram has its requests, markers and states, and those of no other."""
    if frozen:
        plane.kafka.clock.freeze()
    first = producer_of(plane, **{"client.id": "first"})
    write(first, 0)
    first.commit_transaction(60)
    write(first, 0, 1)
    first.abort_transaction(60)
    write(first, 1)
    second = producer_of(plane, **{"client.id": "second"})
    write(second, 0)
    with pytest.raises(KafkaException):
        first.commit_transaction(60)

    past = plane.kafka.transactions["x"].history()

    assert [(each.outcome, each.how, each.client_id, each.partitions) for each in past] == [
        ("committed", "commit decided", "first", ("t-0",)),
        ("aborted", "abort decided", "first", ("t-0", "t-1")),
        ("aborted", "aborted for a new producer", "first", ("t-1",)),
        ("open", "", "second", ("t-0",)),
    ]
    assert [each.ended_ms is None for each in past] == [False, False, False, True]
    assert past[3].refusals == 1
    assert [each.producer_epoch for each in past[:3]] == [past[0].producer_epoch] * 3
    expected = [["COMMIT t-0"], ["ABORT t-0", "ABORT t-1"], ["ABORT t-1"], []]
    for each, markers in zip(past, expected, strict=True):
        assert each.id is not None
        diagram = plane.kafka.diagrams.show(transactional_id="x", transaction=each.id)
        assert diagram.title == f"Transactional id x, transaction {each.id}: {each.outcome}"
        drawn_markers = [f"{text.split()[0]} {text.split()[-1]}" for text in texts(diagram, "marker")]
        assert sorted(drawn_markers) == markers
        ends = [text for text in texts(diagram, "state") if "-> Complete" in text]
        assert len(ends) == (each.outcome != "open")
        begun = [text for text in texts(diagram, "state") if text.startswith("begun")]
        assert len(begun) == 1
    listed = plane.ctl_text("transactions", "history", "x")
    assert [row.split()[0] for row in listed.splitlines() if row[:1].isdigit()] == [str(each.id) for each in past]
    text = plane.ctl_text("diagrams", "show", "--transactional-id", "x", "--transaction", str(past[1].id))
    assert "ABORT marker" in text
    assert "COMMIT" not in text


def test_a_transaction_whose_begin_was_merged_has_its_time_and_partitions(plane: ControlPlane) -> None:
    """The timeline merges event by event, so it keeps the end of a transaction alone: that row had no begin."""
    producer = producer_of(plane, **{"client.id": "app"})
    for at in range(72):  # three events each, and two hundred are kept one by one
        write(producer, at % 2)
        producer.commit_transaction(60)
    cut = 0
    for _ in range(3):
        merged, rest, *_ = plane.kafka.transactions["x"].history()
        assert merged.outcome.endswith(" commits")
        if rest.id is None:  # its begin is in the merged ones
            cut += 1
            assert rest.began_ms is not None
            assert rest.ended_ms is not None
            assert (merged.began_ms or 0) <= rest.began_ms <= rest.ended_ms
            assert (rest.client_id, rest.partitions) in {("app", ("t-0",)), ("app", ("t-1",))}
        # One event more moves the border by one; partitions that are added are one.
        write(producer, 0, 1)
        producer.commit_transaction(60)
    assert cut >= 1


def test_an_old_transaction_is_found_behind_many_requests(plane: ControlPlane) -> None:
    """A diagram up to a time looks at the requests before it, however many came later."""
    producer = producer_of(plane)
    for _ in range(12):
        write(producer, 0)
        producer.commit_transaction(60)
    first = plane.kafka.transactions["x"].history()[0]
    chosen = plane.kafka.diagrams.show(transactional_id="x", transaction=first.id, limit=2)
    assert "COMMIT at offset 1" in texts(chosen, "append")
    until_ms = first.ended_ms
    assert "EndTxn" in plane.kafka.diagrams.show(transactional_id="x", until=until_ms, limit=2).text


def test_an_id_that_has_begun_no_transaction_has_none(plane: ControlPlane) -> None:
    """Neither one that was only initialised nor one of which all was refused; its page in the console asks for them."""
    producer_of(plane)
    wire = plane.server.wire()
    wire.call(ApiKey.END_TXN, 3, EndTxnRequest("unknown", 1, 0, committed=True))
    for name in ("x", "unknown"):
        assert plane.http("GET", f"/v1/transactions/{name}/history")["transactions"] == []
        status, problem = plane.refused("GET", f"/v1/diagrams?transactional_id={name}&transaction=1")
        assert (status, "the latest: none" in problem["detail"]) == (404, True)


def test_a_transaction_that_is_not_there_is_refused(plane: ControlPlane) -> None:
    """With those that there are; and of a group there is none."""
    producer = producer_of(plane)
    write(producer, 0)
    (known,) = plane.kafka.transactions["x"].history()
    status, problem = plane.refused("GET", "/v1/diagrams?transactional_id=x&transaction=1")
    assert (status, f"the latest: {known.id}" in problem["detail"]) == (404, True)
    status, problem = plane.refused("GET", "/v1/diagrams?group=g&transaction=1")
    assert (status, problem["field"]) == (422, "transaction")


def test_an_idempotent_producer_and_its_connection(plane: ControlPlane) -> None:
    """A batch that came twice because its answer was lost; the same requests by the number of the connection."""
    plane.kafka.faults.add(api="Produce", apply_then={"disconnect": "reset"})
    producer = Producer({"bootstrap.servers": plane.bootstrap, "enable.idempotence": True, "client.id": "app"})
    producer.produce("t", b"one", partition=0)
    assert producer.flush(60) == 0
    (known,) = plane.kafka.producers.list()

    diagram = plane.kafka.diagrams.show(producer_id=known.producer_id)

    assert [
        text for text in texts(diagram, "state") if text.startswith("duplicate: t-0, it was first written at offset 0")
    ]
    sent = [step for step in diagram.steps if step.text.startswith("Produce") and step.kind == "request"]
    assert [step.source for step in sent] == [0, 0]  # over two connections, of one client
    assert sent[1].entry is not None
    entry = plane.kafka.journal.find(id=sent[1].entry)[0]
    of_connection = plane.kafka.diagrams.show(connection=entry.connection)
    assert sent[1].entry in [step.entry for step in of_connection.steps]
    assert sent[0].entry not in [step.entry for step in of_connection.steps]


def test_equal_requests_are_one_step_and_the_newest_are_shown(plane: ControlPlane) -> None:
    """What was left out is counted; a selection by what went wrong or by time holds for all steps."""
    producer = producer_of(plane)
    for _ in range(3):
        write(producer, 0)
        producer.commit_transaction(60)
    whole = plane.kafka.diagrams.show(transactional_id="x")
    until_ms = whole.steps[-1].at_ms  # a client may look for its coordinator again at any time
    newest = plane.kafka.diagrams.show(transactional_id="x", limit=2, until=until_ms)
    entries = [step.entry for step in whole.steps if step.kind == "request"]
    assert [step.entry for step in newest.steps if step.kind == "request"] == entries[-2:]
    assert newest.left_out == len(entries) - 2
    plane.kafka.faults.add(api="EndTxn", error="COORDINATOR_NOT_AVAILABLE", times=2)
    write(producer, 0)
    producer.commit_transaction(60)
    wrong = plane.kafka.diagrams.show(transactional_id="x", errors=True)
    assert {step.error for step in wrong.steps if step.kind == "answer"} == {"COORDINATOR_NOT_AVAILABLE"}
    assert sum(step.count for step in wrong.steps if step.kind == "answer") == 2
    later = plane.kafka.diagrams.show(transactional_id="x", since=whole.steps[-1].at_ms + 1)
    assert min(step.at_ms for step in later.steps) > whole.steps[-1].at_ms
    until_then = plane.kafka.diagrams.show(transactional_id="x", until=until_ms)
    assert len(until_then.steps) == len(whole.steps)


def test_a_pause_is_drawn(plane: ControlPlane) -> None:
    """An hour of the cluster's clock, in which a transaction timed out by itself."""
    producer = producer_of(plane)
    write(producer, 0)
    plane.kafka.clock.advance(hours=1)
    until(lambda: plane.kafka.transactions["x"].show().state == "CompleteAbort", "the timeout")

    diagram = plane.kafka.diagrams.show(transactional_id="x")

    assert [text for text in texts(diagram, "gap") if text.endswith(" later")]
    assert [text for text in texts(diagram, "state") if text.startswith("timed out: Ongoing -> PrepareAbort")]
    assert texts(diagram, "append")[-1] == "ABORT at offset 1"


def test_hostile_names_are_text_in_every_shape(plane: ControlPlane) -> None:
    """In the image there are no elements but its own, in Mermaid's language no lines, on a terminal no commands."""
    evil = "<img src=x onerror=1>;\nend\n#quot; %%{init}%% \x1b[31m ]]> --> \u202e"
    fenced(plane, **{"transactional.id": evil, "client.id": evil})

    diagram = plane.kafka.diagrams.show(transactional_id=evil)

    image = ET.fromstring(plane.kafka.diagrams.svg(transactional_id=evil))  # noqa: S314 - made by our server
    assert {node.tag for node in image.iter()} == {
        f"{SVG}{tag}" for tag in ("svg", "title", "style", "rect", "line", "text")
    }
    assert [node for node in image.iter(f"{SVG}text") if "<img src=x" in (node.text or "")]
    assert [line for line in diagram.mermaid.splitlines()[1:] if not MERMAID.fullmatch(line)] == []
    assert not re.search(r"<img|%%|\bend\b", diagram.mermaid)
    assert all(each.isprintable() or each == "\n" for each in diagram.text)


def test_one_subject_is_named_and_known(plane: ControlPlane) -> None:
    """Otherwise one sentence explains what to give."""
    for query in ("", "?group=g&connection=1"):
        status, problem = plane.refused("GET", f"/v1/diagrams{query}")
        assert status == 422
        assert problem["detail"].startswith("give exactly one of transactional_id, producer_id, group and connection")
    assert plane.refused("GET", "/v1/diagrams?group=missing")[0] == 404
    assert plane.refused("GET", "/v1/diagrams.svg?producer_id=77")[0] == 404


def test_a_failed_test_s_report_has_the_diagram(plane_of: ControlPlaneOf) -> None:
    """Of a transactional id with a refusal; without transactions there is none."""
    plane = plane_of(topics=["t:2"])
    assert plane.kafka.report().diagrams == ()
    fenced(plane)

    report = plane.kafka.report()

    assert [text.splitlines()[0] for text in report.diagrams] == ["Transactional id x"]
    assert "because: fenced: at " in report.diagrams[0]
    assert "what happened:" in report.text
