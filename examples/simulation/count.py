"""Counts the seeds that find each mistake: python count.py 1-40 [MISTAKE ...], on all cores."""

import os
import sys
from functools import partial

from mistakes import MISTAKES
from understudy import server_path, simulation
from understudy.seeds import outcomes
from simulated import check
from copier import Copier

TOPICS = {"in": 2, "out": 2}


def main(seeds="1-40", *names):
    first, _, last = seeds.partition("-")
    played = range(int(first), int(last or first) + 1)
    with server_path.entered():
        options = simulation.options(topics=TOPICS)
        for name in names or ["Copier", *MISTAKES]:
            program = MISTAKES.get(name, Copier)
            failing, virtual_s = [], 0.0
            for each in outcomes(partial(play, program, options), played, os.cpu_count() or 1):
                failing += [each.seed] if each.findings else []
                virtual_s += each.virtual_s
            first = f", the first is {min(failing)}" if failing else ""
            print(
                f"{name}: found in {len(failing)} of {len(played)} seeds{first}; {virtual_s:.0f} virtual s",
                flush=True,
            )


def play(program, options, seed):
    outcome, _ = simulation.play(lambda sim: check(sim, program), seed, options, apart=True)
    return outcome


if __name__ == "__main__":
    main(*sys.argv[1:])
