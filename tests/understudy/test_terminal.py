"""`understudy ctl` on a terminal: what fits, what is cut, colours; and that pipes see none of it."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest
from rich.console import Console

from control_api import times
from control_api.verbs import BY_NAME
from tests.understudy.fake import FakeControl
from understudy import terminal
from understudy.text_table import noted

TOPICS = {
    "topics": [
        {"name": "orders", "id": "s48u3pYAReamUJ2p1N9f5g", "internal": False, "partitions": [{"partition": 0}]},
        {"name": "a" * 80, "id": "Xes5ahCySyaBlDb2LU9sxQ", "internal": True, "partitions": []},
    ]
}


def printed(verb: str, answer: Mapping[str, Any], width: int = 80) -> list[str]:
    """The lines on a terminal of that width."""
    out = io.StringIO()
    terminal.show(Console(file=out, width=width, highlight=False, color_system=None), BY_NAME[verb], answer)
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("width", [200, 80, 56])
def test_a_table_fits_the_terminal(width: int) -> None:
    """Names are cut and marked, numbers never."""
    heading, first, second = printed("topics list", TOPICS, width)
    assert max(map(len, (heading, first, second))) <= width
    assert heading.split() == ["NAME", "ID", "INTERNAL", "PARTITIONS"]
    assert first.split()[0::2] == ["orders", "no"]
    assert first.split()[-1] == "1"
    assert ("s48u3pYAReamUJ2p1N9f5g" in first) == (width > 60)
    assert ("…" in second, second.split()[0] == "a" * 80) == (width < 120, width > 120)


def test_a_table_that_cannot_fit_becomes_blocks_of_lines() -> None:
    """Rather than columns of three letters."""
    lines = printed("topics list", TOPICS, 30)
    assert max(map(len, lines)) <= 30
    assert lines[:5] == ["name        orders", "id          s48u3pYAReamUJ2p1…", "internal    no", "partitions  1", ""]


def test_lists_within_an_answer_are_tables_of_their_own() -> None:
    """What is JSON on one line in a pipe; empty columns and lists are left out, and offsets that `lags` has."""
    group = {
        "group_id": "g", "state": "Stable", "epoch": 1, "share_partitions": [], "forgotten": 0,
        "members": [{"member_id": "m", "client_id": "c", "instance_id": None, "assignment": ["t-0", "t-1"]}],
        "offsets": [{"topic": "t", "partition": 0, "offset": 4, "metadata": None, "lag": 2}],
        "lags": [
            {"topic": "t", "partition": 0, "offset": 4, "end_offset": 6, "lag": 2},
            {"topic": "t", "partition": 1, "offset": None, "end_offset": 10, "lag": None},
        ],
    }  # fmt: skip
    assert printed("groups show", group) == [
        *("group_id  g", "state     Stable", "epoch     1", "", "members"),
        *("MEMBER ID  CLIENT ID  INSTANCE ID  ASSIGNMENT", "m          c          -            t-0, t-1", ""),
        *("lags", "TOPIC  PARTITION  OFFSET  END OFFSET  LAG"),
        *("t              0       4           6    2", "t              1       -          10    -"),
    ]


EVENT = {
    "at_ms": 1, "event": "aborted for a new producer", "state_after": "PrepareAbort", "epoch_after": 1,
    "client_id": "invoicer-new", "api": "AddPartitionsToTxn", "error": "CONCURRENT_TRANSACTIONS",
    "citation": "GroupMetadataManager.classicGroupJoin (docs)",
}  # fmt: skip


@pytest.mark.parametrize(
    ("width", "left_out"),
    [
        (180, ()),
        (120, ("citation", "epoch_after")),
        (90, ("citation", "epoch_after", "state_after", "api")),
        (80, ("citation", "epoch_after", "state_after", "api")),
    ],
)
def test_the_events_of_a_timeline_are_whole(width: int, left_out: tuple[str, ...]) -> None:
    """On 90 columns an event was cut to ``aborted for a n...``, beside a citation; on 80 it had eight lines."""
    event = EVENT | {"at_ms": int(time.time() * 1000)}
    lines = printed("transactions show", {"transactional_id": "x", "timeline": [event, event | {"error": None}]}, width)
    assert max(map(len, lines)) <= width
    shown = "\n".join(lines)
    assert "…" not in shown
    for name, value in EVENT.items():
        if name not in {"at_ms", "epoch_after"}:
            assert (str(value).partition(" (")[0] in shown) == (name not in left_out), name


@pytest.mark.parametrize("width", [80, 90])
def test_the_id_of_a_member_can_be_copied(width: int) -> None:
    """It was cut; its partitions take more lines instead, and an empty column is left out."""
    member = "billing-1-32a059e7-0340-4895-b8cc-a1c64602ebfc"
    assignment = ["orders-0", "orders-1", "orders-2"]
    rows = [{"member_id": member, "client_id": "billing-1", "instance_id": None, "assignment": assignment}]
    lines = printed("groups show", {"group_id": "g", "members": rows}, width)
    assert max(map(len, lines)) <= width
    assert member in "\n".join(lines)
    assert all(f"orders-{number}" in "\n".join(lines) for number in range(3))
    assert "INSTANCE" not in "\n".join(lines)


def test_a_diagram_is_drawn() -> None:
    """It was a text with escaped line ends, above all its lanes and shapes; its lines are as long as they are."""
    text = "Group g\n  1 reader\n\n             1        2\n01:02:08.041 |------->|         " + "JoinGroup v5 " * 6
    assert printed("diagrams show", {"title": "Group g", "text": text, "lanes": []}) == [
        line.rstrip() for line in text.splitlines()
    ]


def test_an_object_within_an_answer_has_a_line_for_each_field() -> None:
    """Such as the features of a cluster."""
    lines = printed("versions show", {"as_version": "4.4", "apis": {"Fetch": {"min": 4, "max": 18}, "EndTxn": {}}})
    assert lines == ["as_version  4.4", "apis        Fetch  min 4, max 18", "            EndTxn"]


def test_times_are_local_and_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of today without the date; the cluster's clock may be elsewhere."""
    monkeypatch.setattr(times, "local_time", lambda _ms: "2001-02-03T04:05:06.789+01:00")
    assert terminal.short_time(1) == "2001-02-03 04:05:06"
    today = datetime.now().astimezone().date().isoformat()
    monkeypatch.setattr(times, "local_time", lambda _ms: f"{today}T04:05:06.789+01:00")
    assert terminal.short_time(1) == "04:05:06.789"


def test_names_that_a_terminal_obeys_and_markup_are_shown_as_they_are() -> None:
    """Control characters and markup in names, which clients choose, are shown escaped."""
    answer = {"topics": [{"name": "\x1b[2J[red]x[/red]", "id": "i", "internal": False, "partitions": []}]}
    assert printed("topics list", answer)[1].startswith("\\x1b[2J[red]x[/red]")
    fault = {"id": "f1", "match": {"group": "[/x]", "request": {"member_id": "[red]"}}}
    assert printed("faults show", fault)[1:] == ["match  group  [/x]", "       request  member_id [red]"]


def on_a_terminal(control: FakeControl, *arguments: str, columns: int = 60, **environment: str) -> str:
    """What a real terminal gets."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS", "FORCE_COLOR"}}
    command = [sys.executable, "-m", "understudy", "ctl", "--control", control.url, *arguments]
    done = subprocess.Popen(command, stdout=theirs, env=kept | {"TERM": "xterm-256color"} | environment)
    os.close(theirs)
    output = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux: the other end is closed
            break
        if not part:
            break
        output += part
    os.close(ours)
    assert done.wait(60) == 0
    return output.decode()


def test_colours_are_for_terminals_without_no_color() -> None:
    """And a pipe gets neither colours nor cut names."""
    groups = [{"group_id": "g" * 50, "type": "classic", "state": "Stable", "epoch": 3, "members": [], "lag": 7}]
    with FakeControl({"GET /v1/groups": {"groups": groups}}) as control:
        coloured = on_a_terminal(control, "groups", "list")
        assert re.search(r"\x1b\[32mStable", coloured)
        plain = on_a_terminal(control, "groups", "list", NO_COLOR="1")
        assert not re.search(r"\x1b\[3\d", plain)
        shown = [re.sub(r"\x1b\[[\d;]*m", "", line).rstrip() for line in plain.splitlines()]
        assert max(map(len, shown)) <= 60
        assert "…" in shown[2]
        command = [sys.executable, "-m", "understudy", "ctl", "--control", control.url, "groups", "list"]
        piped = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert piped.splitlines()[1].split() == ["g" * 50, "classic", "Stable", "3", "-", "7"]
    assert "\x1b" not in piped


def test_a_journal_fits_eighty_columns() -> None:
    """Without the columns that are empty, then without those that one can do without; the rest is in JSON."""
    entry = {
        "id": 8915, "at_ms": 1_795_540_428_390, "broker": 3, "connection": 32, "client_id": "warehouse",
        "api": "AddPartitionsToTxn", "version": 16, "topics": ["orders"], "groups": [], "transactional_ids": ["x"],
        "error": "NOT_COORDINATOR", "fault": None,
    }  # fmt: skip
    above, heading, *rows = printed("journal list", {"entries": [entry] * 3}, 80)
    assert max(map(len, (above, heading, *rows))) <= 80
    assert len(rows) == 3
    assert {"AT", "CLIENT", "API", "TOPICS", "ERROR"} <= {*above.split(), *heading.split()}
    assert not {"CONNECTION", "FAULT", "GROUPS"} & {*above.split(), *heading.split()}


def test_a_request_without_an_answer_shows_what_became_of_it() -> None:
    """What one looks for when a client hangs: it looked like one that was answered. Otherwise the column is missing."""
    entry = {"id": 309, "at_ms": 0, "broker": 2, "connection": 7, "client_id": "hung", "api": "Produce", "version": 10}
    entry |= {"topics": ["audit"], "groups": [], "transactional_ids": [], "error": None, "fault": "3"}
    closed = {**entry, "outcome": "closed: a fault hangs up instead of the reply"}
    lines = printed("journal list", {"entries": [{**entry, "outcome": "never answered"}, closed]}, 80)
    assert max(map(len, lines)) <= 80
    shown = " ".join("\n".join(lines).split())
    assert "OUTCOME" in shown
    assert re.search(r"never\s+answered", shown)
    assert "closed:" in shown
    assert noted(closed)["error"] == closed["outcome"]
    answered = {**entry, "outcome": "answered"}
    assert noted(answered) == answered
    assert "OUTCOME" not in "".join(printed("journal list", {"entries": [answered]}, 80))


def test_followed_requests_have_fewer_columns_on_a_narrow_terminal() -> None:
    """They are printed as they come: a line of 120 characters took two of a terminal of 80."""
    verb = BY_NAME["journal list"]
    assert len(terminal.columns_to_follow(verb, 80)) < len(terminal.columns_to_follow(verb, 160)) == len(verb.columns)
    assert {"at_ms", "client_id", "api", "topics", "error"} <= set(terminal.columns_to_follow(verb, 80))
    events = BY_NAME["transactions show"]
    assert terminal.columns_to_follow(events, 160) == terminal.NESTED["timeline"]
    assert terminal.columns_to_follow(events, 80) == ("at_ms", "event", "client_id", "api", "error")


def test_errors_and_states_are_never_cut_and_headings_take_several_lines() -> None:
    """Eighty columns are enough for the partitions of a topic, the transactions of an id, and the longest codes."""
    partition = {
        "partition": 0,
        "leader": 1,
        "leader_epoch": 0,
        "isr": [1, 2, 3],
        "log_start_offset": 0,
        "high_watermark": 123_456,
        "last_stable_offset": 123_456,
    }
    lines = printed("topics show", {"name": "orders", "partitions": [partition] * 2}, 80)
    assert lines[-1].split().count("123456") == 2
    assert not any("…" in line for line in lines)
    past = {
        "id": 51,
        "began_ms": 1,
        "ended_ms": 2,
        "outcome": "committed",
        "how": "commit decided",
        "producer_epoch": 0,
        "partitions": ["payments-0", "payments-1"],
        "refusals": 0,
        "client_id": "service",
    }
    last = printed("transactions history", {"transactional_id": "x", "transactions": [past] * 2}, 80)[-1]
    assert last.split()[0] == "51"
    assert "committed" in last
    code, now_ms = "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", int(datetime.now().astimezone().timestamp() * 1000)
    entry = {
        "id": 1,
        "at_ms": now_ms,
        "broker": 1,
        "connection": 1,
        "client_id": "a-long-client-id",
        "version": 5,
        "api": "InitProducerId",
        "topics": [],
        "groups": [],
        "transactional_ids": ["payments-1"],
        "error": code,
    }
    assert printed("journal list", {"entries": [entry]}, 80)[-1].endswith(code)


def test_sentences_take_more_lines_and_series_are_bars() -> None:
    """What a fault does is not cut; sixty numbers are as many characters, or the latest ones in a table."""
    fault = {"id": "1", "meets": "EndTxn of transactional id payments, 2 times", "does": "served, then never answered"}
    text = " ".join(" ".join(printed("faults list", {"faults": [{**fault, "hits": 2, "remaining": 0}]}, 60)).split())
    assert all(each in text for each in ("payments,", "times", "answered"))
    series = [0] * 50 + [1, 2, 4, 8]
    lines = printed("overview", {"series": series, "step_ms": 2000, "apis": [{"name": "Fetch", "series": series}]})
    assert lines[0].endswith("▁▂▄█")
    assert len(lines[0]) == len("series  ") + len(series)
    assert not [line for line in lines if "step_ms" in line]
    assert lines[-1].startswith("Fetch")
    assert lines[-1].endswith("▁▂▄█")
