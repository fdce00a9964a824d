"""Runs an example as a stranger would: a command, its arguments, what it prints."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.clients.drivers import IN_CI, command
from tests.clients.targets import JVM, ROOT, kafka_libs

EXAMPLES = ROOT / "examples"
SETUP = ROOT / "tests" / "clients" / "setup.sh"
MAVEN_OPTS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""As in setup.sh: it runs for seconds."""


def needs(*tools: str) -> None:
    """Skip on a developer's machine without one of the tools; fail in CI."""
    if absent := [tool for tool in tools if shutil.which(tool) is None]:
        missing = f"needs {', '.join(absent)}: tests/clients/setup.sh toolchains"
        if IN_CI:
            pytest.fail(missing)
        pytest.skip(missing)


def ran(command: Sequence[str | Path], folder: Path = ROOT, **environment: str) -> str:
    """What the command prints; fails the test if it ends badly."""
    env = {"MAVEN_OPTS": MAVEN_OPTS} | os.environ | {"PYTHONPATH": str(ROOT)} | environment
    parts = [str(part) for part in command]
    done = subprocess.run(parts, cwd=folder, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{' '.join(parts)}: {done.returncode}\n{(done.stdout + done.stderr)[-4000:]}"
    return done.stdout


def python(example: str, *arguments: str) -> str:
    """What a Python example prints."""
    return ran([sys.executable, EXAMPLES / example, *arguments])


def java(example: str, *arguments: str) -> str:
    """What a Java example prints, started from its source against kafka-clients 4.3.1."""
    needs("javac", "mvn")
    command([SETUP, "kafka"])
    return ran(["java", *JVM, "-cp", f"{kafka_libs()}/*", EXAMPLES / example, *arguments])
