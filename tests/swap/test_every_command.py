"""Nothing that Understudy did not make is changed by a verb or a command: every path is compared, byte by byte."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.control.conftest import QUICK
from tests.control.harness import ControlPlane
from tests.control.test_openapi import EVERYTHING, something_of_everything
from tests.control.test_security import AUTHORIZER
from tests.serving import Server, start
from tests.swap.test_foreign_files import fill_with_sources, tree

MINE = {
    "notes.txt": "mine",
    "t-0/notes.txt": "mine",
    "docs/notes.txt": "mine",
    "t-0.bak/00000000000000000000.log": "mine",
    "00000000000000000000.log": "mine",
    ".hidden": "mine",
    "understudy.properties.bak": "mine",
}
"""Beside and among the files of a broker."""


def put(folder: Path) -> None:
    """Put the files of `MINE` into a folder."""
    for name, text in MINE.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


def check_kept(folder: Path) -> None:
    """Every one of `MINE` is there, as it was; those of a deleted partition in the folder that Kafka renames it to."""
    kept = {}
    for name in MINE:
        above, _, file = name.rpartition("/")
        renamed = folder.glob(f"{above}.*-delete/{file}") if above else ()
        kept[name] = [path.read_text() for path in (folder / name, *renamed) if path.exists()]
    assert kept == {name: [text] for name, text in MINE.items()}


@pytest.mark.timeout(120)
def test_no_verb_touches_a_file_of_the_users(tmp_path: Path) -> None:
    """All verbs of the control plane, those that delete among them, in a directory and a journal with foreign files."""
    data, journal = tmp_path / "data", tmp_path / "journal"
    settings = {**QUICK, **AUTHORIZER}
    nodes = {"brokers": 2, "controllers": 3, "features": {"kraft.version": 1}}
    process = start(**nodes, topics=["t:2", "u:1"], settings=settings, journal=journal, data_dir=data)
    folders = [data / "broker-1", data / "broker-2", data / "controller-3001", journal]
    for folder in folders:
        put(folder)
    before_snapshots = fill_with_sources(tmp_path / ".data.understudy-snapshots.mine")
    plane = ControlPlane(Server(process))
    with something_of_everything(plane) as ids:
        for method, path, body in EVERYTHING:
            filled = path.replace("FAULT", ids["fault"]).replace("MEMBER", ids["member"]).replace("ACL", ids["acl"])
            plane.http(method, filled.replace("PRODUCER", ids["producer"]), body)
            check_kept(data / "broker-1")
    plane.kafka.reset(disconnect=True)
    process.stop()
    for folder in folders:
        check_kept(folder)
    assert tree(tmp_path / ".data.understudy-snapshots.mine") == before_snapshots


COMMANDS = (
    ("serve", "--port", "0", "--control-port", "off", "--data-dir", "{mine}"),
    ("serve", "--port", "0", "--control-port", "off", "--data-dir", "{mine}", "--brokers", "2"),
    ("serve", "--port", "0", "--control-port", "off", "--data-dir", "{mine}", "--read-only"),
    ("serve", "--port", "0", "--control-port", "off", "--data-dir", "{mine}", "--allow-reset"),
    ("serve", "--port", "0", "--control-port", "off", "--ready-file", "{mine}/README.md"),
    ("serve", "--port", "0", "--control-port", "off", "--journal", "{mine}/README.md"),
    ("audit", "{data}", "--out", "{mine}/README.md"),
    ("report", "{data}", "--out", "{mine}/README.md"),
    ("report", "{data}", "--plots", "{mine}/README.md"),
    ("conformance", "{journal}", "--out", "{mine}/README.md"),
    ("export", "{data}", "{mine}"),
    ("export", "{data}", "{mine}", "--overwrite"),
    ("load", "{mine}", "--to", "{data}"),
    ("compare", "--kafka", "127.0.0.1:1", "--json", "{mine}/README.md"),
    ("compare", "--kafka", "127.0.0.1:1", "--junit", "{mine}/README.md"),
    ("ctl", "--control", "{url}", "journal", "pcap", "--output", "{mine}/README.md"),
)
"""Each is given a path of the user's where it would write."""


@pytest.mark.timeout(180)
def test_no_command_writes_over_a_file_of_the_users(tmp_path: Path) -> None:
    """Each refuses in one sentence that names the path, and changes nothing in the folder."""
    before = fill_with_sources(tmp_path / "mine")
    process = start(topics={"t": 1}, data_dir=tmp_path / "data", journal=tmp_path / "journal")
    plane = ControlPlane(Server(process))
    plane.kafka.topics["t"].write("v")
    plane.server.finish_test()
    places = {"mine": tmp_path / "mine", "data": tmp_path / "data", "journal": tmp_path / "journal"}
    for command in COMMANDS:
        arguments = [part.format(url=plane.kafka.control_url, **places) for part in command]
        run = [sys.executable, "-m", "understudy", *arguments]
        done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode in {1, 2}, done.stderr.count("\n")) == (True, 1), (command, done.stderr)
        assert str(tmp_path / "mine") in done.stderr
        assert tree(tmp_path / "mine") == before, command
    process.stop()


@pytest.mark.timeout(400)
def test_an_output_is_written_where_nothing_is_lost(tmp_path: Path) -> None:
    """The positive control: to a new path, and again over that output."""
    process = start(topics={"t": 1}, data_dir=tmp_path / "data")
    ControlPlane(Server(process)).kafka.topics["t"].write("v")
    process.stop()
    out = tmp_path / "audit.json"
    for _ in range(2):
        command = [sys.executable, "-m", "understudy", "audit", str(tmp_path / "data"), "--only", "batch-crc"]
        command += ["--format", "json", "--out", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
        assert done.returncode == 0, done.stderr
        assert json.loads(out.read_text())["generator"] == "understudy audit"
