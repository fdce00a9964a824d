"""The examples for JUnit 5, Go and Node, each by its language's own runner, in a copy of its folder."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.clients.drivers import command
from tests.clients.targets import CACHE
from tests.examples.running import EXAMPLES, SETUP, needs, ran

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]
# The command is the one that belongs to this Python.
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def copied(name: str) -> Path:
    """The example where it may be built."""
    folder = CACHE / "build" / "examples" / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(EXAMPLES / name, folder)
    return folder


def test_junit() -> None:
    """All of it compiles; what needs no container engine runs."""
    needs("javac", "mvn")
    said = ran(["mvn", "--batch-mode", "-Dstyle.color=never", "test"], copied("junit"), PATH=PATH)
    by_class = dict(re.findall(r"Tests run: (\d+, Failures: 0, Errors: 0, Skipped: \d+), .* in (\w+)", said))
    told = {name: counts for counts, name in by_class.items()}
    assert told["OrdersTest"] == "2, Failures: 0, Errors: 0, Skipped: 0"
    assert told["OrdersInContainerTest"].startswith("1, ")


def test_go() -> None:
    """With testing, and with vet."""
    needs("go")
    command([SETUP, "go"])
    folder = copied("go")
    for words in (["vet"], ["test", "-count=1", "-v"]):
        said = ran([CACHE / "go" / "go", *words, "./..."], folder, PATH=PATH, GOTOOLCHAIN="auto")
    assert said.count("--- PASS: Test") == 2


def test_node() -> None:
    """With node:test."""
    needs("node", "npm")
    folder = copied("node")
    ran(["npm", "install", "--no-package-lock", "--no-audit", "--no-fund"], folder)
    said = ran(["node", "--test", "--test-reporter=tap"], folder, PATH=PATH)
    assert re.search(r"^# pass 2\n# fail 0$", said, re.MULTILINE), said
