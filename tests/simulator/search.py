"""Search for a seed that finds a planted mistake.

    python -m tests.simulator.search "the next producer id is not logged" rules,hold 95000 105000

Prints the first seed whose run breaks a promise with the mistake in place, and how many kept all of them. A seed that
breaks a promise without the mistake as well is passed over: it has found something else.
"""

import sys
from collections.abc import Collection

from simulator.run import run
from tests.mutants.mutant import Mutant
from tests.mutants.registry import REGISTRY
from tests.simulator.test_planted import MINUTES


def finds(mutant: Mutant, seed: int, kinds: Collection[str]) -> bool:
    """Whether the run of this seed breaks a promise with the mistake, and none without it."""
    with mutant.alive():
        broken = bool(run(seed, MINUTES, kinds=kinds).violations)
    return broken and not run(seed, MINUTES, kinds=kinds).violations


def main(mistake: str, kinds: str, first: int, end: int) -> int:
    """The exit code: 0 where a seed was found."""
    wanted = () if kinds == "none" else tuple(kinds.split(","))
    for tried, seed in enumerate(range(first, end)):
        if finds(REGISTRY[mistake], seed, wanted):
            print(f"{mistake}: seed {seed} with {kinds}, after {tried} others", flush=True)  # noqa: T201
            return 0
    print(f"{mistake}: not found by the seeds {first} to {end - 1} with {kinds}", flush=True)  # noqa: T201
    return 1


if __name__ == "__main__":
    mistake_name, of_kinds, first_seed, end_seed = sys.argv[1:]
    sys.exit(main(mistake_name, of_kinds, int(first_seed), int(end_seed)))
