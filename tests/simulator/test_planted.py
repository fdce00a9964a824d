"""Planted mistakes: the simulator finds them, by the seeds of the registry, and the page has the sums."""

from pathlib import Path

import pytest

from simulator.run import run
from tests.mutants.mutant import Mutant
from tests.mutants.registry import REGISTRY

MINUTES = 0.5
FURTHER = 40
"""Seeds that are tried where the listed one does not find it any more: a change of the simulator moves them."""
SIMULATED = [each for each in REGISTRY.values() if each.simulated]
PAGE = Path(__file__).parents[2] / "docs" / "inside" / "simulator-notebook.md"


def test_each_mistake_has_a_seed_or_a_proof() -> None:
    """A seed, or a line of the page that shows why no promise is broken; the page has both numbers."""
    page = PAGE.read_text(encoding="utf-8")
    assert f" {len(SIMULATED)} of {len(REGISTRY)} are found" in page
    unbroken = [mistake for mistake, mutant in REGISTRY.items() if not mutant.simulated]
    assert [mistake for mistake in unbroken if f"\n| {mistake} | " not in page] == []


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mutant", SIMULATED, ids=lambda mutant: mutant.mistake)
def test_a_planted_mistake_is_found(mutant: Mutant) -> None:
    """By its seed, or by one of some others, with its kinds."""
    assert mutant.simulated is not None
    kinds, seed = mutant.simulated
    with mutant.alive():
        seeds = (seed, *range(FURTHER))
        chosen = () if kinds == "none" else kinds.split(",")
        assert any(run(each, MINUTES, kinds=chosen).violations for each in seeds)
