"""The conformance report: two releases of a client, of which everything is known, and what differs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from pyspark.sql import SparkSession

from pipeline.audits import findings
from pipeline.audits.registry import NoSuchCheckError
from pipeline.conformance import render, run
from pipeline.conformance.pictures import pictures
from pipeline.conformance.render import Conformance
from pipeline.conformance.tables import questions
from pipeline.duck.engine import DuckEngine
from pipeline.duck.tables import register_conformance
from pipeline.spark_reader import SparkReader
from tests.pipeline.fault_files import Planting
from tests.pipeline.journal_lines import Wire, Wiring, assignment

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(600)]
CHECKS = ("i03-sequence", "i28-two-owners", "i32-no-metadata")
OTHER = "other"


def journal(folder: Path, scratch: Path) -> Path:
    """Two releases of `lib`, one after the other, as if two journals were one: an engine then looks but once."""
    wiring = Wiring(Planting(scratch))
    first_release(wiring)
    second_release(wiring)
    return wiring.write(folder)


def first_release(wiring: Wiring) -> None:
    """It asks who leads before it tries again."""
    lib, who = _begin(wiring, 1)
    lib.produce("orders", who=who, sequence=3, error="NOT_LEADER_OR_FOLLOWER")
    lib.call("Metadata", {"topics": []}, {})
    lib.produce("orders", who=who, sequence=3, offset=3)
    for turn in range(12):
        lib.produce("orders", who=who, sequence=6 + 3 * turn, offset=6 + 3 * turn, took_us=500)


def second_release(wiring: Wiring) -> None:
    """It tries again at once, skips sequences, is slower, and speaks a newer Produce."""
    lib, who = _begin(wiring, 2)
    lib.produce("orders", who=who, sequence=3, error="NOT_LEADER_OR_FOLLOWER", version=13)
    lib.produce("orders", who=who, sequence=3, offset=3, version=13)
    lib.produce("orders", who=who, sequence=60, offset=6, version=13)
    for turn in range(12):
        lib.produce("orders", who=who, sequence=63 + 3 * turn, offset=9 + 3 * turn, took_us=50_000, version=13)


def _begin(wiring: Wiring, release: int) -> tuple[Wire, tuple[int, int]]:
    """What both have: an identity, a lost EndTxn, a coordinator that moved, and another client."""
    who, mine, theirs = (10 * release, 0), (10 * release + 1, 0), (10 * release + 2, 0)
    lib = wiring.connect(f"app-{release}", software="lib", software_version=str(release))
    lib.init(None, who)
    lib.produce("orders", who=who, sequence=0)
    lib.end(f"tx-{release}", mine, outcome="never answered")
    again = wiring.connect(f"app-{release}", software="lib", software_version=str(release))
    again.heartbeat("another", "m", 1)
    again.call("FindCoordinator", {"coordinator_keys": ["tx"]}, {})
    again.end(f"tx-{release}", mine, error="NOT_COORDINATOR")
    lib.end(f"other-{release}", theirs)
    again.init(f"tx-{release}", (mine[0], 1), had=mine)
    other = wiring.connect(f"second-{release}", software=OTHER, software_version=str(release))
    group = f"group-{release}"
    other.sync(group, "a", 1, {"a": assignment("orders", 0), "b": assignment("orders", 0)})
    other.heartbeat(group, "a", 1, error="REBALANCE_IN_PROGRESS")
    return lib, who


def release_of(whole: run.Run, version: str) -> run.Run:
    """The run that a journal of one release alone would give."""
    parts: dict[str, run.Rows] = {
        name: [row for row in part_rows if row["software_version"] == version]
        for name, part_rows in whole.parts.items()
    }
    broken = [each for each in whole.broken if each.version == version]
    return replace(whole, journal=f"release-{version}", parts=parts, broken=broken)


def looked_at(path: str, spark: SparkSession | None) -> run.Run:
    """The conformance of both releases, decoded in this process or by Spark."""
    reader = None if spark is None else SparkReader(lambda: spark.sparkContext, small_bytes=-1, meantime=False)
    engine = DuckEngine()
    register_conformance(engine, path, reader)
    whole = run.look(engine, path, run.invariants(CHECKS), software=["lib", OTHER])
    with pytest.raises(FileNotFoundError, match="no request of rdkafka: was a client there"):
        run.look(engine, path, [], software=["rdkafka"])
    engine.close()
    if reader is not None:
        reader.close()
    return whole


@pytest.fixture(scope="module", params=["duckdb", "spark"])
def compared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Conformance:
    """The second release against the first."""
    folder = tmp_path_factory.mktemp("runs")
    path = str(journal(folder / "journal", folder / "scratch"))
    whole = looked_at(path, None)
    if request.param == "spark":
        assert looked_at(path, request.getfixturevalue("spark")) == whole
    return Conformance(release_of(whole, "2"), release_of(whole, "1"))


def rows(of: run.Run, part: str, software: str = "lib", **wanted: Any) -> list[dict[str, Any]]:
    """A client's rows of a part."""
    of_client = [row for row in of.parts[part] if row["software"] == software]
    return [row for row in of_client if all(row[name] == value for name, value in wanted.items())]


def test_clients_are_distinguished_by_the_software_that_they_name(compared: Conformance) -> None:
    """Software and version, with what they asked."""
    (lib,) = rows(compared.now, "clients")
    assert (lib["software_version"], lib["connections"], lib["client_ids"], lib["unanswered"]) == ("2", 2, 1, 1)
    assert (lib["errors"], lib["offered_apis"] > lib["apis"]) == (2, True)
    (produce,) = rows(compared.now, "versions", api="Produce")
    assert (produce["versions"], produce["offered_to"], produce["below_newest"]) == ([12, 13], 20, 7)
    (latency,) = rows(compared.now, "latencies", api="Produce")
    assert (latency["requests"], latency["p50_ms"], latency["most_ms"]) == (16, 50, 50)


def test_reactions_lead_to_what_decides(compared: Conformance) -> None:
    """Over look-ups; not over what concerns another transaction, nor over heartbeats; on a new connection or not."""
    assert compared.before is not None
    (waited,) = rows(compared.before, "errors", api="Produce")
    assert (waited["error"], waited["reaction"]) == ("NOT_LEADER_OR_FOLLOWER", "Metadata, Produce again")
    assert waited["after_ms"] == pytest.approx(199.6)
    (hasty,) = rows(compared.now, "errors", api="Produce")
    assert (hasty["reaction"], hasty["after_ms"]) == ("Produce again", pytest.approx(99.6))
    lost, moved = rows(compared.now, "errors", api="EndTxn")
    assert (moved["error"], moved["reaction"]) == ("never answered", "FindCoordinator, EndTxn (commit) again")
    assert moved["on_new_connection_share"] == 1
    assert (lost["error"], lost["reaction"]) == ("NOT_COORDINATOR", "InitProducerId (with its identity)")
    assert lost["on_new_connection_share"] == 0
    (silent,) = rows(compared.now, "errors", OTHER)
    assert silent["reaction"] == "nothing more"


def test_broken_invariants_have_their_client(compared: Conformance) -> None:
    """Also where a check has no column for the software."""
    counts = {(each.software, each.version, each.check.name): each.count for each in compared.now.broken}
    lib, other = ("lib", "2"), (OTHER, "2")
    assert counts == {(*lib, "i03-sequence"): 1, (*lib, "i32-no-metadata"): 1, (*other, "i28-two-owners"): 1}
    assert all(each.rows for each in compared.now.broken)


def test_each_client_has_evidence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first rows of each are kept: earlier ones of one client took the places of the other's."""
    for module in (findings, run):
        monkeypatch.setattr(module, "ROWS_KEPT", 1)
    broken = looked_at(str(journal(tmp_path / "journal", tmp_path / "scratch")), None).broken
    evidence = [(each.software, each.version, each.count, len(each.rows)) for each in broken if each.software == OTHER]
    assert evidence == [(OTHER, "1", 1, 1), (OTHER, "2", 1, 1)]
    assert all(each.rows and not any(name.startswith("spoken") for name in each.rows[0]) for each in broken)


def test_two_runs_differ_where_they_do(compared: Conformance) -> None:
    """New breaches are worse; versions, reactions and latencies are other; what both have is no difference."""
    mine = [each for each in compared.changes if each.software == "lib"]
    differences = {(each.part, each.subject): (each.kind, each.before, each.now) for each in mine}
    assert differences == {
        ("invariants", "i03-sequence"): ("worse", "kept", "once"),
        ("invariants", "i32-no-metadata"): ("worse", "kept", "once"),
        ("clients", ""): ("other", "1", "2"),
        ("versions", "Metadata"): ("other", "version 9", None),
        ("versions", "Produce"): ("other", "version 12", "versions 12, 13"),
        ("errors", "Produce NOT_LEADER_OR_FOLLOWER"): ("other", "Metadata, Produce again", "Produce again"),
        ("p50", "Produce"): ("other", "0.5 ms", "50.0 ms"),
        ("p99", "Produce"): ("other", "0.5 ms", "50.0 ms"),
    }
    back = Conformance(compared.before, compared.now) if compared.before else compared
    assert [each.kind for each in back.changes].count("better") == 2
    assert Conformance(compared.now, compared.now).changes == []


def test_only_new_breaches_fail_against_another_run(compared: Conformance) -> None:
    """Without another run, every breach of the severity fails."""
    assert [each.check.name for each in compared.failing("error")] == ["i03-sequence"]
    assert len(compared.failing("warning")) == 2
    assert len(Conformance(compared.now).failing("error")) == 2
    assert Conformance(compared.now, compared.now).failing("info") == []


def test_every_format_has_the_breaches(compared: Conformance) -> None:
    """Tables, JSON, JUnit, a page with pictures."""
    table, document = render.as_table(compared), json.loads(render.as_json(compared))
    drawn = pictures(compared.now)
    page = render.as_html(compared, [picture for _, picture in drawn])
    assert "ERROR i03-sequence" in table
    assert table.splitlines()[-1].endswith("9 differences, 2 for the worse")
    assert {each["invariant"] for each in document["broken"]} == set(CHECKS)
    assert len(document["changes"]) == 9
    for name, question in questions().items():
        assert f"{name}: {question.title}" in table
        assert document[name]
        assert f"id='{name}'" in page
    assert page.count("<svg") == len(drawn) == 2
    suite = ET.fromstring(render.as_junit(compared, fail_on="error"))  # noqa: S314 - our own
    failed = {(case.get("classname"), case.get("name")) for case in suite if case.find("failure") is not None}
    assert failed == {("lib 2", "i03-sequence")}
    assert len(suite) == len(compared.now.checks) * len(compared.now.parts["clients"])


def test_invariants_are_chosen_by_name() -> None:
    """A check of logs is none; conformance 3 I09 and I39 cannot be seen."""
    with pytest.raises(NoSuchCheckError, match="no invariant 'batch-crc'"):
        run.invariants(["batch-crc"])
    assert len(run.invariants()) == 38
