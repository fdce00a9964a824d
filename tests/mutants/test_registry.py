"""The mistakes of the registry: each is one of the code, and the row that speaks of it notices it."""

import pytest

from tests.mutants.mutant import Mutant, passes
from tests.mutants.registry import REGISTRY
from tests.mutants.transactions import TRANSACTIONS


@pytest.mark.parametrize("mistake", sorted(REGISTRY))
def test_a_mistake_is_still_one_of_the_code(mistake: str) -> None:
    """Its text occurs once in a function of the product, which can be compiled with the change."""
    function = REGISTRY[mistake].changed()
    before = function.__code__
    with REGISTRY[mistake].alive():
        assert function.__code__ is not before
    assert function.__code__ is before


@pytest.mark.parametrize("mutant", TRANSACTIONS, ids=lambda mutant: mutant.mistake)
async def test_a_mistake_is_noticed(mutant: Mutant) -> None:
    """The row passes, and with the mistake it does not."""
    assert mutant.noticed_by is not None
    assert await passes(mutant.noticed_by), "the row does not even pass without the mistake"
    with mutant.alive():
        assert not await passes(mutant.noticed_by)
