"""`ctl --follow` and `--watch`."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import pytest

from control_api.verbs import BY_NAME
from tests.understudy.fake import FakeControl
from understudy.cli import main
from understudy.repeating import Lines, follow

JOURNAL, TRANSACTION = BY_NAME["journal list"], BY_NAME["transactions show"]


def request(number: int, *, served: bool = True) -> dict[str, Any]:
    """A row of the journal."""
    return {"id": number, "duration_ms": 0.5 if served else None}


class Answers:
    """Answers one after the other, the last one for ever; what was asked for, and how often there was a pause."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers, self.queries, self.pauses = list(answers), list[Mapping[str, Any]](), 0

    def ask(self, query: Mapping[str, Any]) -> Any:
        """The next answer."""
        self.queries.append(query)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def pause(self) -> None:
        """Between two requests; a test that goes on for ever fails."""
        self.pauses += 1
        assert self.pauses < 50


def test_requests_are_followed_each_once_and_when_they_were_answered() -> None:
    """The oldest that is still served is where the next question begins."""
    script = Answers(
        {"entries": [request(7), request(8, served=False), request(9)]},
        {"entries": [request(8, served=False), request(9)]},
        {"entries": [request(8), request(9), request(10)]},
        {"entries": [request(11)]},
    )
    rounds = follow(JOURNAL, script.ask, {"api": "Fetch", "limit": 3}, script.pause)
    assert [[row["id"] for row in rows] for rows in islice(rounds, 3)] == [[7, 9], [8, 10], [11]]
    assert script.queries == [{"api": "Fetch", "limit": 3}, *({"api": "Fetch", "since": at} for at in (8, 8, 11))]


def test_an_empty_journal_is_followed_from_its_beginning() -> None:
    """Following an empty journal leaves out nothing that comes."""
    script = Answers({"entries": []}, {"entries": []}, {"entries": [request(1), request(2)]})
    assert next(follow(JOURNAL, script.ask, {}, script.pause)) == [request(1), request(2)]
    assert script.queries == [{"limit": 20}, {"since": 1}, {"since": 1}]


def test_following_begins_where_it_was_asked_to() -> None:
    """Also if nothing has come since then: what is older is not wanted."""
    script = Answers({"entries": []}, {"entries": []}, {"entries": [request(9)]}, {"entries": [request(10)]})
    rounds = follow(JOURNAL, script.ask, {"since": 1_795_000_000_000}, script.pause)
    assert list(islice(rounds, 2)) == [[request(9)], [request(10)]]
    assert [each["since"] for each in script.queries] == [*[1_795_000_000_000] * 3, 10]


def test_events_are_followed_although_old_ones_are_merged_and_forgotten() -> None:
    """After a reset the timeline begins again."""

    def events(*names: str, merged: int = 1, forgotten: int = 0) -> dict[str, Any]:
        counts = [merged] + [1] * (len(names) - 1)
        rows = [{"event": name, "count": each} for name, each in zip(names, counts, strict=True)]
        return {"timeline": rows, "forgotten": forgotten}

    script = Answers(
        events("a", "b"),
        events("a", "b"),
        events("ab", "c", "d", merged=2),
        events("d", "e", forgotten=3),
        events("x"),
    )
    rounds = follow(TRANSACTION, script.ask, {"transactional_id": "t"}, script.pause)
    assert [[row["event"] for row in rows] for rows in islice(rounds, 4)] == [["a", "b"], ["c", "d"], ["e"], ["x"]]


def test_columns_grow_and_stay_aligned() -> None:
    """Columns grow with their values, and the heading is printed once."""
    lines = Lines(("id", "api"))
    first = [line for line, _ in lines.of([{"id": 1, "api": "Fetch"}])]
    second = [line for line, _ in lines.of([{"id": 1000, "api": "EndTxn"}, {"id": 7, "api": None}])]
    assert first == ["ID  API", "1   Fetch"]
    assert second == ["1000  EndTxn", "7     -"]


@pytest.fixture
def control() -> Iterator[FakeControl]:
    """A control plane with two requests in its journal."""
    entries = [{**request(number), "api": "Fetch", "error": None} for number in (1, 2)]
    with FakeControl({"GET /v1/journal": {"entries": entries}, "GET /v1/groups": {"groups": []}}) as fake:
        yield fake


def test_following_as_json_is_a_document_a_line_until_ctrl_c(control: FakeControl) -> None:
    """Each line is there at once, for programs that read a pipe; Ctrl-C is no error."""
    arguments = ["journal", "list", "--follow", "--json", "--every", "10ms"]
    command = [sys.executable, "-m", "understudy", "ctl", "--control", control.url, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert [json.loads(process.stdout.readline())["id"] for _ in range(2)] == [1, 2]
        process.send_signal(signal.SIGINT)
        assert (process.wait(60), process.stderr.read()) == (0, "")


def test_watching_redraws_until_ctrl_c(control: FakeControl) -> None:
    """On the screen that programs such as less use, which is left at the end."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "understudy", "ctl", "--control", control.url, "groups", "list", "--watch"]
    environment = os.environ | {"TERM": "xterm-256color"}
    process = subprocess.Popen([*command, "--every", "10ms"], stdout=theirs, env=environment)
    os.close(theirs)
    output = b""
    while output.count(b"no groups") < 2:
        output += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0
    while b"\x1b[?1049l" not in output:
        output += os.read(ours, 65536)
    os.close(ours)
    assert output.count(b"\x1b[?1049h") == 1


@pytest.mark.parametrize(("verb", "more"), [("groups list", ""), ("journal list", "; --follow prints a line for each")])
def test_watching_into_a_pipe_is_refused(verb: str, more: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With what to use instead, where there is something."""
    with pytest.raises(SystemExit) as left:
        main(["ctl", *verb.split(), "--watch"])
    output = capsys.readouterr()
    assert (left.value.code, output.out, more in output.err) == (2, "", True)
    assert "--watch redraws a terminal, and the output goes elsewhere" in output.err
