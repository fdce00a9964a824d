"""Histories of clients as a witness: faults made from the format, field by field, and histories of real clients."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from jsonschema import Draft202012Validator

from pipeline.audits import client_history
from pipeline.audits.findings import ask_all
from pipeline.audits.registry import NEEDS, chosen
from pipeline.client_history import _EVENTS, _reason, read
from pipeline.duck.tables import NoLogs
from tests.conftest import BrokerWith
from tests.pipeline.conftest import Refused
from tests.pipeline.history_writer import History
from tests.storage.kafka_tools import need_kafka
from tests.swap.nodes import Node
from understudy.cli import main

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "docs" / "client-history.schema.json"
ENDS = {"history-hang", "history-commit-lost", "history-undelivered", "history-copied-twice", "history-copy-lost"}
"""Checks of how a program ended, and of copies."""
CHECKS = [check for check in chosen(has=["history"]) if "history" in check.needs]
NAMES = {check.name for check in CHECKS}
Line = dict[str, Any]
SETTINGS = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}


def place(offset: int, partition: int = 0) -> Line:
    """A record's place."""
    return {"topic": "t", "partition": partition, "offset": offset}


def sound() -> list[Line]:
    """Two producers, one of them with transactions, and two consumers, which read everything."""

    def of(client: str, *events: Line) -> list[Line]:
        return [{"client": client, **each} for each in events]

    def sent(id: str, offset: int, **more: Any) -> list[Line]:
        return [{"event": "sent", "id": id, "topic": "t", **more},
                {"event": "acknowledged", "id": id, **place(offset)}]  # fmt: skip

    def ended(name: str, outcome: str) -> Line:
        return {"event": "ended", "transaction": name, "outcome": outcome}

    def polls(isolation: str, *offsets: int) -> list[Line]:
        names = {0: "a", 1: "b", 2: "c", 4: "e", 6: "x", 8: "f", 10: "g", 12: "z"}
        return [{"event": "polled", "id": names[each], "isolation": isolation, **place(each)} for each in offsets]

    return [
        *of("p", *sent("a", 0), *sent("b", 1), *sent("z", 12)),
        *of("p", {"event": "sent", "id": "lost", "topic": "t"}, {"event": "sent", "id": "refused", "topic": "t"}),
        *of("p", {"event": "failed", "id": "refused", "topic": "t"}),
        *of("x", *sent("c", 2, transaction="1"), *sent("e", 4, transaction="1"), ended("1", "committed")),
        *of("x", *sent("x", 6, transaction="2"), ended("2", "aborted")),
        *of("x", *sent("f", 8, transaction="3"), *sent("g", 10, transaction="3"), ended("3", "unknown")),
        *of("c", {"event": "assigned", **place(0)}, *polls("read_committed", 0, 1, 2, 4)),
        *of("c", {"event": "committed", "group": "g", **place(5)}, *polls("read_committed", 8, 10, 12)),
        *of("c", {"event": "committed", "group": "g", **place(13)}),
        *of("d", {"event": "assigned", **place(0)}, *polls("read_uncommitted", 0, 1, 2, 4, 6, 8, 10, 12)),
    ]  # fmt: skip


def findings_of(folder: Path, histories: Sequence[Sequence[Line]]) -> list[set[str]]:
    """The checks that each history breaks; all are asked at once, each with topics and clients of its own."""
    for number, lines in enumerate(histories):
        own = [
            {
                **each,
                **{
                    name: f"{number}/{each[name]}"
                    for name in ("topic", "source_topic", "client")
                    if each.get(name) is not None
                },
            }
            for each in lines
        ]
        (folder / f"{number}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in own))
    tables = NoLogs()
    client_history.register(tables, read(str(folder)))
    broken: list[set[str]] = [set() for _ in histories]
    for each in ask_all(tables.engine, CHECKS):
        assert each.count == len(each.rows), "all rows are needed"
        for row in each.rows:
            named = str(row.get("topic") or row.get("client") or Path(row["file"]).stem)
            broken[int(named.partition("/")[0])].add(each.check.name)
    tables.forget()
    return broken


def changes(line: Line) -> Iterator[tuple[str, Line]]:
    """A line with one field changed, by the format: each field, to another value that it may have and to none."""
    others = {
        "client": "another", "id": "another", "topic": "another", "partition": line.get("partition", 0) + 1,
        "offset": line.get("offset", 0) + 20, "transaction": "another", "group": "another",
        "outcome": "aborted" if line.get("outcome") == "committed" else "committed",
        "isolation": "read_committed" if line.get("isolation") == "read_uncommitted" else "read_uncommitted",
        "source_topic": "another", "source_id": "another", "call": "another",
    }  # fmt: skip
    for name in line.keys() - {"event"}:
        yield f"{name} changed", {**line, name: others[name]}
        yield f"{name} invalid", {**line, name: None}
    if line.get("offset", 0) > 0:
        yield "offset lower", {**line, "offset": line["offset"] - 1}


def faults() -> Iterator[tuple[str, int, list[Line]]]:
    """Every line taken away, written twice, exchanged with the next one, and with each field changed."""
    lines = sound()
    for at, line in enumerate(lines):
        yield "gone", at, lines[:at] + lines[at + 1 :]
        yield "twice", at, [*lines[: at + 1], *lines[at:]]
        if at + 1 < len(lines) and lines[at + 1]["client"] == line["client"]:
            yield "exchanged", at, [*lines[:at], lines[at + 1], line, *lines[at + 2 :]]
        for what, changed in changes(line):
            yield what, at, [*lines[:at], changed, *lines[at + 1 :]]


def test_a_sound_history_is_no_finding(tmp_path: Path) -> None:
    """With a record that was not acknowledged, a refused one, and transactions of each outcome."""
    appeared = [*sound()[:-1], {"client": "d", "event": "polled", "id": "lost", **place(11)}, sound()[-1]]
    assert findings_of(tmp_path, [sound(), appeared]) == [set(), set()]


ALLOWED = {
    ("gone", "sent"): "a record of which nothing else is known",
    ("exchanged", "sent"): "two records that were sent one after the other, one of them without an acknowledgement",
    ("client changed", "sent"): "as gone",
    ("topic changed", "sent"): "as gone",
    ("id changed", "sent"): "as gone",
    ("transaction changed", "sent"): "the end of the other transaction is not known",
    ("gone", "acknowledged"): "the answer did not arrive",
    ("twice", "acknowledged"): "the same again",
    ("exchanged", "acknowledged"): "answers come late",
    ("gone", "failed"): "not certain",
    ("twice", "failed"): "the same again",
    ("gone", "ended"): "the end is not known",
    ("twice", "ended"): "the same again",
    ("exchanged", "ended"): "the next transaction began before",
    ("client changed", "ended"): "a transaction without records",
    ("transaction changed", "ended"): "a transaction without records",
    ("outcome changed", "ended"): "a transaction whose records were polled was committed",
    ("gone", "assigned"): "the first one need not be there",
    ("twice", "assigned"): "an assignment in which nothing was polled",
    ("topic changed", "assigned"): "as gone",
    ("partition changed", "assigned"): "as gone",
    ("client changed", "assigned"): "as gone",
    ("isolation changed", "polled"): "a record for consumers of either kind",
    ("gone", "polled"): "the last one: the consumer ended before",
    ("topic changed", "polled"): "of the last one, as gone: the other topic has no records that are known",
    ("client changed", "polled"): "of the last one: another consumer got it",
    ("gone", "committed"): "no consumer has to commit",
    ("twice", "committed"): "the same again",
    ("exchanged", "committed"): "committed later",
    ("offset lower", "committed"): "less than was polled",
    ("offset changed", "committed"): "the last one: only the log shows whether there is something before it",
    ("topic changed", "committed"): "a client may commit offsets of any partition",
    ("partition changed", "committed"): "a client may commit offsets of any partition",
    ("client changed", "committed"): "a client may commit offsets of any partition",
    ("group changed", "committed"): "a client may be in several groups",
}
"""Changes after which a history is still one that may be, at least at some lines."""
FAULTS = 531
UNFOUND = 94


def test_faults_made_from_the_format_are_found(tmp_path: Path) -> None:
    """Walks all lines and fields; the others leave a history that may be, for the reasons in `ALLOWED`."""
    walked = list(faults())
    broken = findings_of(tmp_path, [lines for _, _, lines in walked])
    lines = sound()
    unfound = [(what, lines[at]) for (what, at, _), names in zip(walked, broken, strict=True) if not names]
    kinds = {(what, line["event"]) for what, line in unfound}
    assert kinds == set(ALLOWED)
    last_polls = [line for what, line in unfound if line["event"] == "polled" and what == "gone"]
    assert [(line["client"], line["id"]) for line in last_polls] == [("d", "z")]
    assert (len(walked), len(unfound)) == (FAULTS, UNFOUND)
    assert {name for names in broken for name in names} == NAMES - {"history-lost"} - ENDS
    lost = [each for each in lines if (each["event"], each.get("id")) != ("polled", "b")]
    (tmp_path / "lost").mkdir()
    assert "history-lost" in findings_of(tmp_path / "lost", [lost])[0]


def copied() -> list[Line]:
    """A producer, a program that copies its records to another topic, and what was the case at the end."""

    def copy(at: int) -> list[Line]:
        record = {"client": "x", "id": f"copy of {at}", "topic": "u"}
        source = {"source_topic": "t", "source_id": f"r{at}", "group": "g"}
        placed = {**place(at), "topic": "u"}
        return [
            {"event": "sent", "transaction": str(at), **source, **record},
            {"event": "acknowledged", **record, **placed},
            {"event": "ended", "client": "x", "transaction": str(at), "outcome": "committed"},
            {"event": "polled", **record, **placed, "client": "log", "isolation": "read_committed"},
        ]

    read = [{"event": "polled", "client": "c", "id": f"r{at}", **place(at)} for at in range(3)]
    return [
        *({"event": "sent", "client": "p", "id": f"r{at}", "topic": "t"} for at in range(3)),
        *({"event": "acknowledged", "client": "p", "id": f"r{at}", **place(at)} for at in range(3)),
        {"event": "assigned", "client": "c", "group": "g", **place(0)}, *read,
        {"event": "assigned", "client": "d", **place(0)}, *({**each, "client": "d"} for each in read),
        {"event": "committed", "client": "c", "group": "g", **place(3)},
        *copy(0), *copy(1), *copy(2),
        {"event": "drained", "client": "c", "group": "g", "topic": "t"},
        {"event": "drained", "client": "d", "topic": "t"},
        {"event": "stored", "client": "log", "group": "g", **place(3)},
    ]  # fmt: skip


def ends() -> Iterator[tuple[str, list[Line]]]:
    """What each check of `ENDS` finds."""
    lines = copied()

    def without(**fields: Any) -> list[Line]:
        left = [each for each in lines if not fields.items() <= each.items()]
        assert len(left) < len(lines)
        return left

    yield "history-hang", [*lines, {"event": "hung", "client": "c", "call": "close"}]
    yield "history-commit-lost", [each | ({"offset": 2} if each["event"] == "stored" else {}) for each in lines]
    yield "history-undelivered", without(event="polled", client="d", id="r2")
    yield "history-undelivered", without(event="polled", client="c", id="r2")
    # A client that reads the log and looks up the group's offsets is no member of it.
    all_of_t = [{**each, "client": "log"} for each in lines if each["event"] == "polled" and each["client"] == "d"]
    yield "history-undelivered", [*without(event="polled", client="c", id="r2"), *all_of_t]
    yield "history-copy-lost", without(event="polled", client="log", id="copy of 1")
    yield "history-copied-twice", [each | ({"source_id": "r0"} if "source_id" in each else {}) for each in lines]


def test_how_a_program_ended_is_checked(tmp_path: Path) -> None:
    """A call that did not return, a commit that is gone, records that never came, and copies: too few or too many."""
    cases = list(ends())
    sound_one, *broken = findings_of(tmp_path, [copied(), *(lines for _, lines in cases)])
    assert sound_one == set()
    for (name, _), names in zip(cases, broken, strict=True):
        assert name in names
        assert names - ENDS <= {"history-lost", "history-commit-ahead"}, name
    assert {name for name, _ in cases} == ENDS


def test_the_schema_and_the_reader_agree() -> None:
    """On every line of the faults: each field missing, null or another."""
    text = json.loads(SCHEMA.read_text(encoding="utf-8"))
    schema = Draft202012Validator(text)
    judged = {True: 0, False: 0}
    written = [*sound(), *copied(), {"event": "hung", "client": "c", "call": "close"}]
    lines = [changed for line in written for _, changed in changes(line)]
    shorter = [{name: line[name] for name in line if name != left} for line in written for left in line]
    odd = [{**sound()[1], "offset": offset} for offset in (-1, -2, 1.5, True, 2**63, "1")]
    for line in [*lines, *shorter, *odd]:
        is_right = schema.is_valid(line)
        assert (_reason(line) is None) == is_right, line
        judged[is_right] += 1
    assert min(judged.values()) > 50
    assert {each["title"] for each in text["oneOf"]} == set(_EVENTS)


def test_the_last_line_may_be_cut_off(tmp_path: Path) -> None:
    """A client that was killed; anywhere else that is a finding."""
    whole = json.dumps({"client": "p", "event": "sent", "id": "a", "topic": "t"}).encode()
    (tmp_path / "a.jsonl").write_bytes(whole + b"\n" + whole[:9])
    assert [len(each) for each in read(str(tmp_path)).values()] == [1, 0]
    (tmp_path / "a.jsonl").write_bytes(whole[:9] + b"\n" + whole + b"\n")
    assert [len(each) for each in read(str(tmp_path)).values()] == [1, 1]


def work(bootstrap: str, folder: Path) -> None:
    """Producers with and without transactions, and consumers of both kinds, each with a history."""
    writers = {name: History(folder, name) for name in ("plain", "transactional", "first", "second")}
    common = {"bootstrap.servers": bootstrap, "enable.idempotence": True}

    def send(producer: Producer, name: str, id: str, **more: Any) -> None:
        def done(error: Any, message: Any) -> None:
            if error is None:
                placed = {"partition": message.partition(), "offset": message.offset()}
                writers[name].write("acknowledged", id=id, topic="t", **placed)

        writers[name].write("sent", id=id, topic="t", **more)
        producer.produce("t", id.encode(), partition=0, on_delivery=done)

    plain = Producer(common)
    transactional = Producer({**common, "transactional.id": "x"})
    transactional.init_transactions(60)
    for number in range(6):
        send(plain, "plain", f"p{number}")
        transactional.begin_transaction()
        for record in range(3):
            send(transactional, "transactional", f"x{number}-{record}", transaction=str(number))
        assert transactional.flush(60) == 0
        (transactional.abort_transaction if number % 3 == 1 else transactional.commit_transaction)(60)
        writers["transactional"].write(
            "ended", transaction=str(number), outcome="aborted" if number % 3 == 1 else "committed"
        )
    send(plain, "plain", "end")
    assert plain.flush(60) == 0
    consume(bootstrap, writers["first"], "read_committed")
    consume(bootstrap, writers["second"], "read_uncommitted")
    for each in writers.values():
        each.close()


def consume(bootstrap: str, history: History, isolation: str) -> None:
    """Read until the last record, commit after each fifth one."""
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": isolation, "isolation.level": isolation,
        "enable.auto.commit": False,
    })  # fmt: skip
    consumer.assign([TopicPartition("t", 0, 0)])
    history.write("assigned", topic="t", partition=0, offset=0)
    count, id = 0, ""
    while id != "end":
        message = consumer.poll(60)
        assert message is not None
        assert message.error() is None
        id = (message.value() or b"").decode()
        history.write("polled", id=id, topic="t", partition=0, offset=message.offset(), isolation=isolation)
        count += 1
        if count % 5 == 0:
            (done,) = consumer.commit(message=message, asynchronous=False)
            history.write("committed", group=isolation, topic="t", partition=0, offset=done.offset)
    consumer.close()


@pytest.mark.timeout(300)
def test_work_with_understudy_is_no_finding(broker_with: BrokerWith, tmp_path: Path) -> None:
    """By the command, alone and beside the cluster; a line that is taken away afterwards is one."""
    server = broker_with(settings=SETTINGS, topics=["t:1"])
    server.make_coordinators()
    folder = tmp_path / "history"
    folder.mkdir()
    work(server.addresses[0], folder)
    check_findings(server.addresses[0], folder)


@pytest.mark.interop
@pytest.mark.timeout(300)
def test_work_with_a_real_broker_is_no_finding(tmp_path: Path) -> None:
    """Histories written beside a real Kafka have no finding, and planted losses are found there, too."""
    need_kafka()
    (tmp_path / "node").mkdir()
    node = Node(tmp_path / "node")
    node.start_kafka()
    try:
        folder = tmp_path / "history"
        folder.mkdir()
        work(node.bootstrap, folder)
        check_findings(node.bootstrap, folder)
    finally:
        node.stop(clean=False)


def check_findings(bootstrap: str, folder: Path) -> None:
    """No finding; then one for each kind of loss."""
    only = [part for check in chosen(has=NEEDS) if "history" in check.needs for part in ("--only", check.name)]
    assert main(["audit", "--history", str(folder)]) == 0
    follow = ["audit", bootstrap, "--follow", "0", "--steps", "2", "--history", str(folder), *only]
    assert main(follow) == 0
    with (folder / "plain.jsonl").open("a") as file:
        lines = [
            {"client": "plain", "event": "sent", "id": "never", "topic": "t"},
            {"client": "plain", "event": "acknowledged", "id": "never", "topic": "t", "partition": 0, "offset": 9_000},
        ]
        file.writelines(json.dumps(each) + "\n" for each in lines)
    assert main(["audit", "--history", str(folder)]) == 0
    assert main(follow) == 1
    polled = (folder / "first.jsonl").read_text().splitlines(keepends=True)
    (folder / "first.jsonl").write_text("".join(polled[:4] + polled[5:]))
    assert main(["audit", "--history", str(folder)]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--history", "nowhere"], "no file of JSON lines"), (["--history", ".", "--follow"], "needs DIR")],
)
def test_what_cannot_be_is_refused(arguments: list[str], message: str, refused: Refused) -> None:
    """With exit code 2 and one sentence."""
    assert message in refused("audit", *arguments)


def test_fields_that_an_event_does_not_have_are_left_out(tmp_path: Path) -> None:
    """Also those that are called as fields of other events, or as ours."""
    event = {"event": "sent", "client": "p", "id": "1", "topic": "t"}
    more = {"line": "app.py:7", "file": 3, "run": "x", "number": [], "partition": -5, "offset": "y", "isolation": {}}
    (tmp_path / "history.jsonl").write_text("".join(json.dumps(each) + "\n" for each in (event, event | more)))
    tables = NoLogs()
    first, second = read(str(tmp_path))["client_events"]
    client_history.register(tables, {"client_events": [first, second], "client_bad_lines": []})
    assert second == first | {"line": 2, "number": 2}
