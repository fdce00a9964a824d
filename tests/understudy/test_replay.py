"""A journal as a scenario: what there was at the start, which request meets which fault, and what is left out."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from control_api.scenario_file import read
from understudy.cli import main

Line = dict[str, Any]
RUN = "20261122T000512123Z-4711"


def line(api: str, request: Any = None, response: Any = None, **fields: Any) -> Line:
    """A line of a journal, of the client `app`."""
    return {
        "v": 1, "run": RUN, "era": 0, "lost": 0, "ts_us": 1_795_000_000_000_000, "duration_us": 500, "broker": 1,
        "connection": 1, "client_id": "app", "api_key": 1, "api": api, "version": 4, "outcome": "answered",
        "error": None, "request": request or {}, "response": response, **fields,
    }  # fmt: skip


def heartbeat(code: str = "NONE", group: str = "g", **fields: Any) -> Line:
    """A heartbeat and its error."""
    return line("Heartbeat", {"group_id": group}, {"error_code": code}, **fields)


def cut(api: str, request: Any, reason: str = "closed: the upstream broker closed the connection") -> Line:
    """A request without an answer."""
    return line(api, request, None, outcome=reason)


def metadata(**leaders: list[int]) -> Line:
    """Topics with the leaders of their partitions."""
    topics = [
        {"error_code": "NONE", "name": name, "is_internal": False, "partitions": [
            {"partition_index": at, "leader_id": leader, "replica_nodes": [leader]} for at, leader in enumerate(nodes)]}
        for name, nodes in leaders.items()
    ]  # fmt: skip
    brokers = [{"node_id": each} for each in sorted({leader for nodes in leaders.values() for leader in nodes})]
    requested_topics = [{"name": name} for name in leaders]
    return line("Metadata", {"topics": requested_topics}, {"brokers": brokers, "topics": topics})


def produce(base: int, code: str = "NONE", *, count: int = 1, sequence: int = -1, **fields: Any) -> Line:
    """A batch to t-0."""
    producer = -1 if sequence < 0 else 7
    records = {"count": count, "producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
    request = {"topic_data": [{"name": "t", "partition_data": [{"index": 0, "records": records}]}]}
    answer = {"index": 0, "error_code": code, "base_offset": base, "log_start_offset": 0 if base >= 0 else -1}
    response = {"responses": [{"name": "t", "partition_responses": [answer]}]}
    return line("Produce", request, response, **fields)


def numbered(lines: list[Line]) -> list[Line]:
    """In the order of their arrival."""
    return [{"id": number, **each, "ts_us": each["ts_us"] + number * 1000} for number, each in enumerate(lines, 1)]


class Converted:
    """A journal that was made a scenario."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], lines: list[Line], *options: str) -> None:
        journal, output = folder / "journal", folder / "incident.json"
        journal.mkdir()
        text = "".join(f"{json.dumps(each)}\n" for each in numbered(lines))
        (journal / f"wire-{RUN}-000001.jsonl").write_text(text, encoding="utf-8")
        assert main(["scenario", "from-journal", str(journal), "-o", str(output), *options]) == 0
        self.report = capsys.readouterr().err
        self.steps = read(str(output)).steps

    def of(self, verb: str) -> list[Mapping[str, Any]]:
        """The arguments of the steps of one verb."""
        return [step["arguments"] for step in self.steps if step["verb"] == verb]

    @property
    def faults(self) -> list[dict[str, Any]]:
        """The faults, without what all of them have here."""
        common = {"client_id": "app", "group": "g", "topic": "t", "partition": 0}
        return [
            {name: value for name, value in each.items() if common.get(name, ...) != value}
            for each in self.of("faults add")
        ]


# --- the n-th request ------------------------------------------------------------------------------------------------


def test_a_fault_counts_what_reaches_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What an earlier fault refuses does not reach a later one; what a cut connection took does not reach either."""
    ok, code, other = heartbeat(), heartbeat("NOT_COORDINATOR"), heartbeat("COORDINATOR_NOT_AVAILABLE")
    lines = [
        ok,
        code,
        code,
        ok,
        cut("Heartbeat", {"group_id": "g"}),
        other,
        heartbeat("NOT_COORDINATOR", group="h"),
        code,
    ]
    assert Converted(tmp_path, capsys, lines).faults == [
        {"api": "Heartbeat", "skip": 4, "disconnect": "close"},
        {"api": "Heartbeat", "skip": 1, "times": 2, "error": "NOT_COORDINATOR"},
        {"api": "Heartbeat", "skip": 2, "error": "COORDINATOR_NOT_AVAILABLE"},
        {"api": "Heartbeat", "group": "h", "error": "NOT_COORDINATOR"},
        {"api": "Heartbeat", "skip": 2, "error": "NOT_COORDINATOR"},
    ]


def test_late_and_throttled_requests_reach_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Delays of about the same length are one fault; a request may be late and refused. Short ones are left out."""
    late = heartbeat("NOT_COORDINATOR", duration_us=4_000_000)
    throttled = line("Heartbeat", {"group_id": "g"}, {"error_code": "NONE", "throttle_time_ms": 250})
    lines = [
        heartbeat(duration_us=900_000),
        heartbeat(duration_us=5_000_000),
        heartbeat(duration_us=6_000_000),
        late,
        throttled,
    ]
    assert Converted(tmp_path, capsys, lines).faults == [
        {"api": "Heartbeat", "skip": 1, "times": 2, "delay_ms": 5000},
        {"api": "Heartbeat", "skip": 3, "delay_ms": 4000},
        {"api": "Heartbeat", "skip": 4, "throttle_ms": 250},
        {"api": "Heartbeat", "skip": 3, "error": "NOT_COORDINATOR"},
    ]


def test_who_hung_up_matters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A client that goes away is no fault; nor is the end of the recording, unless the client came back after it."""
    ended = "closed: the broker stopped"
    reasons = ["closed: the client hung up", ended, ended]
    gone, left, last = (cut("Heartbeat", {"group_id": "g"}, reason) for reason in reasons)
    lines = [gone, left, heartbeat(), last]
    assert Converted(tmp_path, capsys, lines).faults == [{"api": "Heartbeat", "disconnect": "close"}]


def test_what_waited_when_the_recording_ended_is_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A long poll, and a join, although heartbeats were answered after they had begun."""
    fetch_body = {"session_id": 0, "session_epoch": -1, "forgotten_topics_data": [], "max_wait_ms": 500,
                  "topics": [{"topic": "t", "partitions": [{"partition": 0, "fetch_offset": 3}]}]}  # fmt: skip
    ended, long = "closed: the broker stopped", {"duration_us": 400_000}
    fetch, join = cut("Fetch", fetch_body, ended), cut("JoinGroup", {"group_id": "g"}, ended)
    lines = [metadata(t=[1]), {**fetch, **long}, {**join, **long}, heartbeat(), heartbeat()]
    assert Converted(tmp_path, capsys, lines).faults == []


def test_members_who_are_played_back_rebalance_by_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error is a fault only where the other members of the group are not there."""
    joined = [
        line("JoinGroup", {"group_id": "g"}, {"error_code": "NONE", "member_id": each}, client_id=each)
        for each in ("app", "other")
    ]
    lines = [*joined, heartbeat("REBALANCE_IN_PROGRESS")]
    both = Converted(tmp_path, capsys, lines)
    assert both.faults == []
    assert "1 x REBALANCE_IN_PROGRESS of Heartbeat" in both.report
    (tmp_path / "one").mkdir()
    assert Converted(tmp_path / "one", capsys, lines, "--client-id", "app").faults == [
        {"api": "Heartbeat", "error": "REBALANCE_IN_PROGRESS"}
    ]


def test_a_request_for_all_topics_counts_for_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also those that came before the topic was named; a topic that never was there never is."""
    every = line("Metadata", {"topics": None}, {"brokers": [], "topics": []})
    unknown = {"name": "u", "error_code": "UNKNOWN_TOPIC_OR_PARTITION", "is_internal": False, "partitions": []}
    gone = line("Metadata", {"topics": [{"name": "u"}]}, {"brokers": [], "topics": [unknown]})
    assert Converted(tmp_path, capsys, [every, every, gone]).faults == [
        {"api": "Metadata", "topic": "u", "skip": 2, "times": None, "error": "UNKNOWN_TOPIC_OR_PARTITION"}
    ]


# --- offsets ---------------------------------------------------------------------------------------------------------


def test_a_log_begins_where_the_first_batch_went(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Batches that were refused before have that offset; a filler takes the place of the others."""
    lines = [metadata(t=[1]), produce(-1, "NOT_LEADER_OR_FOLLOWER"), produce(-1, "NOT_LEADER_OR_FOLLOWER"), produce(70)]
    converted = Converted(tmp_path, capsys, lines)
    assert converted.faults == [{"api": "Produce", "offset": 70, "times": 2, "error": "NOT_LEADER_OR_FOLLOWER"}]
    (written,) = converted.of("records write")
    assert [record["offset"] for record in written["records"]] == [69]
    assert "records" in converted.report


def test_what_was_written_all_the_same_is_written_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A timed-out batch was appended; of a cut one the next offset shows it, unless the producer is idempotent."""
    request = produce(0)["request"]
    lines = [metadata(t=[1]), produce(0), produce(-1, "REQUEST_TIMED_OUT", count=3), produce(4),
             cut("Produce", request), produce(6), cut("Produce", request), produce(7)]  # fmt: skip
    assert Converted(tmp_path, capsys, lines).faults == [
        {"api": "Produce", "offset": 1, "apply_then": {"error": "REQUEST_TIMED_OUT"}},
        {"api": "Produce", "offset": 5, "apply_then": {"disconnect": "close"}},
        {"api": "Produce", "offset": 7, "disconnect": "close"},
    ]


def test_one_record_meets_its_errors_in_their_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Refused, cut, refused again: a cut does not come first."""
    refused = produce(-1, "NOT_LEADER_OR_FOLLOWER")
    lines = [metadata(t=[1]), produce(0), refused, cut("Produce", produce(0)["request"]), refused, produce(1)]
    assert Converted(tmp_path, capsys, lines).faults == [
        {"api": "Produce", "offset": 1, "error": "NOT_LEADER_OR_FOLLOWER"},
        {"api": "Produce", "offset": 1, "disconnect": "close"},
        {"api": "Produce", "offset": 1, "error": "NOT_LEADER_OR_FOLLOWER"},
    ]


def test_batches_behind_a_refused_one_are_out_of_order_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A producer with several requests in flight brings that about itself; a broker that forgot it does not."""
    out_of_order = "OUT_OF_ORDER_SEQUENCE_NUMBER"
    refused = produce(-1, "NOT_ENOUGH_REPLICAS", sequence=1)
    lines = [metadata(t=[1]), produce(0, sequence=0), refused, produce(-1, out_of_order, sequence=2),
             produce(1, sequence=1), produce(-1, out_of_order, sequence=2), produce(2, sequence=2)]  # fmt: skip
    assert Converted(tmp_path, capsys, lines).faults == [
        {"api": "Produce", "offset": 1, "error": "NOT_ENOUGH_REPLICAS"},
        {"api": "Produce", "offset": 2, "error": out_of_order},
    ]


# --- the file --------------------------------------------------------------------------------------------------------


def test_only_the_last_part_is_played(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A reset begins another part; a window of time is another way to choose."""
    lines = [
        heartbeat("NOT_COORDINATOR"),
        heartbeat(era=1),
        heartbeat("NOT_COORDINATOR", era=1, ts_us=1_795_000_060_000_000),
    ]
    assert Converted(tmp_path, capsys, lines).faults == [{"api": "Heartbeat", "skip": 1, "error": "NOT_COORDINATOR"}]
    (tmp_path / "later").mkdir()
    later = Converted(tmp_path / "later", capsys, lines, "--since", "1795000060000")
    assert later.faults == [{"api": "Heartbeat", "error": "NOT_COORDINATOR"}]


def test_leaders_are_where_they_were(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With several brokers, which the server is started with; a leader that moves later stays."""
    converted = Converted(tmp_path, capsys, [metadata(t=[2, 5]), metadata(t=[5, 5])])
    assert [each["broker"] for each in converted.of("leader move")] == [2, 5]
    assert "understudy serve --brokers 2,5 --scenario" in converted.report
    assert "changes of leaders: t-0" in converted.report


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "has no file wire-*.jsonl"),
        ("nothing\n", "line 1: not JSON"),
        ('{"v": 2}\n', "not a line of format 1"),
        ('{"v": 1}\n', "not a line of format 1"),
        (json.dumps(numbered([line("Produce", {"topic_data": 5})])[0]) + "\n", "Produce request 1 of"),
        ("", "has no such requests"),
    ],
)
def test_what_is_no_journal_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, sentence: str
) -> None:
    """In one sentence, with exit code 2."""
    if content is not None:
        (tmp_path / f"wire-{RUN}-000001.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(SystemExit) as left:
        main(["scenario", "from-journal", str(tmp_path)])
    assert left.value.code == 2
    printed = capsys.readouterr()
    assert sentence in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
