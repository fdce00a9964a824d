"""Many histories in a row: each that shows a difference is played again, and shortened if it shows it again."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from comparison.difference import Difference
from comparison.exchange import Pair
from comparison.histories.asked import Step
from comparison.histories.generate import Generator
from comparison.histories.play import Played, Player
from comparison.histories.settle import common_versions, warmed_up
from comparison.histories.shrink import shrunk
from comparison.histories.spread import placed, spread

LENGTH = 40
MOST_PLAYS = 150
"""Shortening stops there and shows what it has."""


@dataclass(frozen=True, slots=True)
class Found:
    """A history that shows a difference each time; or, with ``steady`` false, one that showed it once."""

    seed: object
    steps: Sequence[Step]
    differences: Sequence[Difference]
    steady: bool

    def __str__(self) -> str:
        kind = "a difference" if self.steady else "a difference that did not come again"
        lines = [f"seed {self.seed} shows {kind}:", *(f"  {line(step)}" for step in self.steps)]
        return "\n".join([*lines, *(f"  ! {difference}"[:400] for difference in self.differences[:8])])


@dataclass
class Report:
    """What a run of histories came to."""

    pair: Pair
    histories: int = 0
    steps: int = 0
    skipped: int = 0
    found: list[Found] = field(default_factory=list)

    @property
    def steady(self) -> list[Found]:
        """What differs each time."""
        return [found for found in self.found if found.steady]

    def lines(self) -> list[str]:
        """For people: how much was asked, what was covered, what was found."""
        seen_once = len(self.found) - len(self.steady)
        asked = f"{self.histories} histories, {self.steps} steps asked of both"
        skipped = f"{self.skipped} left out since their connection waited"
        told = [f"{asked}, {skipped}; {len(self.steady)} differences, {seen_once} seen once"]
        told += [f"known: {name} {times} times" for name, times in self.pair.met.most_common()]
        return told + self.pair.coverage.rows() + [str(found) for found in self.found]


def line(step: Step) -> str:
    """A step as one line of JSON."""
    return json.dumps(dict(step), ensure_ascii=False)


def saved(file: Path) -> dict[str, Any]:
    """A history from its file: `why`, `steps`, and what `kafka` answered."""
    read: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return read


def save(file: Path, why: str, steps: Sequence[Step], answers: Mapping[str, Any]) -> None:
    """Keep a history and what Kafka answers: one line for each step, and for each answer."""
    lines = [
        f'{{"why": {json.dumps(why, ensure_ascii=False)},\n "steps": [',
        ",\n".join(f"  {line(step)}" for step in steps),
        ' ],\n "kafka": {',
        ",\n".join(f"  {json.dumps(what)}: {json.dumps(answer)}" for what, answer in answers.items()),
        " }}",
    ]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


class Histories:
    """A pair of clusters that histories are played on."""

    def __init__(self, pair: Pair, run: str = "h") -> None:
        for side in pair.sides:
            warmed_up(side)
            if side.others:
                placed(side)
        self.pair, self.player = pair, Player(pair, run)
        self.versions = common_versions(*pair.sides)

    def run(self, seeds: Iterable[object], length: int = LENGTH, *, most_found: int = 5, restarts: int = 0) -> Report:
        """Play a history for each seed; stops once so many differences were found that come each time."""
        report = Report(self.pair)
        for seed in seeds:
            steps: Sequence[Step] = Generator(self.versions, seed).history(length, restarts=restarts)
            if brokers := len(self.pair.sides[0].others):
                steps = spread(steps, seed, 1 + brokers)
            played = self.player.play(steps)
            report.histories += 1
            report.steps += played.asked
            report.skipped += played.skipped
            if played.differences:
                report.found.append(self.pursued(seed, steps, played))
                if len(report.steady) >= most_found:
                    break
        return report

    def pursued(self, seed: object, steps: Sequence[Step], played: Played) -> Found:
        """A difference played again, and shortened."""
        wanted, plays = _signature(played), 0
        steps = list(steps[: played.step + 1])

        def shows(shorter: Sequence[Step]) -> bool:
            nonlocal plays
            plays += 1
            return plays <= MOST_PLAYS and _signature(self.player.play(shorter)) == wanted

        if not shows(steps):
            return Found(seed, steps, played.differences, steady=False)
        short = shrunk(steps, shows)
        again = self.player.play(short)
        return Found(seed, short, again.differences or played.differences, steady=True)


def _signature(played: Played) -> tuple[str, str] | None:
    if not played.differences:
        return None
    first = played.differences[0]
    return first.api, first.field
