"""Tables for people in the width of a terminal, and the axes and lanes of pictures."""

import re
from pathlib import Path
from typing import Any

import pytest

from pipeline.audits import html_report, render
from pipeline.audits.findings import Finding, Report, ask_all, totals
from pipeline.audits.registry import checks, chosen
from pipeline.rendering import plots
from pipeline.rendering.plots import Picture
from pipeline.rendering.text import counted, grid
from protocol.log_records.transaction import TransactionState as State
from tests.pipeline.audited import tables_of
from tests.pipeline.fault_files import LATER_MS, Planting
from understudy.cli import main

ROWS: list[dict[str, Any]] = [
    {"topic": "orders", "partition": 12, "segment": "/var/lib/kafka/" + "deep/" * 8 + "00000000000000000000.log"},
    {"topic": "a-topic-with-a-long-name" * 3, "partition": 0, "segment": None},
]
COLUMNS = ["topic", "partition", "segment"]


def test_a_table_fits_its_terminal() -> None:
    """Long texts are cut until the lines fit; numbers and short texts are whole. Elsewhere nothing is cut further."""
    wide = grid(COLUMNS, ROWS)
    assert max(map(len, wide)) > 100
    assert grid(COLUMNS, ROWS, 200) == wide
    for width in (100, 80, 60, 45):
        lines = grid(COLUMNS, ROWS, width)
        assert len(lines) == 3
        assert max(map(len, lines)) <= width
        assert re.match(r"  topic +partition  segment$", lines[0])
        assert lines[1].split()[:2] == ["orders", "12"]
        assert lines[1].endswith("0000.log")


def test_a_table_of_many_columns_becomes_paragraphs() -> None:
    """If not even short columns fit, each row names its values; all of them are there, within the width."""
    row = {f"column_{number}": number for number in range(20)}
    lines = grid(list(row), [row, row], 50)
    assert max(map(len, lines)) <= 50
    assert [line.startswith("  column_0=0  column_1=1") for line in lines].count(True) == 2
    assert re.findall(r"column_(\d+)=(\d+)", " ".join(lines)) == [(str(n), str(n)) for n in range(20)] * 2


def test_a_report_fits_its_terminal(tmp_path: Path) -> None:
    """Tables and explanations are wrapped to the width of the terminal."""
    finding = Finding(checks()["offset-hole"], 2, ROWS)
    report = Report(str(tmp_path), None, [finding.check], [finding], dict.fromkeys(
        ("topics", "partitions", "batches", "records", "bytes"), 1
    ))  # fmt: skip
    lines = render.as_table(report, 70).splitlines()[:-1]
    assert max(map(len, lines)) <= 70
    assert max(map(len, render.as_table(report).splitlines())) > 100


def test_one_is_not_many(tmp_path: Path) -> None:
    """A single finding, record, batch or kind is counted in the singular, any other number in the plural."""
    assert [counted(1, "finding"), counted(2, "finding"), counted(0, "batch")] == [
        "1 finding",
        "2 findings",
        "0 batches",
    ]
    where = Planting(tmp_path)
    where.shelf("orders").data(1)
    where.shelf("orders").data(1, base_offset=5)
    where.close()
    checks = chosen(["offset-hole"])
    with tables_of(tmp_path) as tables:
        text = render.summary(Report("", None, checks, ask_all(tables.engine, checks), totals(tables.engine)))
    assert text.endswith(": 1 finding of 1 kind")


def texts(picture: Picture) -> list[str]:
    """The texts of a picture."""
    return re.findall(r">([^<>\n]+)</text>", picture.svg)


@pytest.mark.parametrize(
    ("span_s", "pattern"),
    [
        (0.05, r"22:15:23\.\d+"),
        (2, r"22:15:2\d\.\d"),
        (20, r"22:15:\d\d"),
        (200, r"22:1\d:\d\d"),
        (4000, r"2[23]:\d\d"),
    ],
)
def test_a_time_axis_shows_the_hour(span_s: float, pattern: str) -> None:
    """At every label, for every span below a day; the day is beside them."""
    figure, axes = plots.figure(2.6)
    start_ms = 1_700_000_123_000
    axes.plot([plots.when(start_ms), plots.when(start_ms + span_s * 1000)], [0, 1])
    plots.dated(axes)
    axes.set_yticks([])
    *labels, day = texts(Picture("x", "x", figure))
    assert day == "2023-Nov-14 UTC"
    assert len(labels) > 3
    assert all(re.fullmatch(pattern, label) for label in labels), labels


def open_transaction(root: Path, start_ms: int) -> None:
    """A transaction of a producer that is working, or was when the broker stopped."""
    where = Planting(root)
    for name, producer in (("pay$ment$-7", 34), ("refund", 35)):
        where.transaction(name, producer, 0, State.ONGOING, [("orders", 0)], at_ms=start_ms)
        where.shelf("orders").data(3, producer=producer, transactional=True)
    where.shelf("orders").data(3, producer=36, transactional=True)
    where.close()


def test_lanes_are_transactional_ids(tmp_path: Path) -> None:
    """A producer id is the name only where the coordinator has none for it. A dollar sign begins no formula."""
    open_transaction(tmp_path, LATER_MS)
    with tables_of(tmp_path) as tables:
        (picture,) = (each for each in html_report.draw(tables.engine, []) if each.title == "orders-0")
    drawn = texts(picture)
    assert {"pay$ment$-7", "refund", "producer 36"} <= set(drawn)
    assert not {"producer 34", "producer 35"} & set(drawn)
    assert picture.caption.startswith("0 transactions committed, 0 aborted (hatched), 3 not ended")


@pytest.mark.parametrize(("start_ms", "code"), [(LATER_MS, 0), (1_600_000_000_000, 1)])
def test_an_open_transaction_ends_nothing_unless_it_is_overdue(
    tmp_path: Path, start_ms: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither `--until-finding` nor a build; `--fail-on info` asks for it."""
    open_transaction(tmp_path / "data", start_ms)
    only = ["--only", "transaction-open", "--only", "transaction-overdue"]
    assert main(["audit", str(tmp_path / "data"), *only]) == code
    assert main(["audit", str(tmp_path / "data"), *only, "--fail-on", "info"]) == 1
    capsys.readouterr()
    follow = ["--follow", "0", "--steps", "4", "--until-finding", *only]
    assert main(["audit", str(tmp_path / "data"), *follow]) == code
    reported = capsys.readouterr().out
    assert ("INFO transaction-open" in reported, "WARNING transaction-overdue" in reported) == (not code, bool(code))
