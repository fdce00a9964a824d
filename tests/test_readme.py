"""The README's quick start, as a stranger types it."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.serving import start
from understudy.cli import main

ROOT = Path(__file__).resolve().parent.parent
MINUTE = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Quick start")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", MINUTE, re.MULTILINE | re.DOTALL)


def lines(command: str) -> list[str]:
    """Those of the shell's blocks that begin so."""
    return [line for kind, text in BLOCKS if not kind for line in text.splitlines() if line.startswith(command)]


def test_the_test_passes_in_a_folder_of_its_own(tmp_path: Path) -> None:
    """The README's test passes in an empty folder, pasted without a change."""
    (code,) = [text for kind, text in BLOCKS if kind == "python"]
    (tmp_path / "test_orders.py").write_text(code, encoding="utf-8")
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--noconftest",
        "--rootdir",
        str(tmp_path),
    ]
    plugin = "import importlib.metadata as m; print(bool(m.entry_points(group='pytest11', name='understudy')))"
    known = subprocess.run([sys.executable, "-c", plugin], env=env, capture_output=True, text=True, check=True).stdout
    if known.strip() == "False":  # in a checkout that was not installed
        command += ["-p", "understudy.pytest_plugin"]
    done = subprocess.run([*command, str(tmp_path)], env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr


def test_the_verbs_work_on_the_cluster_that_was_started_before() -> None:
    """One after the other; the printed options make the cluster."""
    (served, _) = lines("understudy serve ")
    assert shlex.split(served)[2:] == ["--brokers", "3", "--topic", "orders:6"]
    process = start(brokers=3, topics=["orders:6"])
    try:
        commands = lines("understudy ctl ")
        assert len(commands) >= 5
        for line in commands:
            out = io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                code = main([*shlex.split(line)[1:], "--control", str(process.ready.control_url)])
            assert code == 0, f"{line}: {out.getvalue()}"
    finally:
        process.stop()
