"""Both clusters asked the same thing, and their answers held against each other."""

import copy
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from comparison.difference import Difference, differences
from comparison.known import explained
from comparison.plain import plain
from comparison.rules import comparable
from comparison.side import Side

READS_AGREE_WITHIN_S = 3.0


@dataclass
class Coverage:
    """What was asked and answered: (API, version, error) -> how often. An answer counts for each code it holds."""

    seen: Counter[tuple[str, int, str]] = field(default_factory=Counter)

    def note(self, api: str, version: int, answer: Any) -> None:
        """Count an answer."""
        self.seen.update((api, version, code) for code in set(_codes(answer)) or {"-"})

    def rows(self) -> list[str]:
        """One line for each API: versions seen, and how often each code."""
        rows = []
        for api in sorted({key[0] for key in self.seen}):
            mine = {key: times for key, times in self.seen.items() if key[0] == api}
            versions = ",".join(map(str, sorted({version for _, version, _ in mine})))
            codes: Counter[str] = Counter()
            for (_, _, code), times in mine.items():
                codes[code] += times
            told = ", ".join(f"{code} {times}" for code, times in codes.most_common())
            rows.append(f"{api} v{versions}: {told}")
        return rows


def _codes(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name.endswith("error_code") and isinstance(inner, str):
                yield inner
            else:
                yield from _codes(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _codes(inner)


class Exchange:
    """Clusters that are asked the same, and what is made of their answers.

    The first of `sides` is asked what is remembered of it: `coverage`, and `answers` of the history that runs, by what
    was asked. `met` counts the known differences.
    """

    def __init__(self, *sides: Side) -> None:
        self.sides = sides
        self.coverage = Coverage()
        self.met: Counter[str] = Counter()
        self.answers: dict[str, Any] = {}

    def judged(self, what: str, api: str, answers: Sequence[Any]) -> list[Difference]:
        """The differences between the sides' answers that no entry of the ledger explains."""
        made = [comparable(side.names, api, plain(each)) for side, each in zip(self.sides, answers, strict=True)]
        self.answers[what] = made[0]
        kafka, understudy = self.pair_of(what, made)
        found = []
        for difference in differences(api, kafka, understudy):
            known = explained(difference)
            if known is None:
                found.append(difference)
            else:
                self.met[known.id] += 1
        return found

    def pair_of(self, what: str, made: Sequence[Any]) -> tuple[Any, Any]:
        """Kafka's answer and ours."""
        raise NotImplementedError

    def agree(self, what: str, api: str, ask: Callable[[Side], Any]) -> list[Difference]:
        """Ask for something that asking does not change, again until the answers agree or time is up."""
        deadline = time.monotonic() + READS_AGREE_WITHIN_S
        while True:
            before = [copy.deepcopy(side.names.given) for side in self.sides]
            found = self.judged(what, api, [ask(side) for side in self.sides])
            if not found or time.monotonic() > deadline:
                return found
            for side, given in zip(self.sides, before, strict=True):
                side.names.given = given
            time.sleep(0.02)


class Pair(Exchange):
    """A real Kafka and ours."""

    def __init__(self, kafka: Side, understudy: Side) -> None:
        super().__init__(kafka, understudy)

    def pair_of(self, what: str, made: Sequence[Any]) -> tuple[Any, Any]:  # noqa: ARG002
        """As they come."""
        return made[0], made[1]


class Recording(Exchange):
    """One cluster alone: what it answers is kept, and nothing is judged."""

    def pair_of(self, what: str, made: Sequence[Any]) -> tuple[Any, Any]:  # noqa: ARG002
        """The answer, twice."""
        return made[0], made[0]


class Recorded(Exchange):
    """Ours alone, held against what a Kafka answered when the history was recorded."""

    def __init__(self, understudy: Side, answers: Mapping[str, Any]) -> None:
        super().__init__(understudy)
        self._recorded = answers

    def pair_of(self, what: str, made: Sequence[Any]) -> tuple[Any, Any]:
        """The recorded answer comes first."""
        recorded = self._recorded.get(what, "(not recorded)")
        return recorded, as_recorded(recorded, made[0])


def as_recorded(recorded: Any, made: Any) -> Any:
    """An answer without the fields that our message classes have got since the recording."""
    if isinstance(recorded, dict) and isinstance(made, dict):
        return {name: as_recorded(recorded[name], inner) for name, inner in made.items() if name in recorded}
    if isinstance(recorded, list) and isinstance(made, list) and len(recorded) == len(made):
        return [as_recorded(*pair) for pair in zip(recorded, made, strict=True)]
    return made
