"""`understudy conformance` reads the journals that the pytest fixture keeps of failed tests."""

import json
import re
from pathlib import Path
from typing import Any, cast

import pytest
from confluent_kafka import Producer

from pipeline.conformance import kept_journals, run
from pipeline.duck.engine import DuckEngine
from pipeline.duck.tables import register_conformance
from understudy.client import start
from understudy.pytest_plugin import keep_journal


class Item:
    """What the plugin asks of a test: its name, and where to keep journals."""

    nodeid = "tests/test_it.py::test_it"

    def __init__(self, folder: Path) -> None:
        self.config, self.folder = self, folder
        self.invocation_params = pytest.Config.InvocationParams(args=(), plugins=None, dir=Path.cwd())

    def getoption(self, name: str) -> str:
        """The value of `--kafka-journal`."""
        assert name == "--kafka-journal"
        return str(self.folder)


def test_what_the_fixture_kept_is_read(tmp_path: Path) -> None:
    """With the software, the versions offered, and the occasions of five batches in one sequence."""
    with start(topics={"t": 1}) as kafka:
        settings = {"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True, "linger.ms": 0}
        producer = Producer(settings | {"log_level": 0})
        for number in range(5):
            producer.produce("t", str(number).encode())
            assert producer.flush(60) == 0
        keep_journal(cast("Any", Item(tmp_path / "kept")), kafka, 1)
    run = look(kept_journals.readable(str(tmp_path / "kept"), tmp_path / "scratch"))
    verdicts = {each.check.name: (each.text, each.occasions) for each in run.verdicts()}
    assert verdicts["i03-sequence"] == ("kept", 4)
    assert verdicts["i14-outside-transaction"] == ("not exercised", 0)
    assert [row["software"] for row in run.parts["clients"]] == ["confluent-kafka-python"]
    assert re.search(r"none of 38 invariants broken; \d+ kept, \d\d not exercised$", run.summary)


def look(path: str) -> run.Run:
    """The report on a journal."""
    engine = DuckEngine()
    try:
        register_conformance(engine, path)
        return run.look(engine, path, run.invariants())
    finally:
        engine.close()


def test_other_files_are_no_journal(tmp_path: Path) -> None:
    """JSON of something else, a request without its fields, what is no JSON: the message is that of an empty folder."""
    for name, text in {"a": "{}", "b": json.dumps([{"id": 1}]), "c": "no JSON"}.items():
        (tmp_path / f"{name}.json").write_text(text, encoding="utf-8")
    with pytest.raises(FileNotFoundError, match="no journal there"):
        kept_journals.readable(str(tmp_path), tmp_path / "scratch")
    assert not (tmp_path / "scratch").exists()
