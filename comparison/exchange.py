"""Sends the same requests to both clusters and compares their responses."""

import copy
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from comparison.difference import Difference, differences
from comparison.known_differences import explained
from comparison.recompressed import EVERY, named_at, recompressed
from comparison.rules import comparable
from comparison.target import Target
from comparison.values import plain

READS_AGREE_WITHIN_S = 3.0
"""How long equal reads may differ: ours, longer than a broker takes to learn what another one has done."""


@dataclass
class Coverage:
    """Number of responses by API, version and error. A response counts once for each error code in it."""

    seen: Counter[tuple[str, int, str]] = field(default_factory=Counter)

    def note(self, api: str, version: int, answer: Any) -> None:
        """Count a response."""
        self.seen.update((api, version, code) for code in set(_codes(answer)) or {"-"})

    def rows(self) -> list[str]:
        """Return one line per API: versions seen, and the count of each error code."""
        rows = []
        for api in sorted({key[0] for key in self.seen}):
            of_api = {key: times for key, times in self.seen.items() if key[0] == api}
            versions = ",".join(map(str, sorted({version for _, version, _ in of_api})))
            codes: Counter[str] = Counter()
            for (_, _, code), times in of_api.items():
                codes[code] += times
            counts = ", ".join(f"{code} {times}" for code, times in codes.most_common())
            rows.append(f"{api} v{versions}: {counts}")
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
    """Clusters that get the same requests, and the comparison of their responses.

    `coverage`, and the `answers` of the current history by step, are those of the first target. `met` counts how often
    each known difference occurred. `recompressed` has the topics of the current history whose records the brokers
    compress again, by the names that a history gives them; with `recompresses`, they do so with all.
    """

    def __init__(self, *targets: Target, recompresses: bool = False) -> None:
        self.targets = targets
        self.recompresses, self.recompressed = recompresses, set[str]()
        self.coverage = Coverage()
        self.met: Counter[str] = Counter()
        self.answers: dict[str, Any] = {}

    def compare(self, what: str, api: str, answers: Sequence[Any]) -> list[Difference]:
        """Return those differences between the responses that are not known ones."""
        values = [
            comparable(target.names, api, plain(each)) for target, each in zip(self.targets, answers, strict=True)
        ]
        self.answers[what] = values[0]
        kafka, understudy = self.pair_of(what, values)
        unexplained = []
        for difference in differences(api, kafka, understudy):
            explanation = explained(difference, is_recompressed=self._is_recompressed(kafka, difference))
            if explanation is None:
                unexplained.append(difference)
            else:
                self.met[explanation.id] += 1
        return unexplained

    def note(self, request: Any) -> None:
        """Note the topics whose records the brokers compress again from this request of the first target on."""
        prefix = self.targets[0].names.prefix
        self.recompressed.update(name.removeprefix(prefix) for name in recompressed(request))

    def _is_recompressed(self, response: Any, difference: Difference) -> bool:
        return self.recompresses or bool(self.recompressed & {named_at(response, difference.path), EVERY})

    def pair_of(self, what: str, values: Sequence[Any]) -> tuple[Any, Any]:
        """Return Kafka's response and Understudy's."""
        raise NotImplementedError

    def agree(self, what: str, api: str, ask: Callable[[Target], Any]) -> list[Difference]:
        """Repeat a read-only request until the responses agree or a timeout passes; return the last differences."""
        deadline = time.monotonic() + READS_AGREE_WITHIN_S
        while True:
            before = [copy.deepcopy(target.names.symbols) for target in self.targets]
            unexplained = self.compare(what, api, [ask(target) for target in self.targets])
            if not unexplained or time.monotonic() > deadline:
                return unexplained
            for target, symbols in zip(self.targets, before, strict=True):
                target.names.symbols = symbols
            time.sleep(0.02)  # short beside what is waited for, and no load on the brokers


class Pair(Exchange):
    """A real Kafka and an Understudy."""

    def __init__(self, kafka: Target, understudy: Target, *, recompresses: bool = False) -> None:
        super().__init__(kafka, understudy, recompresses=recompresses)

    def pair_of(self, what: str, values: Sequence[Any]) -> tuple[Any, Any]:  # noqa: ARG002
        """Return the two responses."""
        return values[0], values[1]


class Recording(Exchange):
    """A single cluster whose responses are recorded, without comparison."""

    def pair_of(self, what: str, values: Sequence[Any]) -> tuple[Any, Any]:  # noqa: ARG002
        """Return the response twice."""
        return values[0], values[0]


class Recorded(Exchange):
    """An Understudy, compared with the recorded responses of a Kafka."""

    def __init__(self, understudy: Target, answers: Mapping[str, Any]) -> None:
        super().__init__(understudy)
        self._recorded = answers

    def pair_of(self, what: str, values: Sequence[Any]) -> tuple[Any, Any]:
        """Return the recorded response and Understudy's."""
        recorded = self._recorded.get(what, "(not recorded)")
        return recorded, as_recorded(recorded, values[0])


def as_recorded(recorded: Any, response: Any) -> Any:
    """Remove fields that were added to our message classes after the recording."""
    if isinstance(recorded, dict) and isinstance(response, dict):
        return {name: as_recorded(recorded[name], inner) for name, inner in response.items() if name in recorded}
    if isinstance(recorded, list) and isinstance(response, list) and len(recorded) == len(response):
        return [as_recorded(*pair) for pair in zip(recorded, response, strict=True)]
    return response
