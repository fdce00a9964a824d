"""Planted mistakes: the simulator finds them, by the seeds that docs/simulator.md lists."""

from pathlib import Path

import pytest

from simulator.faults import HOLD, LAG
from simulator.run import KINDS, run
from simulator.workload import CONSUMER, RULES, SHARE
from tests.mutants.mutant import Mutant
from tests.mutants.test_transactions import MUTANTS
from tests.simulator.planted import PLANTED, SEEDS
from tests.simulator.planted_groups import PLANTED_GROUPS, SEEDS_OF_KINDS
from tests.simulator.planted_rules import SEEDS_OF_ALL, SEEDS_OF_RULES

MINUTES = 0.5
THREE_KINDS = (CONSUMER, SHARE, LAG)
RULES_AND_HOLDS = (RULES, HOLD)
TABLES = {"none": SEEDS, "consumer,share,lag": SEEDS_OF_KINDS, "rules,hold": SEEDS_OF_RULES, "all": SEEDS_OF_ALL}
"""Kinds as docs/simulator.md names them -> the mistakes that are found with them."""
FURTHER = 40
"""Seeds that are tried where the listed one does not find it any more: a change of the simulator moves them."""
MISTAKES = {each.mistake: each for each in (*PLANTED, *PLANTED_GROUPS, *MUTANTS)}
PAGE = Path(__file__).parents[2] / "docs" / "simulator.md"


def test_the_page_lists_each_mistake_that_was_found() -> None:
    """With its seed."""
    rows = PAGE.read_text(encoding="utf-8").splitlines()
    missing = [
        name
        for kinds, seeds in TABLES.items()
        for name, seed in seeds.items()
        if f"| {name} | {seed} | {kinds} |" not in rows
    ]
    assert missing == []
    found = [name for seeds in TABLES.values() for name in seeds]
    assert set(found) <= MISTAKES.keys()
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("mistake", sorted(MISTAKES))
def test_a_mistake_is_still_one_of_the_code(mistake: str) -> None:
    """Its text occurs once in a function of the product, which can be compiled with the change."""
    function = MISTAKES[mistake].changed()
    before = function.__code__
    with MISTAKES[mistake].alive():
        assert function.__code__ is not before
    assert function.__code__ is before


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mistake", sorted(SEEDS))
def test_a_planted_mistake_is_found(mistake: str) -> None:
    """By its seed, or by one of some others."""
    mutant: Mutant = MISTAKES[mistake]
    with mutant.alive():
        assert any(run(seed, MINUTES, kinds=()).violations for seed in (SEEDS[mistake], *range(FURTHER)))


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mistake", sorted(SEEDS_OF_KINDS))
def test_a_planted_mistake_is_found_with_later_kinds(mistake: str) -> None:
    """By its seed, or by one of some others, with members of modern groups and followers that fall behind."""
    mutant: Mutant = MISTAKES[mistake]
    with mutant.alive():
        assert any(
            run(seed, MINUTES, kinds=THREE_KINDS).violations for seed in (SEEDS_OF_KINDS[mistake], *range(FURTHER))
        )


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mistake", sorted(SEEDS_OF_RULES))
def test_a_planted_mistake_is_found_by_clients_that_break_rules(mistake: str) -> None:
    """By its seed, or by one of some others, with further broken rules and transactions that are held."""
    mutant: Mutant = MISTAKES[mistake]
    with mutant.alive():
        seeds = (SEEDS_OF_RULES[mistake], *range(FURTHER))
        assert any(run(seed, MINUTES, kinds=RULES_AND_HOLDS).violations for seed in seeds)


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mistake", sorted(SEEDS_OF_ALL))
def test_a_planted_mistake_is_found_with_all_kinds(mistake: str) -> None:
    """By its seed, or by one of some others."""
    mutant: Mutant = MISTAKES[mistake]
    with mutant.alive():
        assert any(run(seed, MINUTES, kinds=KINDS).violations for seed in (SEEDS_OF_ALL[mistake], *range(FURTHER)))
