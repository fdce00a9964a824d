"""A server that is killed, a disk that fails: what was acknowledged is there, once and in order."""

import os
import resource
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in its __all__

from tests.serving import start
from tests.swap.contents import send
from tests.swap.looking import COMMITTED, PATIENCE_S, UNCOMMITTED, Sight, consume, look, patiently
from tests.swap.nodes import Node

pytestmark = pytest.mark.timeout(120)
HASTY = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50}
"""A client that is back as soon as the server is."""
SMALL = {"internal.segment.bytes": "20000", "index.interval.bytes": "500"}


def make_topic(bootstrap: str, name: str = "t", **config: str) -> None:
    """One partition."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (creation,) = admin.create_topics([NewTopic(name, 1, 1, config=config)]).values()
    creation.result(PATIENCE_S)


def values(bootstrap: str, name: str = "t") -> list[bytes | None]:
    """All values of a topic's only partition."""
    return [record.value for record in consume(bootstrap, {(name, 0): 0}, UNCOMMITTED)[name, 0]]


class Stream:
    """A producer that sends numbers, one after the other, and remembers which were acknowledged."""

    def __init__(self, bootstrap: str, **settings: object) -> None:
        self.producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 1, **HASTY, **settings})
        self.sent, self.acknowledged = 0, list[int]()

    def send_until(self, acknowledged: int) -> None:
        """Send until that many numbers more are acknowledged; as many again may still be on their way."""
        goal = len(self.acknowledged) + acknowledged

        def step() -> int:
            for _ in range(50):
                self.producer.produce("t", b"%d" % self.sent, partition=0, on_delivery=self._delivered(self.sent))
                self.sent += 1
            self.producer.poll(0.01)
            return len(self.acknowledged)

        assert patiently(step, lambda have: have >= goal) >= goal

    def _delivered(self, number: int) -> Callable[[Any, Any], None]:
        def noted(error: Any, _message: Any) -> None:
            if error is None:
                self.acknowledged.append(number)

        return noted


@pytest.mark.parametrize("idempotent", [True, False], ids=["idempotent", "plain"])
def test_nothing_acknowledged_is_lost_by_sigkill(bare_node: Node, idempotent: bool) -> None:
    """Killed four times in the middle of it: an idempotent producer's numbers are all there, each once, in order."""
    bare_node.start_ours()
    make_topic(bare_node.bootstrap, **{"internal.segment.bytes": "2000"})
    settings = {"enable.idempotence": True} if idempotent else {"retries": 0, "max.in.flight": 1}
    stream = Stream(bare_node.bootstrap, **{"batch.num.messages": 50, **settings})
    for _ in range(4):
        stream.send_until(300)
        bare_node.stop(clean=False)
        bare_node.start_ours()
    assert stream.producer.flush(PATIENCE_S) == 0
    there = [int(value or b"") for value in values(bare_node.bootstrap)]
    if idempotent:
        assert stream.acknowledged == there == list(range(stream.sent))
        assert len(list((bare_node.data / "t-0").glob("*.log"))) > 1
    else:
        assert len(set(there)) == len(there)
        assert [number for number in there if number in set(stream.acknowledged)] == stream.acknowledged


class Transactions(threading.Thread):
    """Commits numbers, three records each, one transaction after the other, until it is stopped."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "x", "linger.ms": 0, **HASTY})
        self.producer.init_transactions(PATIENCE_S)
        self.committed = 0
        self.over = threading.Event()
        self.start()

    def run(self) -> None:
        """One number after the other; a transaction that failed is tried again whole."""
        while not self.over.is_set():
            self.producer.begin_transaction()
            for _ in range(3):
                self.producer.produce("t", b"%d" % self.committed, partition=0)
            self.committed += self._finished()

    def _finished(self) -> bool:
        """Commit, or abort where nothing else is left; whether it is committed."""
        end = self.producer.commit_transaction
        while True:
            try:
                end(PATIENCE_S)
            except KafkaException as error:
                if error.args[0].txn_requires_abort():
                    end = self.producer.abort_transaction
                elif not error.args[0].retriable():
                    raise
            else:
                return end == self.producer.commit_transaction


def test_every_committed_transaction_survives_sigkill_whole(bare_node: Node) -> None:
    """And none is there twice, or in part, for who reads committed records."""
    bare_node.start_ours()
    make_topic(bare_node.bootstrap, **{"internal.segment.bytes": "2000"})
    transactions = Transactions(bare_node.bootstrap)
    for goal in (15, 30, 45):
        assert patiently(lambda: transactions.committed, goal.__le__) >= goal
        bare_node.stop(clean=False)
        bare_node.start_ours()
    transactions.over.set()
    transactions.join(PATIENCE_S)
    assert not transactions.is_alive()
    records = consume(bare_node.bootstrap, {("t", 0): 0}, COMMITTED)["t", 0]
    assert [int(record.value or b"") for record in records] == [
        number for number in range(transactions.committed) for _ in range(3)
    ]


def filled(node: Node, *, clean: bool) -> Sight:
    """A directory with several segments of plain and aborted records, stopped or killed; what it answered."""
    node.start_ours()
    make_topic(node.bootstrap, **SMALL)
    producer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": "x"})
    producer.init_transactions(PATIENCE_S)
    for round_ in range(20):
        producer.begin_transaction()
        send(producer, "t", *[b"%d-%d " % (round_, index) * 100 for index in range(8)])
        (producer.commit_transaction if round_ % 2 else producer.abort_transaction)(PATIENCE_S)
    reported = look(node.bootstrap, ())
    node.stop(clean=clean)
    return reported


def segments(node: Node) -> list[Path]:
    """The topic's `.log` files."""
    paths = sorted((node.data / "t-0").glob("*.log"))
    assert len(paths) > 3
    return paths


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_indexes_that_were_deleted_are_made_again(bare_node: Node, clean: bool) -> None:
    """Same records at both isolation levels, same times."""
    reported = filled(bare_node, clean=clean)
    before = {path: path.stat().st_size for path in bare_node.data.glob("t-0/*.txnindex")}
    for path in bare_node.data.glob("t-0/*index"):
        path.unlink()
    bare_node.start_ours()
    assert look(bare_node.bootstrap, ()) == reported
    bare_node.stop()
    assert {path: path.stat().st_size for path in before} == before
    assert len(list(bare_node.data.glob("t-0/*.timeindex"))) == len(segments(bare_node))


def test_the_log_ends_before_a_flipped_byte_that_recovery_finds(bare_node: Node) -> None:
    """Killed, nothing flushed: cut there, later segments gone (core LOG-09); appends go on behind what is left."""
    reported = filled(bare_node, clean=False)
    (bare_node.data / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
    hurt = segments(bare_node)[2]
    contents = bytearray(hurt.read_bytes())
    contents[len(contents) // 2] ^= 1
    hurt.write_bytes(contents)
    sizes = [path.stat().st_size for path in segments(bare_node)[3:]]
    behind, behind_bytes = len(sizes), sum(sizes)
    server = bare_node.start_ours()
    seen = look(bare_node.bootstrap, ())
    left = len(seen.records["t", 0, UNCOMMITTED])
    assert 0 < left < len(reported.records["t", 0, UNCOMMITTED])
    assert seen.records["t", 0, UNCOMMITTED] == reported.records["t", 0, UNCOMMITTED][:left]
    assert [path for path in bare_node.data.glob("t-0/*.log") if path > hurt] == []
    (line,) = [line for line in server.log_lines() if line["event"] == "a damaged log was truncated"]
    end = seen.bounds["t", 0, UNCOMMITTED][1]
    assert (line["level"], line["partition"], line["offset"], line["segments"]) == ("warning", "t-0", end, behind)
    assert line["bytes"] == len(contents) + behind_bytes - hurt.stat().st_size
    send(Producer({"bootstrap.servers": bare_node.bootstrap}), "t", b"next")
    assert values(bare_node.bootstrap)[left:] == [b"next"]


def test_a_flipped_byte_that_recovery_does_not_check_hurts_its_readers_alone(bare_node: Node) -> None:
    """Stopped cleanly: nothing is scanned, as in Kafka; who checks the records sees it, the rest is served."""
    reported = filled(bare_node, clean=True)
    hurt = segments(bare_node)[2]
    contents = bytearray(hurt.read_bytes())
    contents[len(contents) // 2] ^= 1
    hurt.write_bytes(contents)
    bare_node.start_ours()
    end = reported.bounds["t", 0, UNCOMMITTED][1]
    send(Producer({"bootstrap.servers": bare_node.bootstrap}), "t", b"next")
    after = consume(bare_node.bootstrap, {("t", 0): int(segments(bare_node)[3].stem)}, UNCOMMITTED)["t", 0]
    assert (after[-1].offset, after[-1].value) == (end, b"next")


def test_a_torn_tail_is_cut(bare_node: Node) -> None:
    """Half a batch at the end was never acknowledged (core LOG-07)."""
    reported = filled(bare_node, clean=False)
    last = segments(bare_node)[-1]
    whole = last.read_bytes()
    with last.open("ab") as file:
        file.write(whole[: len(whole) // 3])
    bare_node.start_ours()
    assert look(bare_node.bootstrap, ()) == reported
    send(Producer({"bootstrap.servers": bare_node.bootstrap}), "t", b"next")
    assert values(bare_node.bootstrap)[-1] == b"next"


def until_refused(producer: Producer, topic: str) -> tuple[str, int]:
    """Send big records until one is refused: the error's name, and how many were acknowledged before."""
    reported: list[Any] = []
    enough = threading.Event()

    def delivered(error: Any, _message: Any) -> None:
        reported.append(error)
        if error is not None:
            enough.set()

    def step() -> bool:
        for _ in range(20):
            producer.produce(topic, os.urandom(100_000), partition=0, on_delivery=delivered)
        producer.poll(0.01)
        return enough.is_set()

    assert patiently(step, bool)
    producer.purge()
    producer.flush(PATIENCE_S)
    first = next(error for error in reported if error is not None)
    return str(first.name()), sum(error is None for error in reported)


def test_a_full_disk_refuses_and_the_rest_goes_on(tmp_path: Path) -> None:
    """No file may grow beyond 12 MB: KAFKA_STORAGE_ERROR on that broker, others take over what they have as well."""
    server = start(data_dir=tmp_path / "data", brokers=2, settings={"log.index.size.max.bytes": 1_000_000})
    try:
        bootstrap = ",".join(server.ready.bootstrap_servers)
        admin = AdminClient({"bootstrap.servers": bootstrap})
        wanted = [
            NewTopic("big", 1, replica_assignment=[[2]]),
            NewTopic("shared", 1, replica_assignment=[[2, 1]]),
            NewTopic("other", 1, replica_assignment=[[1]]),
        ]
        for creation in admin.create_topics(wanted).values():
            creation.result(PATIENCE_S)
        plain = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
        send(plain, "shared", b"before")
        resource.prlimit(server.ready.pid, resource.RLIMIT_FSIZE, (12_000_000, resource.RLIM_INFINITY))
        big = Producer({"bootstrap.servers": bootstrap, "acks": "all", "retries": 0, "batch.size": 1})
        error, acknowledged = until_refused(big, "big")
        assert error == "KAFKA_STORAGE_ERROR"
        for topic in ("other", "shared"):
            send(plain, topic, b"goes on")
        assert values(bootstrap, "shared") == [b"before", b"goes on"]
        with pytest.raises(KafkaException):
            consume_one(bootstrap)
        server.process.kill()
        server.process.wait()
    finally:
        server.stop()
    again = start(data_dir=tmp_path / "data", brokers=2)
    try:
        bootstrap = ",".join(again.ready.bootstrap_servers)
        assert len(values(bootstrap, "big")) == acknowledged
        assert values(bootstrap, "shared") == [b"before", b"goes on"]
    finally:
        again.stop()


def consume_one(bootstrap: str) -> None:
    """Ask where the failed partition begins. Raises KafkaException."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g"})
    consumer.get_watermark_offsets(TopicPartition("big", 0), timeout=2)
