"""`understudy produce` and `understudy consume`, which need no other client."""

import json
import os
import threading
from pathlib import Path

import pytest
from confluent_kafka import Producer

from pipeline.live.reader import read_committed
from protocol.records.batch import RecordBatch
from protocol.records.records import Record, build_batch
from tests.conftest import BrokerWith
from tests.serving import Server, until
from understudy.cli import main

Captured = pytest.CaptureFixture[bytes]


@pytest.fixture
def server(broker_with: BrokerWith) -> Server:
    """Two brokers with a topic."""
    return broker_with(brokers=2, topics=["orders:3"])


def run(server: Server, *arguments: str) -> int:
    """The exit code of a command on this cluster."""
    try:
        return main([*arguments, "--bootstrap-server", ",".join(server.addresses)])
    except SystemExit as end:
        return int(end.code or 0)


def produce(server: Server, tmp_path: Path, text: str, *arguments: str) -> int:
    """Produce the lines of a text; the exit code."""
    file = tmp_path / "lines"
    file.write_text(text, encoding="utf-8")
    return run(server, "produce", *arguments, "--file", str(file))


def test_what_was_produced_is_consumed(server: Server, tmp_path: Path, capsysbinary: Captured) -> None:
    """Key, headers and partition; the last line needs no line feed; an open or aborted transaction is not shown."""
    producer = Producer({"bootstrap.servers": server.addresses[0], "transactional.id": "x"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("orders", b"aborted", partition=1)
    producer.flush(60)
    producer.abort_transaction(60)
    options = ("orders", "--key", "k", "--header", "a=b=c", "--header", "d=", "--partition", "1")
    assert produce(server, tmp_path, "one\ntwo", *options) == 0
    assert capsysbinary.readouterr().err == b"2 records produced to orders\n"
    form = r"%t-%p@%o %k=%s [%h] %K/%S%%\n"
    assert run(server, "consume", "orders", "--from-beginning", "--format", form) == 0
    assert capsysbinary.readouterr().out.splitlines() == [
        b"orders-1@2 k=one [a=b=c,d=] 1/3%",
        b"orders-1@3 k=two [a=b=c,d=] 1/3%",
    ]
    assert run(server, "consume", "orders", "--from-beginning", "--count", "1", "--format", "json") == 0
    document = json.loads(capsysbinary.readouterr().out)
    assert (document["key"], document["value"], document["headers"]) == ("k", "one", [["a", "b=c"], ["d", ""]])


def test_records_are_spread_as_by_kafkas_producer(server: Server, tmp_path: Path, capsysbinary: Captured) -> None:
    """By the hash of the key; without a key in turn. A topic that does not exist is created."""
    assert produce(server, tmp_path, "1\n2\n3\n", "orders") == 0
    assert produce(server, tmp_path, "4\n", "orders", "--key", "a key") == 0
    assert produce(server, tmp_path, "new\n", "new") == 0
    capsysbinary.readouterr()
    assert run(server, "consume", "orders", "--from-beginning", "--format", r"%p %s\n") == 0
    keyed = Producer({"bootstrap.servers": server.addresses[0], "partitioner": "murmur2_random"})
    placed: list[int] = []
    keyed.produce("orders", b"", b"a key", on_delivery=lambda _, message: placed.append(message.partition() or 0))
    assert keyed.flush(60) == 0
    lines = capsysbinary.readouterr().out.decode().splitlines()
    assert sorted(lines) == sorted(["0 1", "1 2", "2 3", f"{placed[0]} 4"])
    assert run(server, "consume", "new", "--from-beginning") == 0
    assert capsysbinary.readouterr().out == b"new\n"


def test_a_member_of_a_group_goes_on_where_it_was(server: Server, tmp_path: Path, capsysbinary: Captured) -> None:
    """It commits what it printed, no more, and leaves the group."""
    assert produce(server, tmp_path, "1\n2\n3\n", "orders", "--partition", "2") == 0
    in_group = ("consume", "orders", "--from-beginning", "--group", "g")
    assert run(server, *in_group, "--count", "2") == 0
    assert capsysbinary.readouterr().out == b"1\n2\n"
    assert run(server, *in_group) == 0
    assert capsysbinary.readouterr().out == b"3\n"
    (group,) = server.control("GET", "/v1/groups")["groups"]
    assert (group["group_id"], group["state"]) == ("g", "Empty")


def test_a_reader_that_follows_sees_later_records(server: Server, tmp_path: Path, capsysbinary: Captured) -> None:
    """From the end on, unless it begins at the beginning."""
    assert produce(server, tmp_path, "earlier\n", "orders") == 0
    following = threading.Thread(target=run, args=(server, "consume", "orders", "--count", "1"))
    following.start()
    until(lambda: server.control("GET", "/v1/journal?api=Fetch")["entries"], "the reader's first Fetch")
    assert produce(server, tmp_path, "later\n", "orders") == 0
    following.join(20)
    assert capsysbinary.readouterr().out == b"later\n"


def test_lines_of_a_pipe_are_sent_as_they_arrive(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsysbinary: Captured
) -> None:
    """Not when the pipe ends, which a terminal or `tail -f` does late."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as source, os.fdopen(writing, "wb", buffering=0) as sink:
        monkeypatch.setattr("sys.stdin", source)
        producing = threading.Thread(target=run, args=(server, "produce", "orders", "--partition", "0"))
        producing.start()
        sink.write(b"at on")
        sink.write(b"ce\nunfinished")
        path = "/v1/topics/orders/partitions/0/records"
        until(lambda: server.control("GET", path)["records"], "the first line")
        sink.close()
        producing.join(20)
    assert [each["value"] for each in server.control("GET", path)["records"]] == ["at once", "unfinished"]
    assert capsysbinary.readouterr().err == b"2 records produced to orders\n"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("consume", "absent"), 1, "the topic absent does not exist; `understudy produce absent` creates it"),
        (("consume", "orders", "--from-beginning", "--count", "1"), 1, "0 of 1 records; --follow waits for the others"),
        (("consume", "orders", "--format", "%x"), 2, "--format has no %x; there are %t "),
        (("consume", "orders", "--count", "0"), 2, "0 is not a number of at least 1"),
        (("consume", "orders", "payments"), 2, "'payments' has no place here"),
        (("produce", "a b"), 1, "the topic 'a b' contains one or more characters other than"),
        (("produce", "orders", "--partition", "3"), 2, "orders has no partition 3, but 0 to 2"),
        (("produce", "orders", "--file", "/"), 2, "--file / cannot be read: Is a directory"),
        (("produce", "orders", "--header", "x"), 2, "--header needs NAME=VALUE, not 'x'"),
        (("produce", "orders", "--bootstrap-servers", "x"), 2, "did you mean --bootstrap-server"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_sentence(
    server: Server, arguments: tuple[str, ...], code: int, sentence: str, capsysbinary: Captured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """On stderr, with the exit code of the help."""
    with Path(os.devnull).open("rb") as empty:
        monkeypatch.setattr("sys.stdin", empty)
        assert run(server, *arguments) == code
    out, error = capsysbinary.readouterr()
    assert out == b""
    assert sentence in error.decode()
    assert error.count(b"\n") == 1


def test_a_broker_that_is_not_there_is_named(capsysbinary: Captured) -> None:
    """The error names the broker that cannot be reached, and the two ways out."""
    with pytest.raises(SystemExit) as end:
        main(["consume", "orders", "--bootstrap-server", "127.0.0.1:1"])
    assert end.value.code == 1
    error = capsysbinary.readouterr().err.decode()
    assert "no broker answers at 127.0.0.1:1: Connection refused; `understudy serve` starts a broker" in error


def test_an_older_broker_has_no_group_for_it(broker_with: BrokerWith, capsysbinary: Captured) -> None:
    """From a broker without KIP-848 `consume` reads without a group, and refuses --group."""
    older = broker_with(as_version="3.9", topics=["orders:1"])
    assert run(older, "consume", "orders", "--from-beginning") == 0
    assert run(older, "consume", "orders", "--group", "g") == 1
    assert "--group needs brokers with the consumer protocol of KIP-848" in capsysbinary.readouterr().err.decode()


def piece(value: bytes, offset: int, producer_id: int, *, control: bool = False) -> bytes:
    """A batch of one record of a transaction."""
    records = [Record(offset, 1, None, value)]
    return bytes(build_batch(records, producer_id=producer_id, producer_epoch=0, transactional=True, control=control))


def test_records_of_aborted_transactions_are_left_out() -> None:
    """Until the marker of their producer; the incomplete batch at the end is read again."""
    data = b"".join(
        (
            *(piece(b"lost", 0, 7), piece(b"kept", 1, 8), piece(b"", 2, 7, control=True)),
            *(piece(b"next", 3, 7), piece(b"", 4, 7, control=True), piece(b"cut", 5, 7)[:-1]),
        )
    )
    records, next_offset = read_committed(data, 0, [(0, 7)])
    assert [(record.offset, record.value) for record in records] == [(1, b"kept"), (3, b"next")]
    assert next_offset == 5
    assert [record.value for record in read_committed(data, 3, [])[0]] == [b"next"]
    assert RecordBatch(piece(b"lost", 0, 7)).is_transactional
