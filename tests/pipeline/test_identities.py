"""Exactly once by identity: what `--id` names, and inputs that are in the output twice, not at all, or out of order."""

from pathlib import Path

import pytest

from pipeline.audits.findings import ask_all
from pipeline.audits.identities import identified, parse
from pipeline.audits.registry import checks
from pipeline.duck.tables import DuckTables
from tests.pipeline import identity_faults
from tests.pipeline.conftest import Refused
from tests.pipeline.fault_files import Planting
from tests.pipeline.identity_faults import INPUT, OUTPUT, IdentityFinding
from understudy.cli import main

OF_IDENTITIES = [check for check in checks().values() if "id" in check.needs]


def found_in(root: Path, *groups: str) -> set[IdentityFinding]:
    """Findings of all checks of identities."""
    tables = DuckTables(str(root))
    tables.register(identity=parse("json:$.order.id", [INPUT], [OUTPUT], groups))
    findings = ask_all(tables.engine, OF_IDENTITIES)
    tables.forget()
    return {
        IdentityFinding(each.check.name, row["topic"], row["partition"], row["offset"])
        for each in findings
        for row in each.rows
    }


def test_every_fault_is_found_and_nothing_else(tmp_path: Path) -> None:
    """Each check has a fault; and a copy in order, with an aborted transaction that was repeated, has none."""
    wanted = identity_faults.planted(tmp_path / "faults")
    assert {each.check for each in wanted} == {check.name for check in OF_IDENTITIES}
    assert found_in(tmp_path / "faults") == wanted
    where = Planting(tmp_path / "clean")
    identity_faults.clean(where)
    where.close()
    assert found_in(tmp_path / "clean") == set()


@pytest.mark.parametrize("is_cleaned", [False, True])
@pytest.mark.parametrize(("topic", "hidden"), [("none", None), (OUTPUT, "identity-lost"), (INPUT, "identity-unknown")])
def test_what_was_removed_is_neither_lost_nor_unknown(
    tmp_path: Path, topic: str, hidden: str | None, is_cleaned: bool
) -> None:
    """A topic whose beginning retention has removed, or where the cleaner has been, may have had the record."""
    where = Planting(tmp_path)
    copier = identity_faults.clean(where)
    identity_faults.fed(where, 0, ["lost"])
    copier.copy(["unknown"], {0: 5})
    if is_cleaned:
        where.shelf(topic, cleanup_policy="compact").roll()
        where.cleaned(topic, 0, 1)
    else:
        where.shelf(topic).log_start = 1
    where.close()
    names = {each.check for each in found_in(tmp_path)}
    assert names == {"identity-lost", "identity-unknown"} - {hidden}


@pytest.mark.parametrize(("topic", "hidden"), [(OUTPUT, "identity-lost"), (INPUT, "identity-unknown")])
def test_a_topic_without_any_record_left_is_not_judged(tmp_path: Path, topic: str, hidden: str) -> None:
    """Retention has removed all of them: every input was reported as lost, or every output as unknown."""
    where = Planting(tmp_path)
    identity_faults.clean(where)
    for partition in (0, 1) if topic == INPUT else (0,):
        shelf = where.shelf(topic, partition)
        shelf.roll()
        shelf.log_start = shelf.next_offset
    where.close()
    for file in tmp_path.glob(f"{topic}-*/{'0' * 20}.*"):
        file.unlink()
    assert hidden not in {each.check for each in found_in(tmp_path, identity_faults.GROUP)}


def test_a_group_that_is_named_counts_instead_of_the_transactions(tmp_path: Path) -> None:
    """Its offset is behind: all outputs beyond it would be written again."""
    where = Planting(tmp_path)
    identity_faults.clean(where)
    where.close()
    early = {each for each in found_in(tmp_path, "another-group") if each.check == "identity-uncommitted"}
    assert len(early) == 5
    assert found_in(tmp_path, "another-group") == early


def test_an_identity_is_a_key_a_header_or_a_field(tmp_path: Path) -> None:
    """The identity is text; null where a record has none."""
    where = Planting(tmp_path)
    where.shelf("in").data(3, keys=[b"k", None, b"\xff"], values=[b'{"a": [{"b": 7}]}', b"[]", b"{"])
    where.shelf("out").data(1)
    where.close()

    def ids(spec: str) -> list[str | None]:
        rows = [row for batch in identified(str(tmp_path), parse(spec, ["in"], ["out"])) for row in batch.to_pylist()]
        return [row["id"] for row in rows if row["role"] == "input"]

    assert ids("key") == ["k", None, "ff"]
    assert ids("json:a.0.b") == ["7", None, None]
    assert ids("header:h") == [None, None, None]  # the last one of that name has no value
    assert ids("header:other") == [None, None, None]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--id", "value", "--input", "a", "--output", "b"], "--id value: give key, header:NAME or json:PATH"),
        (["--id", "header:", "--input", "a", "--output", "b"], "give key, header:NAME"),
        (["--id", "key", "--input", "a"], "--id needs --input TOPIC and --output TOPIC"),
        (["--id", "key", "--input", "a", "--output", "a"], "the topic a is an input and an output"),
        (["--input", "a"], "--input, --output and --group need --id"),
    ],
)
def test_a_wrong_identity_is_refused_in_a_sentence(
    tmp_path: Path, arguments: list[str], message: str, refused: Refused
) -> None:
    """With exit code 2, before anything is read."""
    assert message in refused("audit", str(tmp_path), *arguments)


def test_the_command_finds_what_was_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`understudy audit DIR --id json:order.id --input in --output out`."""
    identity_faults.planted(tmp_path / "data")
    arguments = ["--id", "json:order.id", "--input", INPUT, "--output", OUTPUT, "--only", "identity-lost", "--quiet"]
    assert main(["audit", str(tmp_path / "data"), *arguments]) == 1
    assert "ERROR identity-lost: an input without an output (1)" in capsys.readouterr().out
