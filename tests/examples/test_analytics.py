"""examples/analytics: the notebook cell by cell, and the script that cron starts."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from confluent_kafka import Producer

from tests.clients.targets import ROOT
from tests.conftest import BrokerWith
from tests.examples.running import EXAMPLES
from tests.pipeline.fault_files import Planting

FOLDER = EXAMPLES / "analytics"


def test_the_notebook_runs_from_its_first_cell_to_its_last() -> None:
    """In one namespace, as in Jupyter. It is stored without outputs."""
    notebook = json.loads((FOLDER / "directory.ipynb").read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    names: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            exec(compile("".join(cell["source"]), cell["id"], "exec"), names)  # noqa: S102 - our own example
    assert len(names["orders"]) == 95
    assert names["spent"]["orders"].sum() == 95
    assert names["spent"]["amount"].sum() == sum(number * 10 for number in range(100) if number % 20)
    assert dict(zip(names["markers"]["control_type"], names["markers"]["number"], strict=True)) == {
        "ABORT": 5, "COMMIT": 95,
    }  # fmt: skip
    assert names["audit"]["findings"] == []
    assert names["audit"]["totals"]["topics"] >= 3


def nightly(source: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """One night's run."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [FOLDER / "nightly.sh", source, folder / "lake", folder / "reports", "--topic", "orders"],
        env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
        timeout=400,
    )  # fmt: skip


def records(folder: Path) -> int:
    """How many records the export has."""
    manifest = json.loads((folder / "lake" / "_manifest.json").read_text())
    return sum(each["records"] for each in manifest["files"])


def directory(root: Path, batches: int, *, hole: bool = False) -> None:
    """A broker's directory."""
    where = Planting(root)
    for _ in range(batches):
        where.shelf("orders").data(3)
    if hole:
        where.shelf("orders").data(3, base_offset=100)
    where.close()


@pytest.mark.timeout(900)
def test_each_night_goes_on_where_the_last_one_ended(tmp_path: Path, broker_with: BrokerWith) -> None:
    """With a report of each audit; what it finds ends the run with exit code 1. And with a running cluster."""
    directory(tmp_path / "first", 2)
    done = nightly(str(tmp_path / "first"), tmp_path)
    assert (done.returncode, records(tmp_path)) == (0, 6), done.stderr
    directory(tmp_path / "second", 3, hole=True)
    done = nightly(str(tmp_path / "second"), tmp_path)
    assert (done.returncode, records(tmp_path)) == (1, 12), done.stderr
    (report,) = (tmp_path / "reports").glob("*.xml")
    assert ET.parse(report).getroot().get("failures") == "1"  # noqa: S314 - our own
    server = broker_with(topics=["orders:1"])
    producer = Producer({"bootstrap.servers": server.addresses[0]})
    producer.produce("orders", b"v")
    assert producer.flush(60) == 0
    done = nightly(server.addresses[0], tmp_path / "live")
    assert (done.returncode, records(tmp_path / "live")) == (0, 1), done.stderr


def test_the_crontab_starts_the_script() -> None:
    """Five fields of time, then a command line that the script takes."""
    (line,) = (each for each in (FOLDER / "crontab").read_text().splitlines() if not each.startswith("#"))
    *times, command = line.split(maxsplit=5)
    assert (len(times), Path(command.split()[0]).name) == (5, "nightly.sh")
    assert os.access(FOLDER / "nightly.sh", os.X_OK)
