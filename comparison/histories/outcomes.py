"""Compares the outcomes of a script whose requests overlap: ours has to be one that Kafka shows, too.

What happens at the same time has several right outcomes. Each cluster plays a script `PLAYS` times; an outcome of ours
that Kafka has not shown is looked for in up to `MOST_PLAYS` plays of Kafka, before it counts as a difference.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from comparison.difference import Difference, differences
from comparison.exchange import Exchange
from comparison.histories.overlap import Outcome, play, text
from comparison.histories.play import HOUR_MS, Played
from comparison.histories.quiescence import Restless
from comparison.histories.step_request import Step
from comparison.known_differences import explained
from comparison.target import Target

PLAYS = 2
MOST_PLAYS = 12  # ours: an outcome that Kafka shows once in four plays is missed three times in a hundred
TOGETHER = "Outcome"
"""Title of a difference whose parts Kafka shows one by one, but not together."""


class OutcomePlayer:
    """Plays scripts on Kafka and on Understudy; ``plays`` counts the plays of each."""

    def __init__(self, exchange: Exchange, run: str, most_plays: int = MOST_PLAYS) -> None:
        self.exchange, self._run, self._count, self._most = exchange, run, 0, most_plays
        self.plays = [0, 0]

    def play(self, steps: Sequence[Step], name: str | None = None) -> Played:
        """Play a script until Kafka has shown each outcome of ours, or often enough."""
        played = Played(name or self._run, steps=len(steps), step=len(steps) - 1)
        try:
            played.differences = self._differences(steps)
        except Restless as restless:
            played.differences = [Difference("Settle", str(restless), "restless", "restless")]
        return played

    def _differences(self, steps: Sequence[Step]) -> list[Difference]:
        with ThreadPoolExecutor(2) as pool:
            theirs, ours = pool.map(lambda side: self._outcomes(side, steps, PLAYS), (0, 1))
        while unseen := [outcome for outcome in ours if not _shown(outcome, theirs)]:
            if len(theirs) >= self._most:
                again = self._outcomes(1, steps, PLAYS)  # it has to come again, or it was the machine
                unseen = [outcome for outcome in again if not _shown(outcome, theirs)]
                return _nearest(unseen[0], theirs) if len(unseen) == len(again) else []
            theirs += self._outcomes(0, steps, PLAYS)
        self._note(theirs[0])
        return []

    def _outcomes(self, side: int, steps: Sequence[Step], plays: int) -> list[Outcome]:
        return [self._outcome(self.exchange.targets[side], side, steps) for _ in range(plays)]

    def _outcome(self, target: Target, side: int, steps: Sequence[Step]) -> Outcome:
        self._count += 1
        self.plays[side] += 1
        base_ms = int(time.time()) * 1000 - HOUR_MS
        return play(target, steps, f"{self._run}.{self._count:06}.", base_ms)

    def _note(self, outcome: Outcome) -> None:
        for what, value in outcome.items():
            number, _, api = what.partition(" ")
            if number.isdigit():
                self.exchange.coverage.note(api, value["version"], value["response"])


def _shown(outcome: Outcome, theirs: Sequence[Outcome]) -> bool:
    """Whether Kafka has shown an outcome, apart from known differences."""
    return any(not list(_unexplained(each, outcome)) for each in theirs)


def _unexplained(kafka: Outcome, ours: Outcome) -> Iterator[Difference]:
    if text(kafka) == text(ours):
        return
    for what in dict.fromkeys([*kafka, *ours]):
        number, _, api = what.partition(" ")
        title = api if number.isdigit() else what
        for each in differences(title, kafka.get(what), ours.get(what), f"[{number}]" if number.isdigit() else ""):
            if explained(replace(each, path=each.path.partition(".response.")[2] or each.path)) is None:
                yield each


def _nearest(outcome: Outcome, theirs: Sequence[Outcome]) -> list[Difference]:
    """Return the differences from the nearest outcome of Kafka; first those that it has not shown at all."""
    nearest = min((list(_unexplained(each, outcome)) for each in theirs), key=len)
    parts = {part for part in outcome if any(text(each.get(part)) == text(outcome[part]) for each in theirs)}
    alone = [each for each in nearest if not any(_is_of(each, part) for part in parts)]
    if alone:
        return alone
    return [Difference(TOGETHER, each.path, each.kafka, each.understudy) for each in nearest]


def _is_of(difference: Difference, part: str) -> bool:
    number, _, api = part.partition(" ")
    return difference.api == part or (difference.api == api and difference.path.startswith(f"[{number}]"))
