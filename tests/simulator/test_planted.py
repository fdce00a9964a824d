"""Planted mistakes: the simulator finds them, by the seeds of its tables, and the page has the sums."""

from pathlib import Path

import pytest

from simulator.plan import COORDINATORS, RELEASE, WORLD
from simulator.run import run
from simulator.workload import STREAMS
from tests.mutants.mutant import Mutant
from tests.mutants.test_transactions import MUTANTS
from tests.simulator.planted import PLANTED, SEEDS
from tests.simulator.planted_groups import PLANTED_GROUPS, SEEDS_OF_KINDS
from tests.simulator.planted_rules import (
    EQUIVALENT,
    SEEDS_OF_ALL,
    SEEDS_OF_COORDINATORS,
    SEEDS_OF_LAGGING_COORDINATORS,
    SEEDS_OF_RULES,
    SEEDS_OF_SHARE_COORDINATORS,
)
from tests.simulator.planted_states import PLANTED_STATES, SEEDS_OF_RELEASE, SEEDS_OF_STREAMS, SEEDS_OF_WORLD

MINUTES = 0.5
TABLES = {
    "none": SEEDS,
    "consumer,share,lag": SEEDS_OF_KINDS,
    "rules,hold": SEEDS_OF_RULES,
    "consumer,share,lag,change,rules,hold": SEEDS_OF_ALL,
    STREAMS: SEEDS_OF_STREAMS,
    WORLD: SEEDS_OF_WORLD,
    RELEASE: SEEDS_OF_RELEASE,
    COORDINATORS: SEEDS_OF_COORDINATORS,
    "coordinators,lag": SEEDS_OF_LAGGING_COORDINATORS,
    "coordinators,share": SEEDS_OF_SHARE_COORDINATORS,
}
"""Kinds, as `--kinds` takes them -> the mistakes that are found with them."""
KINDS_OF = {each: () if each == "none" else each.split(",") for each in TABLES}
FURTHER = 40
"""Seeds that are tried where the listed one does not find it any more: a change of the simulator moves them."""
MISTAKES = {each.mistake: each for each in (*PLANTED, *PLANTED_GROUPS, *PLANTED_STATES, *MUTANTS)}
PAGE = Path(__file__).parents[2] / "docs" / "inside" / "simulator-notebook.md"


def test_each_mistake_has_a_seed_or_a_proof() -> None:
    """A seed of one table, or a line of the page that shows why no promise is broken; the page has both numbers."""
    values = [name for seeds in TABLES.values() for name in seeds]
    assert len({*values, *EQUIVALENT}) == len(values) + len(EQUIVALENT)
    assert {*values, *EQUIVALENT} == MISTAKES.keys()
    page = PAGE.read_text(encoding="utf-8")
    assert f" {len(values)} of {len(MISTAKES)} are found" in page
    assert [name for name in EQUIVALENT if f"\n| {name} | " not in page] == []


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
@pytest.mark.parametrize(("kinds", "mistake"), [(kinds, name) for kinds in TABLES for name in sorted(TABLES[kinds])])
def test_a_planted_mistake_is_found(kinds: str, mistake: str) -> None:
    """By its seed, or by one of some others, with the kinds of its table."""
    mutant: Mutant = MISTAKES[mistake]
    with mutant.alive():
        seeds = (TABLES[kinds][mistake], *range(FURTHER))
        assert any(run(seed, MINUTES, kinds=KINDS_OF[kinds]).violations for seed in seeds)
