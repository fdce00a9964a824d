"""Journals as tables: those of a real server, and lines that are not what they should be."""

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer

from pipeline.decoding.damage import DamagedError
from pipeline.journal import cut, find_files, read_lines
from pipeline.reading import read_journal
from pipeline.schemas import JOURNAL
from tests.pipeline.audited import checks_that_find
from tests.pipeline.fault_files import Planting
from tests.pipeline.journal_lines import Wiring
from tests.pipeline.logs import rows
from tests.serving import start, until

FIELDS = {"v": 1, "run": "R-1", "era": 0, "id": 1, "lost": 0, "cluster_id": "c", "ts_us": 5, "duration_us": 7,
          "at_ms": 3, "broker": 1, "listener": "PLAINTEXT", "connection": 1, "client": "h:1", "principal": "User:A",
          "client_id": None, "software": None, "software_version": None, "api_key": 0, "api": "Produce", "version": 13,
          "correlation_id": 9, "outcome": "answered", "error_codes": [3], "error": "UNKNOWN_TOPIC_OR_PARTITION",
          "faults": ["f1"], "request_bytes": 10, "response_bytes": 20}  # fmt: skip


def line(number: int, request: object = None, response: object = None, **changed: object) -> str:
    """A line of a journal."""
    bodies = {"request": {"n": number} if request is None else request, "response": response}
    return json.dumps({**FIELDS, "id": number, **changed, **bodies}, separators=(",", ":"), ensure_ascii=False)


def write(folder: Path, *lines: str, name: str = "wire-R-1-000001.jsonl", end: str = "\n") -> Path:
    """A file of a journal."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("\n".join(lines) + end, encoding="utf-8")
    return path


def test_a_servers_journal_is_a_table(tmp_path: Path) -> None:
    """Every field has its column; the bodies are JSON."""
    server = start(journal=tmp_path / "journal", topics=["t:1"])
    try:
        producer = Producer({"bootstrap.servers": server.ready.bootstrap_servers[0], "client.id": "app"})
        producer.produce("t", b"x")
        producer.flush(10)
    finally:
        server.stop()
    # The writer is a process of its own: on a busy machine it ends after the server.
    until(lambda: list((tmp_path / "journal").glob("*.jsonl")), "the finished file")
    journal_rows = rows(read_journal(tmp_path / "journal"))
    (produced,) = [row for row in journal_rows if row["api"] == "Produce"]
    assert (produced["client_id"], produced["outcome"], produced["error_codes"]) == ("app", "answered", [])
    assert json.loads(produced["request"])["topic_data"][0]["partition_data"][0]["records"]["count"] == 1
    assert json.loads(produced["response"])["responses"][0]["partition_responses"][0]["base_offset"] == 0
    (path,) = (tmp_path / "journal").glob("*.jsonl")
    written = [json.loads(each) for each in path.read_text(encoding="utf-8").splitlines()]
    assert set(written[0]) == set(JOURNAL.names) - {"file", "damage"}
    assert [row["id"] for row in journal_rows] == [each["id"] for each in written]


def test_bodies_are_cut_out_as_they_are(tmp_path: Path) -> None:
    """With any content, and with the line's fields in any order."""
    tricky = {"a": ',"request":{"b":1},"response":null', "response": {"c": "}"}, "ü": ["\\", '"']}
    reordered = json.dumps({"request": {"n": 2}, "response": {"k": 1}, **FIELDS})
    write(tmp_path, line(1, tricky, tricky, client_id=',"request":'), reordered, line(3, "", None))
    first, second, third = rows(read_journal(tmp_path))
    assert json.loads(first["request"]) == json.loads(first["response"]) == tricky
    assert first["client_id"] == ',"request":'
    assert (second["request"], second["response"], second["api"]) == ('{"n":2}', '{"k":1}', "Produce")
    assert (third["request"], third["response"]) == ('""', None)


@pytest.mark.parametrize(
    "wrong", ["{}", "", "no json", line(2)[:-5], line(2, api_key="x"), line(2) + line(3), "{" * 5000]
)
def test_a_malformed_line_is_reported(tmp_path: Path, wrong: str) -> None:
    """With file, byte and reason; the others are read."""
    path = write(tmp_path, line(1), wrong, line(3))
    place = len(line(1)) + 1
    with pytest.raises(DamagedError, match=f"{path}: byte {place}: not a line of a journal"):
        rows(read_journal(tmp_path))
    journal_rows = rows(read_journal(tmp_path, mode="report"))
    assert [row["id"] for row in journal_rows] == [1, None, 3]
    assert journal_rows[1]["damage"].startswith(f"byte {place}: not a line of a journal")
    assert [row["id"] for row in rows(read_journal(tmp_path, mode="skip"))] == [1, 3]


def test_a_line_that_is_being_written_is_not_there_yet(tmp_path: Path) -> None:
    """All lines of an open file are read up to the last newline."""
    name = "wire-R-1-000002.jsonl.open"
    write(tmp_path, line(1))
    write(tmp_path, line(2), line(3)[:40], name=name, end="")
    assert [row["id"] for row in rows(read_journal(tmp_path))] == [1, 2]
    write(tmp_path, line(2)[:40], name=name, end="")
    assert [row["id"] for row in rows(read_journal(tmp_path))] == [1]


def test_fields_of_a_later_format_are_read_over(tmp_path: Path) -> None:
    """The page of the journal's format promises that."""
    write(tmp_path, line(1, later={"x": [1]}))
    assert [row["id"] for row in rows(read_journal(tmp_path))] == [1]


@pytest.mark.parametrize("parts", [1, 2, 7, 50])
def test_every_line_lies_in_one_part(tmp_path: Path, parts: int) -> None:
    """Wherever a file is cut, each line is in exactly one part."""
    path = write(tmp_path, *(line(number, {"x": "y" * (number * 37 % 200)}) for number in range(20)))
    (file,) = find_files(path)
    ranges = cut(file, file.size // parts)
    assert len(ranges) >= parts
    assert [row["id"] for part in ranges for row in rows(read_lines(part, JOURNAL))] == list(range(20))


def test_files_are_read_run_by_run(tmp_path: Path) -> None:
    """In the order of their numbers; a file that was finished while it was listed counts once."""
    for number, name in enumerate(
        ["B-2-000001.jsonl", "A-1-000010.jsonl", "A-1-000009.jsonl", "A-1-000010.jsonl.open"]
    ):
        write(tmp_path, line(number), name=f"wire-{name}")
    assert [row["id"] for row in rows(read_journal(tmp_path, columns=["id"]))] == [2, 1, 0]
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no journal there"):
        rows(read_journal(tmp_path / "empty"))


def test_a_produce_response_that_was_not_sent_contradicts_nothing(tmp_path: Path) -> None:
    """The broker stopped before it sent it, so no producer has it; sent, the same response is a finding."""
    cases: dict[str, set[str]] = {"closed: the broker stopped": set(), "answered": {"produce-answer"}}
    for outcome, expected in cases.items():
        wiring = Wiring(Planting(tmp_path / f"data-{len(expected)}"))
        wiring.where.shelf("orders").data(3)
        number = wiring.connect("app").produce("orders", offset=0, count=3)
        line = wiring.lines[number - 1]
        line["outcome"] = outcome
        line["response"]["responses"][0]["partition_responses"][0]["log_start_offset"] = 9
        wiring.where.close()
        journal = wiring.write(tmp_path / f"journal-{len(expected)}")
        assert checks_that_find(wiring.where.root, "produce-answer", journal=journal) == expected
