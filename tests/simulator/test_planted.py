"""Planted mistakes: the simulator finds them, by the seeds that docs/simulator.md lists."""

from pathlib import Path

import pytest

from simulator.faults import CHANGE
from simulator.run import KINDS, run
from tests.mutants.mutant import Mutant
from tests.mutants.test_transactions import MUTANTS
from tests.simulator.planted import PLANTED, SEEDS
from tests.simulator.planted_groups import PLANTED_GROUPS, SEEDS_OF_KINDS

MINUTES = 0.5
THREE_KINDS = [each for each in KINDS if each != CHANGE]
FURTHER = 40
"""Seeds that are tried where the listed one does not find it any more: a change of the simulator moves them."""
MISTAKES = {each.mistake: each for each in (*PLANTED, *PLANTED_GROUPS, *MUTANTS)}
PAGE = Path(__file__).parents[2] / "docs" / "simulator.md"


def test_the_page_lists_each_mistake_that_was_found() -> None:
    """With its seed."""
    rows = PAGE.read_text(encoding="utf-8").splitlines()
    missing = [name for name, seed in SEEDS.items() if f"| {name} | {seed} | none |" not in rows]
    missing += [name for name, seed in SEEDS_OF_KINDS.items() if f"| {name} | {seed} | all |" not in rows]
    assert missing == []
    assert SEEDS.keys() | SEEDS_OF_KINDS.keys() <= MISTAKES.keys()
    assert not SEEDS.keys() & SEEDS_OF_KINDS.keys()


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
