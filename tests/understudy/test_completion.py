"""The completion script, asked as bash asks it."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.conftest import BrokerWith
from understudy import completion
from understudy.cli import main

SETS = "COMP_WORDS=({}); COMP_CWORD={}; _understudy"


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("se", "serve"),
        ("serve --as", "--as-version"),
        ("serve --port 1 --as", "--as-version"),
        ("ctl clo", "clock"),
        ("ctl clock a", "advance"),
        ("ctl faults add --api EndTxn --tr", "--transactional-id"),
        ("ctl transactions hold x --aft", "--after-markers"),
        ("ctl topics desc", "describe"),
        ("ctl groups describe g --wa", "--watch"),
        ("ctl journal list --fol", "--follow"),
        ("completion z", "zsh"),
    ],
)
def test_bash_completes_commands_verbs_and_options(line: str, offered: str) -> None:
    """Complete the argument under the cursor, by the arguments before it."""
    typed = ["understudy", *line.split()]
    ask = SETS.format(shlex.join(typed), len(typed) - 1) + "; echo ${COMPREPLY[*]}"
    done = subprocess.run(["bash", "-c", completion.bash() + ask], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, [offered]), done.stderr


NAMES = ("orders", "orders $(touch made) `touch made`", 'it\'s "odd"')


@pytest.fixture
def running(broker_with: BrokerWith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A server with topics, and with users of any name; the command in a folder of its own."""
    server = broker_with(topics=["orders:1", "returns:1"])
    for name in NAMES:
        server.control("POST", f"/v1/users/{quote(name, safe='')}", {"password": "secret-enough"})
    monkeypatch.setenv("UNDERSTUDY_CONTROL_URL", str(server.process.ready.control_url))
    command = tmp_path / "understudy"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m understudy "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return command


def completions(command: Path, *typed: str) -> list[str]:
    """What bash offers, as it would put it on the line."""
    ask = SETS.format(shlex.join([str(command), *typed]), len(typed))
    text = f'{completion.bash()}{ask}; for each in "${{COMPREPLY[@]}}"; do echo "$each"; done'
    environ = {**os.environ, "PYTHONPATH": str(Path(completion.__file__).parent.parent)}
    done = subprocess.run(
        ["bash", "-c", text], capture_output=True, text=True, check=True, cwd=command.parent, env=environ
    )
    return done.stdout.splitlines()


def test_bash_completes_names_of_the_running_server(running: Path) -> None:
    """Of the first argument and of options; an option is still offered where one begins."""
    assert completions(running, "ctl", "topics", "show", "") == ["orders", "returns"]
    assert completions(running, "ctl", "topics", "describe", "re") == ["returns"]
    assert completions(running, "ctl", "faults", "add", "--topic", "o") == ["orders"]
    assert completions(running, "ctl", "journal", "list", "--api", "EndT") == ["EndTxn"]
    assert "--watch" in completions(running, "ctl", "topics", "show", "--w")
    assert completions(running, "ctl", "groups", "show", "") == []


def test_names_are_quoted_and_never_run(running: Path) -> None:
    """A shell gets each as one argument."""
    offered = completions(running, "ctl", "users", "delete", "")
    assert [shlex.split(each) for each in offered] == [[name] for name in sorted(NAMES)]
    assert sorted(path.name for path in running.parent.iterdir()) == ["understudy"]


def test_nothing_is_offered_without_a_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a server the completion offers nothing, and reports no error."""
    monkeypatch.setenv("UNDERSTUDY_CONTROL_URL", "http://127.0.0.1:1")
    assert main(["completion", "names", "topic"]) == 0
    assert capsys.readouterr() == ("", "")


def test_fish_and_zsh_ask_for_names_too() -> None:
    """Fish by commands of its own, zsh by bash's script."""
    assert "-l topic -a '(understudy completion names topic)'" in completion.fish()
    assert 'completion names "$kind"' in completion.zsh()
