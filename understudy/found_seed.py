"""What is reported about a seed with findings: played again, with the fewest faults, its story, and the command."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import zip_longest
from typing import Any

from understudy.fault_kinds import FAULTS
from understudy.seeds import ChildFailed, can_fork, outcomes
from understudy.simulation import Main, Outcome, play

_SHRINKING_S = 45  # arbitrary: below a minute, which a test that fails may take
_AFTER_MS = 5_000
"""Virtual time after the first finding within which a run with fewer faults has to have one."""
_STORY = 40  # lines: a screen
_BLOCKS = 2_000  # arbitrary: half a megabyte, enough to move what follows


@dataclass(frozen=True, slots=True)
class Player:
    """Plays seeds of one function with the same options."""

    main: Main
    options: Any

    def play(self, seed: int) -> Outcome:
        """Play a seed in this process."""
        return play(self.main, seed, self.options)[0]

    def play_apart(self, seed: int) -> Outcome:
        """Play a seed in this process, which may end with it."""
        return play(self.main, seed, self.options, apart=can_fork())[0]

    def again(self, seed: int) -> Outcome:
        """Play a seed apart from this process, with other addresses in memory; keep all that it exchanged."""

        def perturbed(number: int) -> Outcome:
            # Sizes that small objects have, so that later ones get other addresses.
            kept = [bytearray(16 + at % 512) for at in range(_BLOCKS)]
            outcome = play(self.main, number, self.options, detailed=True, apart=can_fork())[0]
            del kept
            return outcome

        (outcome,) = outcomes(perturbed, [seed], 1)
        return outcome

    def broken_ms(self, seed: int, only: frozenset[int], until_ms: float) -> int | None:
        """Play a seed with these faults until its first finding or a time; return when that was, in virtual ms."""
        chosen = replace(self.options, only=only, data_dir=None)
        (outcome,) = outcomes(lambda number: play(self.main, number, chosen, until_ms, apart=can_fork())[0], [seed], 1)
        return outcome.broken_ms if outcome.findings else None


def report(
    player: Player,
    outcome: Outcome,
    command: Callable[[str], str],
    write: Callable[[str], None],
    story: int = _STORY,
    *,
    shrink: bool = True,
) -> list[str]:
    """Return the lines about a seed with findings.

    It is played again first. If the run is the same and ``shrink`` is true, faults are left out that the finding does
    not need, for at most 45 seconds; ``command`` returns the command that repeats the seed with some faults. ``write``
    gets the progress.
    """
    faults = _faults(player.options.faults)
    head = f"seed {outcome.seed}: FOUND after {outcome.broken_ms / 1000:.1f} virtual s, hash {outcome.digest}"
    try:
        write(f"seed {outcome.seed}: found something, and is played again")
        again = player.again(outcome.seed)
        if again.digest != outcome.digest:
            return [*_described(head, outcome, story), *difference(outcome, again), f"  again: {command(faults)}"]
        shown, only = outcome, player.options.only
        if shrink and outcome.faults and player.options.only is None and can_fork():
            shown, only = shrunk(player, outcome, write)
    except ChildFailed as error:
        return [*_described(head, outcome, story), f"  {error}", f"  again: {command(faults)}"]
    lines = _described(head, shown, story)
    if only is not None and shown is not outcome:
        lines.append(f"  {len(shown.faults)} of {len(outcome.faults)} faults are enough:")
        faults = f"{faults},{','.join(map(str, sorted(only)))}" if only else "none"
    lines += [f"  fault {number} at {at_ms / 1000:.1f} s: {text}" for number, at_ms, text in shown.faults]
    return [*lines, "  played twice, with the same hash", f"  again: {command(faults)}"]


def shrunk(player: Player, outcome: Outcome, write: Callable[[str], None]) -> tuple[Outcome, frozenset[int] | None]:
    """Leave out faults that the finding does not need; return the run without them, and the numbers of the others."""
    plan, shrinking = import_module("simulator.plan"), import_module("simulator.shrink").Shrinking
    options, seed, began_s = player.options, outcome.seed, time.perf_counter()
    faults = plan.plan_of_program(seed, options.minutes, options.brokers, options.faults)
    ends_ms = options.minutes * 60_000

    def breaks(only: frozenset[int], broken_ms: int) -> int | None:
        return player.broken_ms(seed, only, broken_ms + _AFTER_MS if broken_ms < ends_ms else math.inf)

    left = shrinking(
        faults, outcome.broken_ms, breaks, limit_s=_SHRINKING_S, run_s=2, clock_s=time.perf_counter,
        write=lambda line: write(f"seed {seed}: {line}"),
    ).shrink()  # fmt: skip
    only = frozenset(each.number for each in left)
    write(f"seed {seed}: {len(left)} of {len(faults)} faults after {time.perf_counter() - began_s:.0f} s")
    again = Player(player.main, replace(options, only=only)).again(seed)
    return (again, only) if again.findings else (outcome, None)


def difference(first: Outcome, again: Outcome) -> list[str]:
    """Describe where two plays of a seed begin to differ, and what the likely cause is."""
    lines = ["  NOT REPEATED: the same seed, played again, was another run. Its story cannot be trusted."]
    for one, other in zip(first.exchanges, again.exchanges, strict=False):
        if one != other:
            lines += [f"    first play:  {_piece(one)}", f"    second play: {_piece(other)}"]
            return [*lines, f"    likely cause: {_cause(one, other)}"]
    pairs = zip_longest(first.story, again.story, fillvalue="")
    line, other_line = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
    return [
        *lines,
        "    both plays sent and received the same bytes, but the program's log lines or faults differ",
        f"    first play:  {line.strip()}",
        f"    second play: {other_line.strip()}",
        "    likely cause: log lines with an id or a time that is not the run's",
    ]


def _piece(piece: tuple[int, str, str, int, int]) -> str:
    at_us, who, what, size, checksum = piece
    return f"at {at_us / 1e6:.6f} s, {who} {what}: {size} bytes, checksum {checksum:08x}"


def _cause(one: tuple[int, str, str, int, int], other: tuple[int, str, str, int, int]) -> str:
    if one[:3] == other[:3]:  # the same time, sender and kind of message
        return (
            "an id, a time or a random number in these bytes does not come from the run: from compiled code, from a "
            "generator that was seeded before the run, or from state that a module keeps between runs"
        )
    return (
        "another order of events: a set of objects, which is ordered by their addresses in memory; state that a module "
        "keeps between runs; or the machine's clock, read by compiled code"
    )


def _described(head: str, outcome: Outcome, story: int) -> list[str]:
    findings = ["  finding: " + each.replace("\n", "\n    ") for each in outcome.findings]
    return [head, *(outcome.diagram or outcome.story[-story:]), *findings]


def _faults(kinds: Sequence[str]) -> str:
    return "all" if tuple(kinds) == FAULTS else ",".join(kinds) or "none"
