"""Scenario files: what steered a cluster is recorded, and done again from a file, at each of the ways in."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

import understudy
from broker.control.recorder import Done, Recorder
from control_api.scenario_file import parse
from tests.control.conftest import QUICK, ControlPlaneOf
from tests.control.harness import ControlPlane
from tests.serving import start
from understudy import StartError
from understudy.cli import main

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "scenarios" / "lost-commit.json"
STEERED: list[tuple[str, str, dict[str, Any] | None]] = [
    ("POST", "/v1/topics", {"name": "made", "partitions": 2, "configs": {"cleanup.policy": "compact"}}),
    ("POST", "/v1/topics/made/records", {"records": [{"key": "k", "value": "v", "partition": 1}]}),
    ("POST", "/v1/topics/made/partitions/1/leader", {"broker": 2}),
    ("POST", "/v1/faults", {"match": {"api": "EndTxn"}, "do": {"delay_ms": 5}, "times": None}),
    ("POST", "/v1/faults", {"match": {"api": "Fetch", "versions": [4, 9]}, "do": {"error": "NOT_LEADER_OR_FOLLOWER"}}),
    ("POST", "/v1/faults", {"match": {"api": "Produce"}, "do": {"apply_then": {"disconnect": "reset"}}, "skip": 1}),
    ("DELETE", "/v1/faults/LAST", None),
    ("POST", "/v1/clock/freeze", None),
    ("POST", "/v1/clock/advance", {"ms": 1500}),
    ("PUT", "/v1/versions", {"as_version": "3.9"}),
    ("PUT", "/v1/versions", {"InitProducerId": {"min": 0, "max": 3}}),
    ("POST", "/v1/brokers/2/kill", None),
    ("DELETE", "/v1/topics/u", None),
]


def steered(plane: ControlPlane) -> list[dict[str, Any]]:
    """A cluster that all of these have steered; what was recorded of them."""
    last = ""
    for method, path, body in STEERED:
        answer = plane.http(method, path.replace("LAST", last), body)
        last = answer["id"] if path == "/v1/faults" else last
    return recorded(plane)


def recorded(plane: ControlPlane) -> list[dict[str, Any]]:
    """The steps since the start or the last reset."""
    return list(plane.http("GET", "/v1/scenario")["steps"])


def core(steps: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Verbs and arguments, without the ids of faults."""
    return [(step["verb"], {**step["arguments"], "fault": ""}) for step in steps]


@pytest.fixture
def plane(plane_of: ControlPlaneOf) -> ControlPlane:
    """Three brokers."""
    return plane_of(brokers=3, topics=["t:2", "u:1"])


def test_a_recording_can_be_done_again(plane: ControlPlane, tmp_path: Path) -> None:
    """From the file, after a reset: the same steps, though faults have other ids; a reset clears the recording."""
    first = steered(plane)
    assert [step["calls"][0].split()[0] for step in first] == [method for method, _, _ in STEERED]
    file = tmp_path / "scenario.json"
    plane.ctl_text("scenario", "record", "--output", str(file))
    plane.kafka.reset()
    assert recorded(plane) == []
    assert plane.ctl("scenario", "run", str(file)) == {"steps": len(STEERED)}
    again = recorded(plane)
    assert core(again) == core(first)
    assert again[6]["arguments"]["fault"] != first[6]["arguments"]["fault"]
    assert [fault.match["api"] for fault in plane.kafka.faults.list()] == ["EndTxn", "Fetch"]
    assert plane.kafka.clock.show().frozen
    plane.kafka.reset()
    assert plane.kafka.scenario.run(file) == len(STEERED)
    plane.kafka.reset()
    plane.http("POST", "/v1/scenario", json.loads(file.read_text(encoding="utf-8")))
    assert core(recorded(plane)) == core(first)


def test_each_recorded_step_is_the_same_in_python_and_in_a_shell(
    plane: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    """The calls that a recording has are those that it has recorded."""
    for step in steered(plane):
        if step["verb"] in {"faults remove", "records write", "leader move"}:
            continue  # about what an earlier step made
        recordings = []
        for line in step["calls"][1:]:
            plane.kafka.reset()
            if line.startswith("kafka."):
                eval(line, {"kafka": plane.kafka})  # our own answer  # noqa: S307
            else:
                assert main([*shlex.split(line)[1:], "--control", plane.url]) == 0, capsys.readouterr().err
            recordings.append(core(recorded(plane)))
        assert recordings == [core([step])] * 2, step


def test_only_faults_have_an_id_for_later_steps(plane: ControlPlane) -> None:
    """What another step has there is not looked at."""
    step = {"verb": "clock advance", "arguments": {"ms": 1}, "made": "1"}
    assert plane.http("POST", "/v1/scenario", {"steps": [step]}) == {"steps": 1}


def test_reading_and_secrets_are_not_recorded(plane: ControlPlane) -> None:
    """Nor is what failed; a reset that keeps something is a step of its own."""
    plane.http("GET", "/v1/topics")
    plane.http("POST", "/v1/users/alice", {"password": "alice-secret"})
    plane.refused("POST", "/v1/faults", {"do": {"error": "NO_SUCH"}})
    assert recorded(plane) == []
    plane.http("POST", "/v1/clock/advance", {"ms": 1})
    plane.http("POST", "/v1/reset", {"keep": ["clock"]})
    assert [step["verb"] for step in recorded(plane)] == ["clock advance", "reset"]


BAD = {
    '{"scenario": 1,\n "steps": [\n  {"verb": "clock advance"]}': "line 3, column 27: not JSON",
    '{"scenario": 2, "steps": []}': 'needs "scenario": 1, not 2',
    "7": 'needs an object with "steps"',
    '{"scenario": 1, "steps": {}}': "needs a list of steps",
    '{"scenario": 1, "steps": [%s]}' % ("9" * 5000): "a number of thousands of digits",
    '{"scenario": 1, "steps": [\n{"verb": "clock thaw"},\n\n{"verb": 7}]}': 'line 4, step 2: needs a "verb"',
    '{"scenario": 1, "steps": [\n{"verb": "clock advanse", "arguments": {"ms": 1}}]}': (
        "line 2, step 1 (clock advanse): there is no verb 'clock advanse'; did you mean clock advance?; no step"
    ),
    '{"about": "\\"steps\\": [", "scenario": 1, "steps": [{"verb": "clock thaw"},\n'
    '{"verb": "faults add", "arguments":\n{"api": "EndTxn", "eror": "NOT_COORDINATOR"}}]}': (
        "line 2, step 2 (faults add): faults add has no argument 'eror'"
    ),
    '{"scenario": 1, "steps": [\n{"verb": "topics create", "arguments": {}}]}': "needs the argument 'name'",
    '{"scenario": 1, "steps": [{"verb": "clock freeze"},\n{"verb": "clock advance", "arguments": {"ms": -1}}]}': (
        "line 2, step 2 (clock advance): "
    ),
}


@pytest.mark.parametrize("text", BAD, ids=lambda text: BAD[text][:40])
def test_a_mistake_in_a_file_is_reported_with_its_line_before_any_step(
    plane: ControlPlane, tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistake in a script is reported with its line before any step is taken."""
    file = tmp_path / "bad.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["ctl", "scenario", "run", str(file), "--control", plane.url])
    assert BAD[text] in capsys.readouterr().err
    assert recorded(plane) == []


def test_a_step_that_the_cluster_refuses_ends_the_run(plane: ControlPlane, tmp_path: Path) -> None:
    """With the number of those that were done, which remain done."""
    file = tmp_path / "twice.json"
    create = {"verb": "topics create", "arguments": {"name": "twice"}}
    file.write_text(json.dumps({"scenario": 1, "steps": [create, create, create]}, indent=1), encoding="utf-8")
    status, problem = plane.refused("POST", "/v1/scenario", json.loads(file.read_text(encoding="utf-8")))
    assert (status, problem["field"]) == (409, "steps.1")
    assert problem["detail"] == (
        "step 2 (topics create): TOPIC_ALREADY_EXISTS, Topic 'twice' already exists; steps 1 to 1 were done"
    )
    assert [step["verb"] for step in recorded(plane)] == ["topics create"]


@pytest.mark.verb("scenario record", "scenario run")
def test_a_client_lives_through_a_scenario(plane: ControlPlane) -> None:
    """Given as a list, and recorded as it was given."""
    fault = {"verb": "faults add", "arguments": {"api": "EndTxn", "apply_then": {"disconnect": "reset"}}, "made": "1"}
    steps = [{"verb": "topics create", "arguments": {"name": "payments"}}, fault]
    assert plane.kafka.scenario.run(steps) == 2
    assert core(plane.kafka.scenario.record()["steps"]) == core(steps)
    producer = Producer({"bootstrap.servers": plane.bootstrap, "transactional.id": "payments-1"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("payments", b"paid", partition=0)
    producer.commit_transaction(60)
    assert [each.remaining for each in plane.kafka.faults.list()] == [0]


def test_a_server_begins_with_a_scenario(tmp_path: Path) -> None:
    """The example: the answer to the first commit is lost, and the producer commits once all the same."""
    process = start(scenario=EXAMPLE, settings=QUICK)
    kafka = understudy.connect(str(process.ready.control_url))
    assert [fault.match["transactional_id"] for fault in kafka.faults.list()] == ["payments-1"]
    assert len(kafka.scenario.record()["steps"]) == 3
    conf = {"bootstrap.servers": ",".join(process.ready.bootstrap_servers), "transactional.id": "payments-1"}
    producer = Producer(conf)
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("payments", b"paid", partition=0)
    producer.commit_transaction(60)
    assert [fault.hits for fault in kafka.faults.list()] == [1]
    assert [record.control for record in kafka.topics["payments"].partitions[0].records()] == [None, "commit"]
    process.stop()
    bad = tmp_path / "bad.json"
    bad.write_text(
        '{"scenario": 1, "steps": [\n{"verb": "faults add", "arguments": {"error": "NO"}}]}', encoding="utf-8"
    )
    with pytest.raises(StartError, match=r"bad.json, line 2, step 1 \(faults add\): there is no error 'NO'"):
        start(scenario=bad)
    with pytest.raises(StartError, match=r"--scenario .*missing\.json: No such file"):
        start(scenario=tmp_path / "missing.json")


def test_a_recording_has_bounds() -> None:
    """Of steps and of bytes: the oldest are dropped, and counted."""
    recorder = Recorder()
    for number in range(1005):
        recorder.add(Done("clock advance", {"ms": number}, 0, "", 10))
    assert (len(recorder.steps), recorder.dropped, recorder.steps[0].arguments["ms"]) == (1000, 5, 5)
    recorder.add(Done("records write", {}, 0, "", 4 * 1024 * 1024))
    assert ([step.verb for step in recorder.steps], recorder.dropped) == (["records write"], 1005)
    recorder.clear()
    assert (len(recorder.steps), recorder.dropped) == (0, 0)


def test_a_file_of_very_many_steps_is_passed_over_once() -> None:
    """Each line was counted from the start of the file: a minute for as many steps as these."""
    step = {"verb": "clock advance", "arguments": {"ms": 1}}
    script = parse("file", json.dumps({"scenario": 1, "steps": [step] * 60_000}, indent=0))
    assert (len(script.steps), script.lines[:2], script.lines[-1]) == (60_000, [4, 10], 359_998)
