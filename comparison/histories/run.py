"""Runs many histories: one with a difference is played again, and shrunk if the difference occurs again."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from comparison.difference import Difference
from comparison.exchange import Pair
from comparison.histories.drawing.overlap import overlapping
from comparison.histories.generate import KINDS
from comparison.histories.multi_broker import assign_internal_topics, spread
from comparison.histories.outcomes import OutcomePlayer
from comparison.histories.play import Played, Player
from comparison.histories.quiescence import common_versions, wait_ready
from comparison.histories.shrink import shrunk
from comparison.histories.step_request import Step

LENGTH = 40  # ours: long enough for states to meet, short enough to be shrunk
MOST_PLAYS = 150
"""Limit of plays while a history is shrunk: ours, some minutes."""
SHOWN, CHARACTERS = 8, 400
"""Differences of a play that are shown, and characters of each: ours, the first ones lead to the others."""
OVERLAPPING = "overlapping_"
"""Prefix of a kind whose requests overlap; their outcomes are compared, not their responses one by one."""


@dataclass(frozen=True, slots=True)
class DifferingPlay:
    """History with a difference that occurs every time, or only once if ``steady`` is false."""

    seed: object
    steps: Sequence[Step]
    differences: Sequence[Difference]
    steady: bool

    def __str__(self) -> str:
        kind = "a difference" if self.steady else "a difference that did not come again"
        lines = [f"seed {self.seed} shows {kind}:", *(f"  {line(step)}" for step in self.steps)]
        return "\n".join([*lines, *(f"  ! {difference}"[:CHARACTERS] for difference in self.differences[:SHOWN])])


@dataclass
class Report:
    """Result of a run of histories."""

    pair: Pair
    histories: int = 0
    steps: int = 0
    skipped: int = 0
    differing: list[DifferingPlay] = field(default_factory=list)

    @property
    def steady(self) -> list[DifferingPlay]:
        """Histories whose difference occurs every time."""
        return [play for play in self.differing if play.steady]

    def lines(self) -> list[str]:
        """Return a summary: number of steps, coverage, differences."""
        seen_once = len(self.differing) - len(self.steady)
        played = f"{self.histories} histories, {self.steps} steps asked of both"
        skipped = f"{self.skipped} left out since their connection waited"
        lines = [f"{played}, {skipped}; {len(self.steady)} differences, {seen_once} seen once"]
        lines += [f"known: {name} {times} times" for name, times in self.pair.met.most_common()]
        return lines + self.pair.coverage.rows() + [str(play) for play in self.differing]


def line(step: Step) -> str:
    """Encode a step as one line of JSON."""
    return json.dumps(dict(step), ensure_ascii=False)


def load_history(file: Path) -> dict[str, Any]:
    """Load a history's file: `why`, `steps`, and the responses of `kafka`.

    It has the `release` if only one has these responses, and the `settings` that a broker needs besides the usual ones.
    """
    history: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return history


def save(
    file: Path,
    why: str,
    steps: Sequence[Step],
    answers: Mapping[str, Any],
    release: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> None:
    """Save a history and Kafka's responses, with one line per step and per response.

    ``release`` is Kafka's, if other releases respond differently; ``settings`` are those besides the usual ones.
    """
    of_release = "" if release is None else f' "release": "{release}",\n'
    of_release += f' "settings": {json.dumps(settings)},\n' if settings else ""
    lines = [
        f'{{"why": {json.dumps(why, ensure_ascii=False)},\n{of_release} "steps": [',
        ",\n".join(f"  {line(step)}" for step in steps),
        ' ],\n "kafka": {',
        ",\n".join(f"  {json.dumps(what)}: {json.dumps(answer)}" for what, answer in answers.items()),
        " }}",
    ]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


class Histories:
    """Plays histories on a pair of clusters."""

    def __init__(self, pair: Pair, run: str = "h") -> None:
        for target in pair.targets:
            wait_ready(target)
            if target.others:
                assign_internal_topics(target)
        self.pair, self.player = pair, Player(pair, run)
        self.outcomes = OutcomePlayer(pair, run)
        self.versions = common_versions(*pair.targets)

    def run(
        self,
        seeds: Iterable[object],
        length: int = LENGTH,
        *,
        most_found: int = 5,  # ours: more are not read
        restarts: int = 0,
        kind: str = "records",
    ) -> Report:
        """Play a history of a kind for each seed; stop after `most_found` steady differences."""
        report = Report(self.pair)
        generator = KINDS[kind.removeprefix(OVERLAPPING)]
        player = self.outcomes if kind.startswith(OVERLAPPING) else self.player
        for seed in seeds:
            steps: Sequence[Step] = generator(self.versions, seed).history(length, restarts=restarts)
            if brokers := len(self.pair.targets[0].others):
                steps = spread(steps, seed, 1 + brokers)
            if player is self.outcomes:
                steps = overlapping(steps, seed)
            played = player.play(steps)
            report.histories += 1
            report.steps += played.steps
            report.skipped += played.skipped
            if played.differences:
                report.differing.append(self.reproduce(seed, steps, played, player))
                if len(report.steady) >= most_found:
                    break
        return report

    def reproduce(
        self, seed: object, steps: Sequence[Step], played: Played, player: Player | OutcomePlayer
    ) -> DifferingPlay:
        """Play a history with a difference again, and shrink it."""
        wanted, plays = _signature(played), 0
        steps = list(steps[: played.step + 1])

        def shows(shorter: Sequence[Step]) -> bool:
            nonlocal plays
            plays += 1
            return plays <= MOST_PLAYS and _signature(player.play(shorter)) == wanted

        if not shows(steps):
            return DifferingPlay(seed, steps, played.differences, steady=False)
        short = shrunk(steps, shows)
        again = player.play(short)
        return DifferingPlay(seed, short, again.differences or played.differences, steady=True)


def _signature(played: Played) -> tuple[str, str] | None:
    if not played.differences:
        return None
    first = played.differences[0]
    return first.api, first.field
