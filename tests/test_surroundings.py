"""A test run does not depend on the shell that started it, nor a test on one that failed before it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LEAVES_A_SOCKET = """
import gc, socket, pytest

def test_fails():
    left, also_left = socket.socketpair()
    assert left is None

def test_is_innocent():
    gc.collect()
"""
LEAVES_OPEN = """
import threading
import tests.surroundings
tests.surroundings.GRACE_S = 0.1
left = []

def test_leaves():
    left.append(WHAT)
    getattr(left[0], "start", int)()
"""
IS_NEXT = "def test_next(): pass"
SHOWS = """
import os, signal
def test_shows():
    umask = os.umask(0)
    os.umask(umask)
    dispositions = [signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGINT)]
    print("seen", *dispositions, oct(umask), os.environ.get("UNDERSTUDY_SEED"))
"""


@pytest.mark.parametrize(("plugin", "innocent"), [(True, True), (False, False)])
def test_a_failed_test_leaves_nothing_to_its_neighbours(tmp_path: Path, plugin: bool, innocent: bool) -> None:
    """Without the plugin its socket fails the next one."""
    output = run(tmp_path, LEAVES_A_SOCKET, plugin=plugin)
    assert ("1 failed, 1 passed" in output) == innocent, output
    assert ("2 failed" in output) != innocent, output


@pytest.mark.parametrize(
    ("left", "name"),
    [
        ("threading.Timer(2, int)", "thread Thread-"),
        ("threading.Thread(target=threading.Event().wait, args=(2,), daemon=True)", None),
    ],
)
def test_a_file_that_leaves_a_thread_fails(tmp_path: Path, left: str, name: str | None) -> None:
    """At its end, by the name of the thread; one that does not keep the process is no reason."""
    (tmp_path / "test_next.py").write_text(IS_NEXT)
    output = run(tmp_path, LEAVES_OPEN.replace("WHAT", left), plugin=True)
    assert (name is None) == ("leaves behind" not in output), output
    assert f"test_it.py leaves behind: {name}" in output or name is None, output


def test_a_run_under_nohup_in_the_background_is_as_any_other(tmp_path: Path) -> None:
    """With signals ignored, a strict umask, and a setting of the server in the environment."""
    seen = run(tmp_path, SHOWS, plugin=True, ignoring=True)
    assert "seen 0 <built-in function default_int_handler> 0o22 None" in seen, seen
    seen = run(tmp_path, SHOWS, plugin=False, ignoring=True)
    assert "seen 1 1 0o77 7" in seen, seen


def run(folder: Path, text: str, *, plugin: bool, ignoring: bool = False) -> str:
    """The output of pytest over a file of tests."""
    (folder / "test_it.py").write_text(text)
    options = ["-p", "tests.surroundings"] if plugin else []

    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.umask(0o077)

    files = sorted(each.name for each in folder.glob("test_*.py"))
    warnings = ["-W", "error::ResourceWarning", "-W", "error::pytest.PytestUnraisableExceptionWarning"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *warnings, *options, *files],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "UNDERSTUDY_SEED": "7"},
        preexec_fn=ignore if ignoring else None,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
