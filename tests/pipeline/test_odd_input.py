"""Contents of records, journals and file names that are odd or wrong: an answer, or a sentence, and no traceback."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.audits.identities import parse
from pipeline.commands.engines import is_small
from pipeline.reports.json_shape import json_paths
from pipeline.values.columns import Schemas, with_values
from pipeline.values.formats import Schema
from protocol.java import absolute_hash
from protocol.log_records import group
from tests.pipeline.audited import findings_of
from tests.pipeline.conftest import Refused
from tests.pipeline.fault_files import T0_MS, Planting, one_batch
from tests.pipeline.test_journal import line, write
from understudy.cli import main

DEEP = b"[" * 100_000


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (rb'{"id": "a\ud800b"}', "a\ufffdb"),
        (rb'{"id": "\ud83d\ude00"}', "\U0001f600"),
        (rb'{"id": {"\udfff": "\ud800"}}', r'{"\udfff": "\ud800"}'),
        (DEEP, None),
        (b'{"id": ' + DEEP, None),
    ],
    ids=["half a character", "a whole one", "within", "nested", "nested within"],
)
def test_an_identity_is_text_that_utf8_has(value: bytes, expected: str | None) -> None:
    """JSON can name halves of characters, which no table takes."""
    identity = parse("json:id", ["in"], ["out"]).extract({"value": value})
    assert identity == expected
    assert pa.array([identity], pa.string()).to_pylist() == [expected]


def test_values_are_decoded_to_text_that_utf8_has() -> None:
    """What a schema refuses is quoted; what is nested too deep has a reason too."""
    schema = Schema("JSON", json.dumps({"type": ["string", "array", "number"], "minimum": 5, "maxLength": 3}))
    values = [rb'"\ud800"', rb'"\ud800\ud800\ud800\ud800"', DEEP, DEEP + b"]" * len(DEEP), b'"ok"']
    rows: dict[str, Any] = {"topic": ["t"] * 5, "key": [None] * 5, "value": values, "headers": [None] * 5}
    batch = pa.RecordBatch.from_pydict(rows)
    (with_text,) = with_values([batch], Schemas(files={("value", "t"): schema}))
    decoded = with_text.column("value_json").to_pylist()
    errors = with_text.column("value_error").to_pylist()
    assert decoded == ['"\ufffd"', None, None, None, '"ok"']
    assert "is too long" in errors[1]
    assert [errors[at] for at in (0, 2, 3, 4)] == [None, "it is nested too deep", "it is nested too deep", None]


def test_paths_of_json_are_text_that_utf8_has() -> None:
    """Names and examples of JSON paths are valid UTF-8 even if values are not."""
    (path, types, _, example) = json_paths(rb'{"\ud800": "\udfff"}')[1]
    assert (path, types, example) == ('$["\ufffd"]', ["string"], "\ufffd")


@pytest.mark.parametrize("group_id", ["copier", "gr\u00fc\u00dfe", "e\u0301", "\U0001f600", "a\U0010ffff\U00010000b"])
def test_a_group_belongs_to_the_partition_that_java_gives_its_name(tmp_path: Path, group_id: str) -> None:
    """Characters beyond 65535 are two of Java's. In any other partition it is a finding."""
    where = Planting(tmp_path)
    where.shelf("orders").data(3)
    for number in range(7):
        commit = group.OffsetCommit(group_id, "orders", 0, 1, commit_timestamp_ms=T0_MS)
        where.shelf("__consumer_offsets", number, cleanup_policy="compact").records([group.encode(commit)])
    where.close()
    (finding,) = findings_of(tmp_path, "coordinator-partition")
    right = absolute_hash(group_id) % 7
    assert {row["right_partition"] for row in finding.rows} == {right}
    assert {row["partition"] for row in finding.rows} == {*range(7)} - {right}


def test_an_identity_has_no_patterns(tmp_path: Path, refused: Refused) -> None:
    """Each topic is an input or an output, by its name."""
    where = Planting(tmp_path)
    where.shelf("orders").data(1)
    where.shelf("shipped").data(1)
    where.close()
    for topics in (["--input", "orders*", "--output", "shipped"], ["--input", "orders", "--output", "ship?ed"]):
        assert "is a pattern: name each topic" in refused("audit", str(tmp_path), "--id", "key", *topics, "--quiet")


def test_a_line_of_a_journal_that_cannot_be_read_ends_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one sentence, with exit code 1."""
    one_batch(tmp_path / "data", "orders", 1)
    write(tmp_path / "journal", line(1), "{no line", line(2))
    with pytest.raises(SystemExit) as ended:
        main(["report", str(tmp_path / "data"), "--journal", str(tmp_path / "journal"), "--quiet"])
    assert ended.value.code == 1
    (sentence,) = capsys.readouterr().err.splitlines()
    assert "wire-R-1-000001.jsonl" in sentence


def test_a_journal_counts_with_its_size(tmp_path: Path) -> None:
    """As a file that is named itself, and as one that a server is writing."""
    large = "x" * (3 << 20)
    path = write(tmp_path / "done", large)
    write(tmp_path / "open", large, name="wire-R-1-000001.jsonl.open")
    arguments = {"master": "local[*]", "spark_above": 2}
    for each in (path, path.parent, tmp_path / "open"):
        assert not is_small(arguments, [str(each)]), each
        assert is_small(arguments | {"spark_above": 4}, [str(each)]), each
