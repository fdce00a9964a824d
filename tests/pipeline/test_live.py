"""Audits beside a running cluster: the copy of its logs, what its brokers answer, and how findings are reported."""

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in its __all__

from pipeline.audits import registry
from pipeline.audits.registry import checks, chosen
from pipeline.commands import audit, follow, live
from pipeline.live.asking import LiveCluster
from pipeline.live.counts import Counts
from pipeline.live.tables import OF_FILES
from pipeline.live.watch import Copied, Watch, frames
from pipeline.reading import read_batches
from pipeline.transfer.wire import WireError
from protocol.records.batch import batches
from protocol.records.records import Record, build_batch, build_marker
from tests.conftest import BrokerWith
from tests.pipeline import traffic
from tests.pipeline.conftest import Refused
from tests.pipeline.logs import rows
from tests.serving import Server
from tests.storage.kafka_tools import need_kafka
from tests.swap.nodes import Node
from understudy.cli import main

SETTINGS = {"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"}
LIVE = tuple(name for name in checks() if name.startswith("live-"))
OPTIONS: dict[str, Any] = {
    "follow": 1.0, "steps": 0, "until_finding": False, "metrics_port": None, "fail_on": "warning", "format": "json",
    "is_cluster": True, "records": False, "journal": None, "master": "local", "spark_above": 256, "id": None,
    "input": [], "output": [], "group": [], "count_by": None,
}  # fmt: skip


class Beside:
    """A follower of a cluster with a clock of its own; `between` is called after each step but the last."""

    def __init__(
        self,
        bootstrap: str,
        folder: Path,
        between: Callable[["Beside", int], None] = lambda *_: None,
        steps: int = 3,
        **more: Any,
    ) -> None:
        self.now_ms = 1_000_000
        self.lines: list[dict[str, Any]] = []
        self.pauses = 0
        self.between = between
        arguments = {**OPTIONS, "steps": steps, "dir": str(folder), **more}
        width_s = arguments["count_by"]
        counts = None if width_s is None else Counts(width_s * 1000, arguments["input"], arguments["output"])
        folder.mkdir()
        with LiveCluster(bootstrap) as cluster:
            self.watch = Watch(
                cluster,
                folder,
                lambda: self.now_ms,
                most_bytes=more.get("most_bytes", 1 << 27),
                look=live.look_of(counts),
            )
            register = live.register_of(self.watch, arguments, audit.registered, counts)
            wanted = chosen(more.get("only", ()), without=OF_FILES, has=audit.tables_there(arguments))
            self.follower = follow.Follower(arguments, wanted, register, self.show, self.pause, counts)
            self.code = self.follower.run()

    def show(self, text: str) -> None:
        """A line of the command."""
        self.lines.append(json.loads(text))

    def pause(self, _: float) -> bool:
        """Between two steps."""
        self.pauses += 1
        self.between(self, self.pauses)
        return False

    @property
    def reported(self) -> set[str]:
        """The checks that reported something."""
        return {each["check"] for each in self.lines if "check" in each}


@pytest.fixture
def server(broker_with: BrokerWith) -> Server:
    """A cluster of few coordinators' partitions."""
    cluster = broker_with(settings=SETTINGS, topics=["orders:2", "shipped:1"])
    cluster.make_coordinators()
    return cluster


def write(server: Server, topic: str, count: int, at_ms: int = 0, partition: int = 0, *, each: bool = False) -> None:
    """Produce records of a time, in one batch or each in its own."""
    producer = Producer({"bootstrap.servers": server.addresses[0]})
    for number in range(count):
        producer.produce(topic, b"%d" % number, b"k", partition, timestamp=at_ms or 1_700_000_000_000)
        if each:
            producer.flush(30)
    assert producer.flush(60) == 0


def transaction(server: Server, name: str = "x") -> Producer:
    """A producer with an open transaction in both partitions."""
    producer = Producer({"bootstrap.servers": server.addresses[0], "transactional.id": name})
    producer.init_transactions(60)
    producer.begin_transaction()
    for partition in (0, 1):
        producer.produce("orders", b"v", b"k", partition)
    assert producer.flush(60) == 0
    return producer


def batch(count: int = 2, base_offset: int = 0) -> bytes:
    """A batch of records."""
    records = [Record(base_offset + number, 5, b"k", b"v", ()) for number in range(count)]
    return bytes(
        build_batch(records, base_offset=base_offset, last_offset=base_offset + count - 1, base_timestamp_ms=5)
    )


def test_a_piece_is_cut_into_whole_batches(tmp_path: Path) -> None:
    """A batch that is cut off is not there yet; a hole is remembered, and what is known already is left out."""
    piece = batch(2) + batch(3, 5) + batch(1, 8)
    assert [each.next_offset for each in frames(piece[:-1])] == [2, 8]
    copied = Copied(tmp_path / "t-0", None, 0)
    assert copied.append(piece[:-1])
    assert (copied.end, copied.cleaned_to) == (8, 8)
    assert not copied.append(piece[:-1])
    assert copied.append(batch(1, 8))
    assert [each["base_offset"] for each in rows(read_batches(tmp_path))] == [0, 5, 8]


def test_a_damaged_length_stops_the_copy() -> None:
    """A damaged length stops the copy of a live log instead of looping for ever."""
    assert list(frames(struct.pack(">qi", 0, -1) + bytes(80))) == []


def test_a_topic_with_the_name_of_another_folder_ends_the_copy(server: Server, tmp_path: Path) -> None:
    """A broker that names `../outside` writes nothing beside the copy; the same without that name is copied."""
    write(server, "orders", 1)
    server.control(
        "POST", "/v1/faults", {"match": {"api": "Metadata"}, "do": {"alter": {"topics.0.name": "../outside"}}}
    )
    with (
        pytest.raises(WireError, match=r"a broker returned an invalid topic name: '\.\./outside'"),
        LiveCluster(server.addresses[0]),
    ):
        pass
    with LiveCluster(server.addresses[0]) as cluster:
        Watch(cluster, tmp_path, lambda: 0).step()
    assert list(tmp_path.glob("orders-0"))


def test_ordinary_work_is_no_finding(server: Server, tmp_path: Path) -> None:
    """Producers of three kinds, a group, deleted records and compaction, between the steps and before them."""
    traffic.make(server.addresses[0])
    beside = Beside(server.addresses[0], tmp_path / "copy", lambda *_: write(server, "orders", 5), count_by=60)
    assert beside.reported == set()
    assert beside.code == 0
    assert beside.follower.followed.failures == 0
    measured = beside.follower.followed.measured
    assert {row["topic"]: row["value"] for row in measured.records}["orders"] == 10
    bounds = {(row["topic"], row["partition"]): row for row in measured.bounds}
    assert bounds["orders", 0] == {
        "topic": "orders", "partition": 0, "log_start_offset": 0, "last_stable_offset": 10, "high_watermark": 10,
    }  # fmt: skip
    assert bounds["cut", 0]["log_start_offset"] == 7
    assert {row["group_id"]: row["value"] for row in measured.lag if row["topic"] == "work"}["group-eager"] >= 0
    assert {row["state"] for row in measured.states} <= {"CompleteCommit", "CompleteAbort", "Empty"}


def test_a_commit_that_is_stuck_is_reported(server: Server, tmp_path: Path) -> None:
    """Held before its markers: for half a minute that is nothing."""
    producer = transaction(server)
    server.control("POST", "/v1/transactions/x/hold", {"at": "prepare"})
    producer.commit_transaction(60)

    def between(beside: Beside, pause: int) -> None:
        beside.now_ms += (20_000, 11_000, 1_000)[pause - 1]

    beside = Beside(server.addresses[0], tmp_path / "copy", between, steps=4, only=LIVE)
    reported = [each for each in beside.lines if each["check"] == "live-overdue"]
    assert [(each["step"], each["transactional_id"], each["state"]) for each in reported] == [(4, "x", "PrepareCommit")]


def torn(pieces: Iterator[tuple[tuple[str, int], bytes]], _: Any) -> Iterator[tuple[tuple[str, int], bytes]]:
    """The same, with ABORT for COMMIT in one partition."""
    for place, piece in pieces:
        parts = [
            build_marker(
                each.producer_id, each.producer_epoch, False, 0, each.max_timestamp_ms, base_offset=each.base_offset,
                partition_leader_epoch=0,
            )
            if each.is_control and place == ("orders", 0)
            else piece[each.position : each.end]
            for each in batches(piece)
        ]  # fmt: skip
        yield place, b"".join(map(bytes, parts))


def test_a_torn_transaction_is_reported(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator committed, and one partition has an ABORT."""
    transaction(server).commit_transaction(60)
    assert Beside(server.addresses[0], tmp_path / "right", only=["transaction-torn"]).reported == set()
    lying(monkeypatch, "pieces", torn)
    assert Beside(server.addresses[0], tmp_path / "torn", only=["transaction-torn"]).reported == {"transaction-torn"}


Bounds = dict[tuple[str, int], int]


def lying(monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[..., Any]) -> None:
    """Brokers that answer something else from now on: `change` gets the true answer and the arguments."""
    ask = getattr(LiveCluster, name)
    monkeypatch.setattr(LiveCluster, name, lambda self, *args, **more: change(ask(self, *args, **more), *args, **more))


def raised(bounds: Bounds, _places: Any, _timestamp: int, *, committed: bool = False) -> Bounds:
    """Last stable offsets beyond the high watermark."""
    return {place: offset + 5 if committed else offset for place, offset in bounds.items()}


@pytest.mark.parametrize(
    ("name", "change", "check"),
    [
        ("bounds", raised, "live-bounds"),
        ("producers", lambda rows, _: [(place, []) for place, _ in rows], "live-stable"),
        ("commits", lambda rows: [{**row, "committed_offset": 0} for row in rows], "live-commit"),
        ("commits", lambda rows: [{**row, "committed_offset": 99} for row in rows], "live-commit"),
        ("transactions", lambda _: ([], True), "live-hanging"),
    ],
)
def test_answers_that_contradict_each_other_are_reported(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[..., Any], check: str
) -> None:
    """Each wrong answer under its name, and nothing of the kind before."""
    transaction(server)
    consumer = Consumer({"bootstrap.servers": server.addresses[0], "group.id": "g"})
    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    consumer.close()
    assert Beside(server.addresses[0], tmp_path / "right", only=LIVE).reported == set()
    lying(monkeypatch, name, change)
    assert Beside(server.addresses[0], tmp_path / "wrong", only=LIVE).reported == {check}


def test_what_a_broker_does_not_answer_is_no_finding(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A coordinator that loads does not list its transactions; a leader may refuse to answer its producers."""
    transaction(server)
    lying(monkeypatch, "transactions", lambda _: ([], False))
    assert Beside(server.addresses[0], tmp_path / "one", only=LIVE).reported == set()
    lying(monkeypatch, "producers", lambda pieces, _: [(place, None) for place, _ in pieces])
    assert Beside(server.addresses[0], tmp_path / "two", only=LIVE).reported == set()


def test_a_log_that_was_cut_is_reported_and_copied_again(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The high watermark goes back; a topic that is made again is another one."""
    write(server, "orders", 6)
    write(server, "shipped", 6)

    def cut(bounds: Bounds, *_: Any, **_more: Any) -> Bounds:
        return {place: min(offset, 2) if place[0] == "orders" else offset for place, offset in bounds.items()}

    def between(_: Beside, pause: int) -> None:
        if pause == 1:
            admin = AdminClient({"bootstrap.servers": server.addresses[0]})
            admin.delete_topics(["shipped"])["shipped"].result(60)
            admin.create_topics([NewTopic("shipped", 1, 1)])["shipped"].result(60)
            lying(monkeypatch, "bounds", cut)

    beside = Beside(server.addresses[0], tmp_path / "copy", between, steps=4, only=LIVE)
    reported = {(each["topic"], each["partition"], each["what"], each["before"]) for each in beside.lines}
    assert reported == {("orders", 0, "high_watermark", 6), ("orders", 0, "last_stable_offset", 6)}
    assert beside.watch.copied["shipped", 0].end == 0


def test_counts_of_input_and_output_are_compared(server: Server, tmp_path: Path) -> None:
    """By time: one bucket is whole, one lost a record; each bucket is reported once."""
    minute = 1_700_000_040_000
    for topic, counts in (("orders", (4, 3)), ("shipped", (4, 2))):
        for number, count in enumerate(counts):
            write(server, topic, count, minute + number * 60_000)
    beside = Beside(
        server.addresses[0],
        tmp_path / "copy",
        count_by=60,
        input=["orders"],
        output=["shipped"],
        steps=3,
        only=["count-differs"],
    )
    (reported,) = [each for each in beside.lines if each.get("check") == "count-differs"]
    assert [reported[name] for name in ("bucket_ms", "inputs", "outputs", "surplus")] == [minute + 60_000, 3, 2, -1]
    counted = [(each["counted"], each["bucket_ms"], each["records"]) for each in beside.lines if "counted" in each]
    assert counted == [
        ("orders", minute, 4), ("orders", minute + 60_000, 3), ("shipped", minute, 4), ("shipped", minute + 60_000, 2),
    ]  # fmt: skip


def test_the_copy_stays_below_its_limit(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest segments go, counts stay, and what is left is no finding."""
    monkeypatch.setattr("pipeline.live.watch.SEGMENT_BYTES", 2000)
    beside = Beside(
        server.addresses[0], tmp_path / "copy", lambda *_: write(server, "orders", 30, each=True),
        steps=3, most_bytes=2000, count_by=60,
    )  # fmt: skip
    assert sum(each.stat().st_size for each in (tmp_path / "copy").rglob("*.log")) < 4_000
    assert beside.reported == set()
    assert sum(row["records"] for row in beside.follower.followed.counts) == 60


def test_the_command_follows_a_cluster(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """By its address, also as the value of `--follow`."""
    write(server, "orders", 3)
    arguments = ["--steps", "1", "--count-by", "60", "--format", "json"]
    assert main(["audit", "--follow", server.addresses[0], *arguments]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 3
    assert main(["audit", server.addresses[0], "--follow", "0", "--steps", "1", "--topic", "ship*"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["localhost:9092"], "use --follow"),
        (["localhost:1", "--follow", "0"], "no broker answers"),
        (["--follow", "localhost:1", "--id", "key", "--input", "a", "--output", "b"], "need a data directory"),
        ([".", "--topic", "x"], "need HOST:PORT"),
        ([".", "--count-by", "0"], "a number from 1 to"),
        ([".", "--follow", "soon"], "give a number of seconds"),
    ],
)
def test_what_cannot_be_is_refused(arguments: list[str], message: str, refused: Refused) -> None:
    """With exit code 2 and one sentence."""
    assert message in refused("audit", *arguments)


def test_checks_of_files_exist() -> None:
    """The list of checks that a copy cannot answer names checks."""
    assert set(OF_FILES) <= set(checks())
    assert {"counts", "live"} <= set(registry.NEEDS)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """A running node of Apache Kafka."""
    need_kafka()
    kafka_node = Node(tmp_path / "node")
    kafka_node.folder.mkdir()
    kafka_node.start_kafka()
    yield kafka_node
    kafka_node.stop(clean=False)


@pytest.mark.interop
@pytest.mark.timeout(300)
def test_a_real_broker_at_work_is_no_finding(node: Node, tmp_path: Path) -> None:
    """Before and between the steps; its transactions, groups and bounds are reported."""
    traffic.make(node.bootstrap)
    beside = Beside(node.bootstrap, tmp_path / "copy", lambda *_: traffic._transactions(node.bootstrap), count_by=60)
    assert [each for each in beside.lines if "check" in each] == []
    measured = beside.follower.followed.measured
    assert beside.follower.followed.failures == 0
    assert {row["state"]: row["count"] for row in measured.states} == {"CompleteCommit": 2}
    assert {row["topic"] for row in measured.bounds} >= set(traffic.TOPICS)
    assert {row["group_id"] for row in measured.lag} >= {"group-eager"}
