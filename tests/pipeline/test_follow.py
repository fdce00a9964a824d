"""Audits of a directory in use: a finding is reported once, and only if it stays; metrics; ends."""

import json
import socket
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.audits.engine import EngineError
from pipeline.audits.findings import Finding
from pipeline.audits.follow import Followed, Row, measured
from pipeline.audits.registry import checks
from pipeline.commands import follow
from pipeline.commands.audit import main as audit
from pipeline.commands.progress import Progress
from pipeline.duck.tables import DuckTables
from tests.pipeline.audited import tables_of
from tests.pipeline.conftest import Refused
from tests.pipeline.fault_files import Planting
from tests.ports import free_ports
from understudy.cli import main

HOLE = checks()["offset-hole"]
OPTIONS: dict[str, Any] = {
    "follow": 1.0, "steps": 0, "until_finding": False, "metrics_port": None, "fail_on": "warning", "format": "json",
}  # fmt: skip


def damaged(root: Path) -> None:
    """A log with a hole, an open transaction and a group that lags behind."""
    where = Planting(root)
    log = where.shelf("orders")
    log.data(3)
    log.data(3, base_offset=10)
    log.data(2, producer=5, transactional=True)
    where.committed_offset("g", "orders", 0, 11)
    where.close()


def finding_at(offset: int, **more: Any) -> Finding:
    """A finding of one row."""
    return Finding(HOLE, 1, [{"topic": "t", "partition": 0, "offset": offset, **more}])


def test_a_finding_is_reported_once_and_only_if_it_stays() -> None:
    """Not in the first step, not if it is gone in the next one, and not again with another age."""
    followed = Followed()
    assert followed.step([finding_at(1), finding_at(2, age_ms=5)]) == []
    assert [each.row["offset"] for each in followed.step([finding_at(2, age_ms=9)])] == [2]
    assert followed.step([finding_at(2, age_ms=11), finding_at(1)]) == []
    assert [each.row["offset"] for each in followed.step([finding_at(1)])] == [1]
    assert (followed.steps, followed.reported, followed.current) == (4, {"offset-hole": 2}, {"offset-hole": 1})


class Steps:
    """A follower of a directory, step by step; `between` is called where it would wait."""

    def __init__(self, root: Path, between: Callable[[int], bool], **options: Any) -> None:
        self.lines: list[dict[str, Any]] = []
        self.waited: list[float] = []

        def pause(seconds: float) -> bool:
            self.waited.append(seconds)
            return between(len(self.waited))

        def register(_: Progress) -> DuckTables:
            tables = DuckTables(str(root))
            tables.register()
            return tables

        self.follower = follow.Follower(
            {**OPTIONS, **options}, [HOLE], register, lambda text: self.lines.append(json.loads(text)), pause
        )
        self.code = self.follower.run()


def test_it_goes_on_until_it_is_ended_and_survives_a_directory_that_is_gone(tmp_path: Path) -> None:
    """The log gets its hole while it is followed; then the directory is away for a step."""
    Planting(tmp_path / "data").close()

    def between(pause: int) -> bool:
        if pause == 2:
            (tmp_path / "data").rename(tmp_path / "away")
            damaged(tmp_path / "new")
        if pause == 3:
            (tmp_path / "new").rename(tmp_path / "data")
        return pause == 6

    steps = Steps(tmp_path / "data", between)
    assert steps.code == 1
    assert [(each["step"], each["check"], each["offset"]) for each in steps.lines] == [(5, "offset-hole", 10)]
    assert (steps.follower.followed.steps, steps.follower.followed.failures) == (6, 1)
    assert steps.waited == [1.0] * 6


def test_it_ends_with_the_first_finding_or_after_its_steps(tmp_path: Path) -> None:
    """Findings below `--fail-on` do not end it."""
    damaged(tmp_path)
    assert (first := Steps(tmp_path, lambda _: False, until_finding=True)).code == 1
    assert (len(first.waited), len(first.lines)) == (1, 1)
    assert (few := Steps(tmp_path, lambda _: False, steps=1)).code == 0
    assert (few.waited, few.lines) == ([], [])


def test_metrics_have_findings_records_lag_and_open_transactions(tmp_path: Path) -> None:
    """Prometheus scrapes findings, records, lag and open transactions."""
    damaged(tmp_path)
    (port,) = free_ports(1)
    scraped: list[str] = []
    known = Followed()
    with tables_of(tmp_path) as tables:
        known.measured = measured(tables.engine)
    known.step([finding_at(10)])
    from prometheus_client import CollectorRegistry, start_http_server  # noqa: PLC0415 - for this test alone

    registry = CollectorRegistry()
    registry.register(follow.Collector(known))
    server, thread = start_http_server(port, follow.HOST, registry)
    try:
        with urllib.request.urlopen(f"http://{follow.HOST}:{port}/metrics", timeout=60) as answer:
            scraped = answer.read().decode().splitlines()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert 'understudy_audit_findings{check="offset-hole"} 1.0' in scraped
    assert 'understudy_audit_records{topic="orders"} 8.0' in scraped
    assert 'understudy_audit_lag{group="g",partition="0",topic="orders"} 4.0' in scraped
    assert 'understudy_audit_open_transactions{partition="0",topic="orders"} 1.0' in scraped
    assert "understudy_audit_steps 1.0" in scraped


def test_the_command_reports_in_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two steps are reported in lines, and the exit code is 1."""
    damaged(tmp_path)
    code = main(["audit", str(tmp_path), "--follow", "0", "--steps", "2", "--only", "offset-hole"])
    assert (code, capsys.readouterr().out.count("ERROR offset-hole: offsets are missing: ")) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "2"], "need --follow"),
        (["--until-finding"], "need --follow"),
        (["--follow", "-1"], "cannot be negative"),
        (["--follow", "--format", "html"], "use --format table or json"),
        (["--follow", "--metrics-port", "70000"], "give a port from 1 to 65535"),
    ],
)
def test_what_does_not_go_together_is_refused(
    tmp_path: Path, arguments: list[str], message: str, refused: Refused
) -> None:
    """In one sentence, with exit code 2."""
    assert message in refused("audit", str(tmp_path), *arguments)


def test_a_port_that_is_taken_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A port in use is reported in one sentence that names its option."""
    damaged(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SystemExit) as refused:
        main(["audit", str(tmp_path), "--follow", "0", "--metrics-port", str(taken.getsockname()[1])])
    assert refused.value.code == 2
    assert "cannot be bound: Address already in use; choose another port" in capsys.readouterr().err


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At the beginning; later it may come back."""
    arguments = {**dict.fromkeys(("list", "show", "records", "journal")), **OPTIONS, "dir": str(tmp_path / "none")}
    with pytest.raises(SystemExit) as refused:
        audit({**arguments, "only": [], "without": [], "quiet": True})
    assert refused.value.code == 2
    assert "none" in capsys.readouterr().err


def test_a_step_that_cannot_be_done_is_explained_once(tmp_path: Path) -> None:
    """Until the reason is another one, or a step between could be done; exit code 2 if none could."""
    Planting(tmp_path).close()

    def run(*reasons: Exception | None) -> tuple[int, list[str]]:
        left, sentences = list(reasons), list[str]()

        def register(_: Progress) -> DuckTables:
            if (reason := left.pop(0)) is not None:
                raise reason
            tables = DuckTables(str(tmp_path))
            tables.register()
            return tables

        options = {**OPTIONS, "steps": len(reasons)}
        follower = follow.Follower(options, [HOLE], register, print, lambda _: False, None, sentences.append)
        return follower.run(), sentences

    away, broken = PermissionError(13, "Permission denied", "/data"), EngineError("no such column")
    assert run(away, away, broken, away) == (2, [str(away), "no such column", str(away)])
    assert run(away, None, away) == (0, [str(away), str(away)])


def test_the_command_explains_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A check of the user's own that no engine understands, in each of three steps."""
    damaged(tmp_path / "data")
    (tmp_path / "checks").mkdir()
    text = "-- title: mine\n-- severity: error\n-- It asks for what is not there.\nSELECT nonsense FROM batches\n"
    (tmp_path / "checks" / "mine.sql").write_text(text)
    options = ["--follow", "0", "--steps", "3", "--checks", str(tmp_path / "checks"), "--only", "mine"]
    assert main(["audit", str(tmp_path / "data"), *options]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith("understudy audit: ")
    assert "nonsense" in sentence


def test_texts_of_clients_do_not_reach_the_terminal_as_they_are() -> None:
    """Control characters in names from clients are escaped before they reach the terminal."""
    shown = follow.line(Row(HOLE, {"topic": "t", "group_id": "\x1b[2J", "offset": 5}), "table", 1)
    assert shown.endswith(r"topic=t, group_id=\x1b[2J, offset=5")
