"""`understudy compare`, with two of our clusters: its output, and the files that it writes."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from comparison.command import as_junit, table
from comparison.difference import Difference
from comparison.exchange import Pair
from comparison.histories.run import DifferingPlay, Report
from comparison.target import Target
from tests.conftest import BrokerWith
from understudy import compare

SETTINGS = {"transaction.state.log.num.partitions": 2, "offsets.topic.num.partitions": 2, "num.partitions": 3}


def test_a_cluster_is_like_itself(broker_with: BrokerWith, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The other one is started with its settings: a topic that Metadata makes has as many partitions there."""
    there = broker_with(settings={**SETTINGS, "offsets.topic.replication.factor": 1}).addresses[0]
    files = [f"--json={tmp_path / 'j'}", f"--junit={tmp_path / 'x'}"]
    code = compare.main(["--kafka", there, "--histories", "3", "--seed", "5", *files])
    answer = capsys.readouterr().out
    assert code == 0, answer
    assert re.search(r"^3 histories, 1\d\d steps asked of both, .*; 0 differences, 0 seen once$", answer, re.MULTILINE)
    document = json.loads((tmp_path / "j").read_text())
    assert document["histories"] == 3
    assert document["found"] == []
    assert {"api": "CreateTopics", "version": 7, "error": "NONE"}.items() <= {
        (key, value) for each in document["answers"] if each["api"] == "CreateTopics" for key, value in each.items()
    }
    suite = ET.parse(tmp_path / "x").getroot()  # noqa: S314 - written by the line above
    assert suite.get("failures") == "0"
    assert "Produce" in [case.get("name") for case in suite]


def test_a_difference_is_reported_with_the_requests_that_show_it() -> None:
    """In the table and to CI servers; one that did not come again is reported, and fails nothing."""
    pair = Pair(Target("a:1"), Target("b:2"))
    pair.coverage.note("Produce", 9, {"responses": [{"error_code": "NONE"}]})
    differs = [Difference("Produce", "responses[0].error_code", "NONE", "NOT_LEADER_OR_FOLLOWER")]
    steady, once = (DifferingPlay(seed, [{"do": "produce", "v": 9}], differs, steady=seed == 7) for seed in (7, 8))
    report = Report(pair, histories=2, steps=80, differing=[steady, once])
    answer = table(report)
    assert answer[1].split() == ["Produce", "1", "1", "NONE"]
    assert answer[3] == (
        'seed 7 shows a difference:\n  {"do": "produce", "v": 9}\n'
        "  ! Produce responses[0].error_code: Kafka 'NONE', Understudy 'NOT_LEADER_OR_FOLLOWER'"
    )
    assert "did not come again" in answer[4]
    (case,) = as_junit(report)
    assert case[0].get("message") == "1 histories differ"


def test_several_brokers_are_refused(broker_with: BrokerWith, capsys: pytest.CaptureFixture[str]) -> None:
    """A history talks to one, which has to lead everything."""
    there = broker_with(brokers=3).addresses[0]
    assert compare.main(["--kafka", there]) == 2
    assert "3 brokers; start one of a single broker" in capsys.readouterr().err
    alone = broker_with().addresses[0]
    assert compare.main(["--kafka", alone, "--understudy", there, "--histories", "1"]) == 2
    assert f"{there} is a cluster of 3 brokers" in capsys.readouterr().err
    assert compare.main(["--kafka", "127.0.0.1:1"]) == 2
    assert "refused" in capsys.readouterr().err


def test_a_release_is_that_of_the_cluster_which_is_started(
    broker_with: BrokerWith, capsys: pytest.CaptureFixture[str]
) -> None:
    """For a Kafka of another release than the newest; one that runs already has its own."""
    there = broker_with(as_version="4.3", settings=SETTINGS | {"offsets.topic.replication.factor": 1}).addresses[0]
    assert compare.main(["--kafka", there, "--histories", "3", "--seed", "5", "--as-version", "4.3"]) == 0
    capsys.readouterr()
    with pytest.raises(SystemExit):
        compare.main(["--kafka", there, "--understudy", there, "--as-version", "4.3"])
    assert "--as-version is of the Understudy that is started" in capsys.readouterr().err
