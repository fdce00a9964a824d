"""The audit's SQL agrees with the checker about the files that a run of three brokers leaves."""

from collections.abc import Collection
from pathlib import Path

import pytest

from pipeline.audits.findings import ask_all
from pipeline.audits.registry import chosen
from pipeline.duck.tables import DuckTables
from pipeline.reading import read_segments
from simulator.history import Place
from simulator.result import Result
from simulator.run import BROKERS, kinds_of, run
from simulator.workload import RULES
from understudy.simulate import main

EXCUSED = {
    "partition-missing",  # disks in memory have no files of a partition that never had a record
    "checkpoint-partition",  # as above: the checkpoints name it
    "file-unreadable",  # a power cut tears snapshots of producers, of which the older ones are not read again
    "timestamp-future",  # the clock of the brokers is pushed
}
FORGED = {"marker-without-data", "leader-epoch-unknown"}
"""The clients that break rules write markers of their own, with any epoch of a coordinator."""
LEFT_OUT = {"transaction-marker-missing"}
"""What it is when a partition had no leader for a marker (KAFKA-20734)."""
SET_BACK = {"timestamp-backwards", "transaction-record"}
"""Brokers that start again have a clock that was not pushed: a transaction may have begun after its last change."""
COLUMNS = ("topic", "partition", "offset", "value")


def findings(result: Result, folder: Path, kinds: Collection[str]) -> dict[str, int]:
    """Checks with the number of their findings, those left out that such a run has anyway."""
    tables = DuckTables(str(folder))
    tables.register(records=True)
    checks = [check for check in chosen(has=["records"]) if check.severity != "info"]
    counts = {each.check.name: each.count for each in ask_all(tables.engine, checks)}
    tables.forget()
    excused = EXCUSED | (FORGED if RULES in kinds else set()) | (LEFT_OUT if result.left_out_markers else set())
    if any(fault.kind == "clock" for fault in result.faults):
        excused |= SET_BACK
    return {name: count for name, count in counts.items() if count and name not in excused}


def committed(directory: Path, topics: Collection[str]) -> dict[Place, list[tuple[int, bytes]]]:
    """What the pipeline reads of a broker's files: committed records with their offsets."""
    records: dict[Place, list[tuple[int, bytes]]] = {}
    for rows in read_segments(str(directory), columns=COLUMNS, topics=sorted(topics), isolation="read_committed"):
        for row in rows.to_pylist():
            records.setdefault((row["topic"], row["partition"]), []).append((row["offset"], row["value"]))
    return records


def differences(result: Result, folder: Path, kinds: Collection[str]) -> list[object]:
    """Broken promises, findings in the directories, and those without the records that the last reader found."""
    expected = {place: [tuple(each) for each in log] for place, log in result.committed.items() if log}
    assert sum(map(len, expected.values())) > 100
    directories = [folder / f"broker-{broker}" for broker in range(1, BROKERS + 1)]
    topics = {topic for topic, _ in expected}
    return [
        *result.violations,
        *findings(result, folder, kinds).items(),
        *(directory for directory in directories if committed(directory, topics) != expected),
    ]


@pytest.mark.slow
def test_a_run_leaves_directories_without_a_finding(tmp_path: Path) -> None:
    """And a batch that is changed in one of them is found."""
    folder, kinds = tmp_path / "run", ["lag", "rules"]
    result = run(18, 0.2, kinds=kinds, data_dir=folder)
    assert differences(result, folder, kinds) == []
    (log, *_) = sorted((folder / "broker-2").glob("copies-*/*.log"), key=lambda path: path.stat().st_size)[-1:]
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    assert findings(result, folder, kinds)["batch-crc"] == 1


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_runs_of_all_kinds_leave_directories_without_a_finding(tmp_path: Path) -> None:
    """Kinds as the seeds give them; runs aside that the checker excuses."""
    for seed in range(3_000, 3_040):
        folder = tmp_path / str(seed)
        result = run(seed, data_dir=folder)
        if not result.excused:
            assert differences(result, folder, kinds_of(seed)) == []


@pytest.mark.slow
def test_an_existing_folder_is_left_as_it_is(tmp_path: Path) -> None:
    """`--data-dir` refuses an existing folder, even an empty one, and leaves it as it is."""
    with pytest.raises(FileExistsError):
        run(17, 0.05, kinds=[], data_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "sentence"), [("there", "needs a new folder"), ("file/below", "cannot be created")])
def test_the_command_begins_with_a_new_folder_only(
    name: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Refused in one sentence, before a run."""
    (tmp_path / "there").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as ended:
        main(["--seed", "17", "--data-dir", str(tmp_path / name)])
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "there"]


@pytest.mark.slow
def test_the_command_writes_a_folder_for_each_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each seed gets a folder, with the command that audits it."""
    folder = tmp_path / "new" / "runs"
    assert main(["--seed", "17", "--minutes", "0.05", "--kinds", "none", "--data-dir", str(folder)]) == 0
    assert f"understudy audit {folder / 'seed-17'}" in capsys.readouterr().out
    assert sorted(each.name for each in (folder / "seed-17").iterdir()) == ["broker-1", "broker-2", "broker-3"]
