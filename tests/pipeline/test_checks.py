"""The checks as data, and that each of them has a fault planted for it. No Spark."""

import base64
import json
import re
from fnmatch import fnmatch
from pathlib import Path

import pyarrow as pa
import pytest

from broker.settings import BrokerSettings, client_metrics, groups
from broker.settings.tables import CLIENT_METRICS, GROUP, TOPIC
from broker.settings.values import parse as parse_setting
from pipeline.audits.broker_files import BrokerFiles
from pipeline.audits.findings import Finding
from pipeline.audits.journal import owned_partitions
from pipeline.audits.registry import NEEDS, SEVERITIES, NoSuchCheckError, checks, chosen, parse, view
from pipeline.audits.sidecar_files import Tree, index_entries
from pipeline.duck.engine import DuckEngine
from protocol.errors import KafkaError
from protocol.log_records.metadata import LATEST_METADATA_VERSION
from tests.pipeline import broker_faults, identity_faults, journal_faults, live_faults, log_faults
from tests.pipeline.conftest import Refused
from tests.pipeline.fault_files import Planting, one_batch
from tests.pipeline.journal_lines import assignment
from tests.pipeline.single_fault_cases import FAULTS
from tests.pipeline.test_client_history import NAMES
from understudy.cli import main


def test_every_check_has_a_fault_planted_for_it(tmp_path: Path) -> None:
    """A check that was never seen to find something may find nothing, ever."""
    of_identities = {name for name, check in checks().items() if "id" in check.needs}
    assert of_identities == {finding.check for finding in identity_faults.planted(tmp_path / "identities")}
    of_histories = {name for name, check in checks().items() if "history" in check.needs}
    assert of_histories == NAMES | {"history-absent"}
    of_clusters = {name for name, check in checks().items() if {"live", "counts"} & check.needs}
    assert of_clusters == {name for name, _ in live_faults.FINDINGS}
    of_logs = {name for name, check in checks().items() if not check.needs - {"records"}}
    between_brokers = {name for name, _ in broker_faults.planted(tmp_path / "brokers")}
    between_brokers |= {name for name, _ in broker_faults.planted_disks(tmp_path / "disks")}
    of_files = {check for check, _ in FAULTS.values()}
    planted = {finding.check for finding in log_faults.planted(tmp_path / "data")}
    assert of_logs == planted | between_brokers | of_files
    assert set(checks()) - of_logs - of_identities - of_clusters - of_histories == {
        finding.check for finding in journal_faults.planted(*_folders(tmp_path))
    }


def _folders(root: Path) -> tuple[Path, Path]:
    return root / "wired", root / "journal"


def test_every_check_explains_itself() -> None:
    """Severity, needs and explanation are there, and the explanation is long enough to be one."""
    for check in checks().values():
        assert check.severity in SEVERITIES
        assert check.needs <= set(NEEDS)
        assert len(check.explanation) > 60, check.name
        assert re.match(r"(?i)(select|with)\b", check.sql), check.name


def test_the_passive_invariants_are_there() -> None:
    """All of chapter 3, but for what a journal does not show (conformance 3 I09 and I39)."""
    numbers = {int(match[1]) for name in checks() if (match := re.match(r"i(\d\d)-", name))}
    assert numbers == set(range(1, 41)) - {9, 39}


def test_checks_are_chosen_by_name_and_by_what_is_there() -> None:
    """Without a journal no check of it runs; an unknown name is an error that helps."""
    assert not [check for check in chosen() if check.needs]
    assert [check.name for check in chosen(["sequence-gap", "i03-sequence"], has=["journal"])] == [
        "sequence-gap",
        "i03-sequence",
    ]
    assert "sequence-gap" not in [check.name for check in chosen(without=["sequence-gap"])]
    with pytest.raises(NoSuchCheckError, match="--list"):
        chosen(["nonsense"])


def test_a_finding_shows_columns_with_values_only() -> None:
    """No column without a value, and the data directory only where there are several."""
    check = next(iter(checks().values()))
    rows = [{"directory": "/logs", "topic": "t", "offset": None}, {"directory": "/logs", "topic": None, "offset": None}]
    assert Finding(check, 2, rows).columns == ["topic"]
    assert Finding(check, 1, [{"directory": "/logs/broker-2", "topic": "t"}]).columns == ["directory", "topic"]


def test_a_check_without_a_title_is_refused() -> None:
    """A check's file without a title is refused, and the error names what is missing."""
    with pytest.raises(ValueError, match="has no title"):
        parse("x", "-- severity: error\n-- Something.\nSELECT 1")


TEXTS = (
    "", "true", "False", "yes", "0", "-1", "-2", "-3", "1", " 7 ", "13", "17", "18", "23", "99", "100", "999",
    "1048576", "2147483647", "2147483648", "9223372036854775808", "0.5", "1.5", ".5f", "compact", "compact, delete",
    "compact,,delete", "lz4", "none", "CreateTime", "createtime", "read_committed", "3600001", "x",
    "latest", "earliest", "Latest", "by_duration:x", "by_duration:", "by_duration", "by_duration: PT1H",
    "BY_DURATION:PT1H", "a,b", "a , b", "A,a", "a,a", "a, a", "a,b ,b", "a,b,a", "a, ,b", ",a",
    *(f"by_duration:{each}" for each in (
        *("PT1H", "P1D", "p1dt1h1m1s", "+P+1D", "-P-1D", "-PT-1S", "PT1H-30M", "P1DT-24H", "PT-0S", "-PT0S", "PT0.0S"),
        *("PT1.S", "PT1,5S", "-PT-0.5S", "PT9223372036854775807S", "P106751991167300D", "PT0000000000000000000000001S"),
        *(" PT1H", "PT1H ", "P", "PT", "P1DT", "-P1D", "P-1D", "PT-1H", "PT1H-90M", "P1DT-25H", "PT-0.5S", "P1Y"),
        *("P1W", "P1H", "PT1D", "P1D1H", "1H", "T1H", "PT.5S", "PT1.1234567891S", "P1.5D", "PT1S2M", "PT2S-1S"),
        *("PT99999999999999999999S", "PT9223372036854775808S", "P106751991167301D", "PT3000000000000000H"),
        *("-PT9223372036854775807S",),
    )),
)  # fmt: skip
OF_OLDER_BROKERS = {("segment.bytes", text) for text in ("17", "18", "23", "99", "100", "999")}
"""Kafka before 4.0 took segments of 14 bytes."""
OF_ANOTHER_FORM = {
    "follower.replication.throttled.replicas", "leader.replication.throttled.replicas", "message.format.version",
    "internal.segment.bytes", "match", "metrics",
}  # fmt: skip
"""The check has no rule for these, or none but that of a number."""


def test_a_setting_is_invalid_where_the_broker_refuses_it() -> None:
    """Every setting of topics, groups and client metrics subscriptions, each with many values."""
    settings = [
        (int(kind), name, text)
        for kind, table in ((2, TOPIC), (16, CLIENT_METRICS), (32, GROUP))
        for name in sorted(set(table) - OF_ANOTHER_FORM)
        for text in TEXTS
    ]
    refused = {(kind, name, text) for kind, name, text in settings if _refused(kind, name, text)}
    shape = ("resource_type", "resource_name", "name", "value")
    records = [json.dumps(dict(zip(shape, (kind, "r", *each), strict=True))) for kind, *each in settings]
    offsets = pa.array(range(len(settings)), pa.int64())
    engine = DuckEngine()
    engine.table(
        "state_metadata", pa.table({"offset": offsets, "type": ["ConfigRecord"] * len(settings), "record": records})
    )
    engine.view("setting_rules", view("setting_rules"))
    reported = {
        settings[offset] for offset in engine.rows(checks()["setting-invalid"].sql).column("offset").to_pylist()
    }
    engine.close()
    assert {each for each in refused - reported if each[1:] not in OF_OLDER_BROKERS} == set()
    assert reported - refused == set()
    assert len(refused) > 500


def test_a_setting_is_unknown_up_to_the_newest_metadata_version() -> None:
    """Beyond it, a later release may have the name."""
    assert f"'metadata.version') <= {LATEST_METADATA_VERSION}\n" in f"{checks()['setting-unknown'].sql.rstrip()}\n"


def _refused(kind: int, name: str, text: str) -> bool:
    """Whether a broker of today refuses the value."""
    try:
        if kind == 16:
            client_metrics.validate({name: text})
        else:
            parse_setting((TOPIC if kind == 2 else GROUP)[name], text)
            if name == "streams.rack.aware.assignment.tags":
                groups.validate({name: text}, BrokerSettings(1))
    except KafkaError:
        return True
    return False


def test_the_files_beside_the_log_are_read(tmp_path: Path) -> None:
    """Checkpoints, topic ids and leader epochs of each partition."""
    where = Planting(tmp_path / "data")
    log_faults.clean(where)
    where.close()
    partitions = {(each.topic, each.partition): each for each in Tree(str(tmp_path / "data")).partitions()}
    assert partitions["wrapped", 0].log_start == 1
    assert partitions["compacted", 0].cleaned_to == 23
    assert partitions["orders", 0].last_segment_base > partitions["orders", 0].first_segment_base == 0
    beside = BrokerFiles()
    beside.look(Tree(str(tmp_path / "data")))
    answer = [(each["epoch"], each["start_offset"]) for each in beside.epochs if each["topic"] == "epochs"]
    assert (answer, beside.unreadable) == ([(0, 0), (3, 2)], [])
    assert partitions["started", 0].high_watermark == 104


def test_index_entries_are_those_that_were_written(tmp_path: Path) -> None:
    """All three kinds; the zeros of a preallocated index are no entries."""
    where = Planting(tmp_path / "data")
    log = where.shelf("t", start=100)
    for _ in range(5):
        log.data(3, producer=1, transactional=True)
    log.marker(1, 0, committed=False)
    expected = [(log.segment.index.lookup(offset), offset) for offset in (108, 114)]
    log.segment.index.preallocate()
    where.close()
    path = tmp_path / "data" / "t-0" / "00000000000000000100.index"
    path.write_bytes(path.read_bytes() + bytes(80))
    directory = str(tmp_path / "data")
    entries = index_entries(directory, "t-0/00000000000000000100.index").to_pylist()
    assert [(row["position"], row["offset"]) for row in entries] == expected
    aborted = index_entries(directory, "t-0/00000000000000000100.txnindex").to_pylist()
    assert [(row["producer_id"], row["first_offset"], row["last_offset"]) for row in aborted] == [(1, 100, 115)]


def test_assignments_are_read_as_the_journal_shows_them() -> None:
    """They are text or base64; garbage has no partitions."""
    raw = assignment("orders", 0, 300)
    assert owned_partitions(raw[:-4].decode()) == []
    assert owned_partitions(assignment("orders", 0, 5).decode()) == [("orders", 0), ("orders", 5)]
    shown = '{"base64": "' + base64.b64encode(raw).decode() + '"}'
    assert owned_partitions(shown) == [("orders", 0), ("orders", 300)]
    assert owned_partitions('{"base64": "!"}') == owned_partitions(None) == []


def test_the_documentation_has_a_place_for_every_check() -> None:
    """By a pattern in its table of names; those of brokers' responses are summed up. The number is right, too."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")
    table = page.partition("## The checks")[2].partition("\n## ")[0]
    patterns = [
        each.replace("...", "*")
        for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        for each in re.findall(r"`([\w.*-]+)`", row)
    ]
    assert len(patterns) > 40
    missing = [
        check.name
        for check in checks().values()
        if "journal" not in check.needs and not any(fnmatch(check.name, each) for each in patterns)
    ]
    assert missing == []
    assert [each for each in patterns if not any(fnmatch(name, each) for name in checks())] == []
    assert f"prints all {len(checks())}, " in table


OWN = """-- title: large
-- severity: info
-- needs: {needs}
-- Why.
SELECT topic, count(*) AS number FROM batches GROUP BY topic
"""


def test_own_checks_run_beside_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their findings are in the report, under the names of their files."""
    one_batch(tmp_path / "data")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "large.sql").write_text(OWN.format(needs=""))
    (tmp_path / "own" / "notes.txt").write_text("nothing")
    assert main(
        ["audit", str(tmp_path / "data"), "--checks", str(tmp_path / "own"), "--only", "large", "--fail-on", "info"]
    )
    assert "large" in capsys.readouterr().out
    assert main(["audit", str(tmp_path / "data"), "--only", "offset-hole", "--fail-on", "info"]) == 0


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("offset-hole.sql", OWN.format(needs=""), "there is a check offset-hole already"),
        ("own.sql", "SELECT 1", "no title"),
        ("own.sql", OWN.format(needs="nothing"), "needs nothing; there are records, journal"),
        ("own.txt", "", "there is no file *.sql"),
        ("own.sql", OWN.format(needs="").replace("batches", "nowhere"), "check own: "),
    ],
)
def test_a_folder_of_checks_that_cannot_be_used_is_refused(
    tmp_path: Path, refused: Refused, name: str, text: str, message: str
) -> None:
    """With exit code 2, and the file's name."""
    one_batch(tmp_path / "data")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / name).write_text(text)
    assert message in refused("audit", str(tmp_path / "data"), "--checks", str(tmp_path / "own"))
