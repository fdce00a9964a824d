"""Java sources are compiled once, also where several processes ask for the classes at the same time."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.clients import drivers
from tests.clients.drivers import java_classes


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A source file."""
    path = tmp_path / "Driver.java"
    path.write_text("class Driver { }")
    return path


def compiled(arguments: Sequence[str | Path], *_: object, **__: str) -> str:
    """Do what `javac -d` does."""
    target = Path(arguments[arguments.index("-d") + 1])
    (target / "Driver.class").write_text(Path(arguments[-1]).read_text())
    return ""


def test_two_builds_at_the_same_time_give_the_same_complete_folder(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither takes away what the other has made, and nothing half-made is left."""
    both = threading.Barrier(2, timeout=30)

    def javac(arguments: Sequence[str | Path], *rest: object, **environment: str) -> str:
        both.wait()
        compiled(arguments, *rest, **environment)
        both.wait()
        return ""

    monkeypatch.setattr(drivers, "command", javac)
    with ThreadPoolExecutor(2) as pool:
        folders = list(pool.map(lambda _: java_classes(tmp_path / "built", tmp_path / "jars", [source]), range(2)))
    assert folders[0] == folders[1]
    assert (folders[0] / "Driver.class").read_text() == "class Driver { }"
    assert list((tmp_path / "built").iterdir()) == [folders[0]]


def test_a_build_leaves_the_classes_that_a_jvm_is_loading(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other sources get another folder; the same sources are not compiled again."""
    monkeypatch.setattr(drivers, "command", compiled)
    first = java_classes(tmp_path / "built", tmp_path / "jars", [source])
    source.write_text("class Driver { int other; }")
    second = java_classes(tmp_path / "built", tmp_path / "jars", [source])
    assert (first / "Driver.class").read_text() == "class Driver { }"
    assert (second / "Driver.class").read_text() == "class Driver { int other; }"

    monkeypatch.setattr(drivers, "command", lambda *_, **__: pytest.fail("compiled again"))
    assert java_classes(tmp_path / "built", tmp_path / "jars", [source]) == second


def test_a_failed_build_leaves_nothing(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the next one compiles again."""

    def failing(*_: object, **__: str) -> str:
        raise RuntimeError("javac: 1")

    monkeypatch.setattr(drivers, "command", failing)
    with pytest.raises(RuntimeError, match="javac"):
        java_classes(tmp_path / "built", tmp_path / "jars", [source])
    assert list((tmp_path / "built").iterdir()) == []
