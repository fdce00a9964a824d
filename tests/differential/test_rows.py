"""The ledger of rows is what a real Kafka and ours answer today; each mistake that mocks make is noticed by it."""

from pathlib import Path

import pytest

from tests.clients.targets import oracle_release
from tests.differential import mistakes, rows
from tests.mutants.transactions import TRANSACTIONS
from tests.storage.kafka_tools import need_kafka


def test_rows_are_read_from_the_names_of_tests() -> None:
    """One by one, from one to another, or several kinds; of the part that its folder belongs to."""
    assert rows.ids(rows.TRANSACTIONS, "test_E2_01_to_03_an_epoch") == [f"transactions E2-0{n}" for n in (1, 2, 3)]
    assert rows.ids(rows.GROUPS, "test_CLS_14_CLS_15_who") == ["groups CLS-14", "groups CLS-15"]
    assert rows.ids(None, "test_OFF_01_anybody") == ["transactions OFF-01", "groups OFF-01"]
    assert rows.ids(None, "test_nothing_of_1_kind") == []


def test_what_is_written_is_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests with and without variants, and reasons."""
    before = rows.RECORD.read_text(encoding="utf-8")
    record = rows.recorded()
    monkeypatch.setattr(rows, "RECORD", tmp_path / "rows.json")
    rows.save(record)
    assert rows.RECORD.read_text(encoding="utf-8") == before
    assert rows.recorded() == record


def test_every_row_has_its_line_and_no_difference_is_without_a_reason() -> None:
    """508 rows; what waits is not tested, and what is tested does not wait."""
    ledger = list(rows.rows(rows.recorded()))
    assert len(ledger) == 508
    unexplained = [f"{each.part} {each.id}" for each in ledger if each.status in {rows.DIFFERS, rows.MISSING}]
    assert [name for name in unexplained if name not in rows.REASONS] == []


def test_without_a_mistake_no_saved_history_is_answered_otherwise(tmp_path: Path) -> None:
    """Histories that another release answers otherwise are not asked; each of the others is."""
    histories = mistakes.saved()
    assert {"tied-votes-4.3", "tied-votes-4.4"} & {each.name for each in histories} == {
        f"tied-votes-{oracle_release()}"
    }
    with mistakes.mistaken(None, tmp_path) as address:
        assert mistakes.noticed(address, histories) is None


@pytest.mark.nightly
@pytest.mark.timeout(5400)
@pytest.mark.parametrize("target", rows.RELEASES)
def test_what_passed_on_a_real_kafka_still_does(target: str) -> None:
    """All scenarios, again; a test that is new may pass as well."""
    need_kafka()
    before, now = rows.recorded()[target], rows.outcomes_of_run(target)
    passed = [test for test, (outcome, _) in before.items() if outcome == "passed"]
    assert [test for test in passed if now.get(test, ["failed"])[0] == "failed"] == []


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_every_mistake_is_noticed_by_what_kafka_answers(tmp_path: Path) -> None:
    """By a row that both are asked, by a history, or by steering alone, with the reason."""
    need_kafka()
    evidence = mistakes.caught(mistakes.questions(tmp_path / "kafka"), tmp_path)
    assert len(evidence) == len(TRANSACTIONS)
    unnoticed = {mistake for mistake, by in evidence.items() if not by["rows"] and not by["history"]}
    assert unnoticed - set(mistakes.NEEDS_STEERING) == set()
