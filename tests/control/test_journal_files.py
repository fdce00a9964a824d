"""The journal in files: complete, also when the server, the writer or the disk does what it should not."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from protocol.apis import ApiKey
from protocol.codec import decode_response
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.heartbeat import HeartbeatRequest
from protocol.records.batch import checked_batches
from tests.control.conftest import QUICK
from tests.control.harness import ControlPlane
from tests.control.test_journal import fetch, produce
from tests.scenarios.core.batches import batch
from tests.serving import Server, start, until
from understudy.errors import StartError


class Written:
    """A server of one's own that writes its journal."""

    def __init__(self, directory: Path, **options: Any) -> None:
        self.directory = directory
        settings = {**QUICK, **options.pop("settings", {})}
        self.process = start(journal=directory, topics=["t:2", "u:1"], settings=settings, **options)
        self.server = Server(self.process)
        self.plane = ControlPlane(self.server)

    def files(self) -> list[str]:
        """What lies in the folder."""
        return sorted(path.name for path in self.directory.iterdir())

    def lines(self) -> list[dict[str, Any]]:
        """All lines of the finished files."""
        paths = sorted(self.directory.glob("*.jsonl"))
        return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]

    def ask(self, group: str) -> None:
        """One request, by which a line is known again."""
        wire = self.server.wire()
        wire.call(ApiKey.HEARTBEAT, 4, HeartbeatRequest(group, 1, "m"))
        wire.close()

    def heartbeat_groups(self) -> list[str]:
        """The groups of the heartbeats."""
        return [line["request"]["group_id"] for line in self.lines() if line["api"] == "Heartbeat"]

    def writer(self) -> int:
        """The process that writes."""
        children = Path(f"/proc/{self.server.pid}/task/{self.server.pid}/children").read_text(encoding="ascii")
        (child,) = map(int, children.split())
        return child

    def logged(self, text: str) -> bool:
        """Whether the server has logged an event with this text."""
        return any(text in str(line.get("event")) for line in self.server.log_lines())


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    """A server that writes into a folder that was not there."""
    journal = Written(tmp_path / "a" / "journal")
    yield journal
    journal.server.finish_test()
    journal.process.stop()


def test_files_are_finished_over_http_in_python_and_in_the_shell(written: Written) -> None:
    """With everything that was answered before; where nothing was, there is none."""
    plane = written.plane
    ways: list[Callable[[], str | None]] = [
        lambda: plane.http("POST", "/v1/journal/rotate")["file"],
        plane.kafka.journal.rotate,
        lambda: plane.ctl("journal", "rotate")["file"],
    ]
    names = []
    for number, rotate in enumerate(ways):
        written.ask(f"g{number}")
        names.append(rotate())
        assert written.heartbeat_groups() == [f"g{each}" for each in range(number + 1)]
    assert written.files() == names
    assert plane.kafka.journal.rotate() is None


def test_without_files_there_is_nothing_to_finish(plane: ControlPlane) -> None:
    """And the answer names the option that is missing."""
    status, problem = plane.refused("POST", "/v1/journal/rotate")
    assert status == 409
    assert "--journal DIR" in problem["detail"]


@pytest.mark.verb("journal rotate")
def test_a_client_s_requests_are_written_as_the_journal_shows_them(written: Written) -> None:
    """Request by request; where requests have topic ids the lines have names too."""
    producer = Producer({"bootstrap.servers": written.plane.bootstrap, "client.id": "app"})
    producer.produce("t", b"v", partition=1)
    assert producer.flush(60) == 0
    consumer = Consumer(
        {"bootstrap.servers": written.plane.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["t"])
    (message,) = consumer.consume(1, 60)
    assert message.value() == b"v"
    consumer.close()
    written.plane.kafka.journal.rotate()
    lines = {line["id"]: line for line in written.lines()}
    answer = {entry["id"]: entry for entry in written.plane.http("GET", "/v1/journal")["entries"]}
    assert {"Produce", "Fetch", "JoinGroup", "OffsetCommit"} <= {line["api"] for line in lines.values()}
    alike = ("at_ms", "api", "version", "broker", "connection", "client", "client_id", "outcome", "request_bytes")
    for line in lines.values():
        assert {name: line[name] for name in alike} == {name: answer[line["id"]][name] for name in alike}
    (produce,) = [line for line in lines.values() if line["api"] == "Produce"]
    assert (produce["client_id"], produce["software"].partition("-")[0]) == ("app", "confluent")
    fetches = [topic for line in lines.values() if line["api"] == "Fetch" for topic in line["response"]["responses"]]
    assert {topic["topic"] for topic in fetches} == {"t"}


def test_what_a_reset_separates_has_another_era(written: Written) -> None:
    """The journal in memory is cleared; the files go on."""
    written.ask("before")
    written.server.reset()
    written.ask("after")
    written.plane.kafka.snapshots.take().restore()
    written.ask("restored")
    written.plane.kafka.journal.rotate()
    beats = [line for line in written.lines() if line["api"] == "Heartbeat"]
    assert [(line["request"]["group_id"], line["era"]) for line in beats] == [
        ("before", 0), ("after", 1), ("restored", 2)]  # fmt: skip


def test_files_are_written_without_a_journal_in_memory(tmp_path: Path) -> None:
    """`understudy.journal.max.entries=0` is about memory."""
    written = Written(tmp_path, settings={"understudy.journal.max.entries": 0})
    written.ask("g")
    assert written.plane.http("GET", "/v1/journal")["entries"] == []
    written.process.stop()
    until(lambda: written.heartbeat_groups() == ["g"], "the line; a busy machine's writer ends after the server")


def test_a_server_that_stops_leaves_finished_files(tmp_path: Path) -> None:
    """Files of a size, none of them open, and no request is missing."""
    written = Written(tmp_path, settings={"understudy.journal.file.max.bytes": 2000})
    for number in range(100):
        written.ask(f"g{number}")
    written.server.finish_test()
    written.process.stop()
    until(lambda: written.heartbeat_groups() == [f"g{number}" for number in range(100)], "all lines")
    until(lambda: all(name.endswith(".jsonl") for name in written.files()), "finished files")
    assert len(written.files()) >= 2


def test_a_server_that_is_killed_leaves_finished_files(written: Written) -> None:
    """The writer outlives it, and finishes what it was handed."""
    written.ask("g")
    written.plane.kafka.journal.rotate()
    written.ask("h")
    until(lambda: any(name.endswith(".open") for name in written.files()), "the second file")
    os.kill(written.server.pid, signal.SIGKILL)
    until(lambda: all(name.endswith(".jsonl") for name in written.files()), "the writer to finish")
    assert written.heartbeat_groups() == ["g", "h"]


def test_a_writer_that_dies_does_not_stop_the_server(written: Written) -> None:
    """The server logs it and serves on; the next writer finishes what was left open."""
    written.ask("g")
    until(lambda: any(name.endswith(".open") for name in written.files()), "a line")
    os.kill(written.writer(), signal.SIGKILL)
    until(lambda: written.logged("writer is gone"), "the server to notice")
    written.ask("h")
    status, problem = written.plane.refused("POST", "/v1/journal/rotate")
    assert (status, "writer is gone" in problem["detail"]) == (409, True)
    second = Written(written.directory)
    second.ask("i")
    second.process.stop()
    until(lambda: written.heartbeat_groups() == ["g", "i"], "the second writer to finish")


def test_a_disk_that_refuses_does_not_stop_the_server(written: Written) -> None:
    """It is logged once; when the disk can be written again the next line counts what is missing."""
    written.plane.kafka.journal.rotate()
    for path in written.directory.iterdir():
        path.unlink()
    written.directory.rmdir()
    written.directory.touch()
    written.ask("lost")
    until(lambda: written.logged("journal cannot be written"), "the server to complain")
    written.ask("lost too")
    assert written.plane.kafka.journal.rotate() is None
    written.directory.unlink()
    written.ask("g")
    written.plane.kafka.journal.rotate()
    (line,) = written.lines()
    assert (line["request"]["group_id"], line["lost"]) == ("g", 2)
    until(lambda: written.logged("journal is written again"), "the server's log line")


def test_a_folder_that_cannot_be_written_is_an_error_at_the_start(tmp_path: Path) -> None:
    """One sentence, before anything is served."""
    (tmp_path / "file").touch()
    with pytest.raises(
        StartError, match=r"ended with code 1: understudy serve: --journal needs a directory, and \S+ is"
    ):
        start(journal=tmp_path / "file")
    with pytest.raises(StartError, match=r"ended with code 1: understudy serve: --journal \S+ cannot be written: \w+"):
        start(journal=tmp_path / "file" / "below")


def test_a_request_that_waits_when_the_server_ends_has_not_failed(tmp_path: Path) -> None:
    """A consumer's long poll, as at most ends."""
    written = Written(tmp_path / "journal")
    wire = written.server.wire()
    topics = [FetchTopic("t", [FetchPartition(0, 0, 1 << 20)])]
    wire.send(ApiKey.FETCH, 11, FetchRequest(-1, 600_000, 1, 1 << 20, 0, topics, 0, -1))
    until(lambda: written.plane.http("GET", "/v1/journal?api=Fetch")["entries"] or None, "the fetch waits")
    written.process.stop()
    wire.close()
    until(lambda: [line for line in written.lines() if line["api"] == "Fetch"], "its line")
    (line,) = [line for line in written.lines() if line["api"] == "Fetch"]
    assert line["outcome"] == "closed: the broker stopped"


def test_a_capture_has_one_empty_batch_where_the_files_have_all_headers(written: Written) -> None:
    """Wireshark is shown an answer that is whole, with a checksum that is right."""
    wire = written.server.wire()
    for _ in range(2):
        produce(wire, "t", batch(b"v" * 3000))
    fetch(wire, version=10)
    capture = written.plane.raw("GET", "/v1/journal.pcap?api=Fetch")[1]
    _, answer = decode_response(ApiKey.FETCH, 10, capture[capture.rindex(b"\0\x01t\0") - 18 :])
    records = bytes(answer.responses[0].partitions[0].records)
    (only,) = checked_batches(records)
    assert (only.size, only.record_count, len(records)) == (61, 0, 61)
