"""Runs the rows: all targets in turn, with every count checked before a figure is used."""

import contextlib
import itertools
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

from benchmarks.neighbours import Neighbours
from benchmarks.row import FreshRow, Row, Scale, ServerRow, Values
from benchmarks.targets import KINDS, Server, running


@dataclass(slots=True)
class Results:
    """Figures of all rounds: figure -> target -> values; and failures as texts."""

    rounds: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    failures: list[str] = field(default_factory=list)
    others: list[float] = field(default_factory=list)  # processors that others used during each measurement that counts

    def add(self, target: str, values: Values) -> None:
        """Add the values of one round."""
        for figure, value in values.items():
            self.rounds[figure][target].append(value)

    def median(self, figure: str, target: str) -> float | None:
        """Return the median of all rounds, if there is one."""
        values = self.rounds.get(figure, {}).get(target)
        return statistics.median(values) if values else None


_FAILED = object()


_numbers = itertools.count()
# A measurement with more use of the processors by others than this is repeated, at most this often.
_DISTURBED, _AGAIN = 0.3, 2


def _topic(row: ServerRow) -> str:
    """Return the topic prepared for all rounds, else a new one for each."""
    name = f"keep-{row.name}" if row.kept else row.name
    return name if row.prepare is not None else f"{name}-{next(_numbers)}"


class Run:
    """One run: its servers, results and deadline."""

    def __init__(self, targets: Sequence[str], scale: Scale, budget_s: float) -> None:
        self.targets, self.scale = tuple(targets), scale
        self.results = Results()
        self._begun = time.monotonic()
        self._deadline = self._begun + budget_s
        self._reserved_s = 0.0
        self._servers: dict[str, Server] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def _end(self) -> float:
        """Return when a row must end, to leave time for those after it."""
        return self._deadline - self._reserved_s

    def rows(self, rows: Sequence[Row]) -> None:
        """Measure all rows, at least one round of each."""
        for number, row in enumerate(rows, start=1):
            self._reserved_s = sum(later.least_s for later in rows[number:])
            self.row(row)

    def row(self, row: Row) -> None:
        """Measure one row; failures are recorded and the run continues."""
        if time.monotonic() > self._deadline:
            self._fail(row.name, "", "not run: the time of the whole run was used up")
            return
        if isinstance(row, ServerRow):
            self._server_row(row)
        else:
            kinds = [name for name in row.targets if name in self.targets]
            rounds = min(row.rounds, self.scale.rounds)
            self._rounds(row.name, rounds, kinds, lambda name, _: self._fresh(row, name), row.budget_s)

    def _fresh(self, row: FreshRow, name: str) -> Values:
        return row.measure(KINDS[name], self.scale)

    def _server_row(self, row: ServerRow) -> None:
        """Prepare each server and warm it up; targets that fail are skipped."""
        names = [name for name in row.targets if name in self.targets]
        names = [name for name in names if self._warm(row, name)]

        def measure(name: str, number: int) -> Values:
            return row.measure(self._server(name), _topic(row), self.scale, number == 1)

        self._rounds(row.name, self.scale.rounds, names, measure, row.budget_s)
        if row.prepare is not None:
            for name in names:
                self._server(name).delete_topic(_topic(row))

    def _warm(self, row: ServerRow, name: str) -> bool:
        server, topic, scale = self._server(name), _topic(row), Scale(1, self.scale.part / 4)
        if row.prepare is not None:
            scale = self.scale  # everything that was prepared exists
            if self._attempt(row.name, name, row.prepare, server, topic, scale) is _FAILED:
                return False
        return self._attempt(row.name, name, row.measure, server, topic, scale, False) is not _FAILED

    def _rounds(
        self, row: str, rounds: int, names: Sequence[str], measure: Callable[[str, int], Values], budget_s: float
    ) -> None:
        """Measure each target once per round, starting with another each time; no round begins after the time is up."""
        deadline = min(time.monotonic() + budget_s, self._end)
        for number in range(1, rounds + 1):
            if number > 1 and time.monotonic() > deadline:
                self._fail(row, "", f"{number - 1} rounds of {rounds}: the time was used up")
                return
            turn = number % max(len(names), 1)  # another target first each time
            for name in (*names[turn:], *names[:turn]):
                self._turn(row, name, number, measure, deadline)

    def _turn(self, row: str, name: str, number: int, measure: Callable[[str, int], Values], deadline: float) -> None:
        """Measure one target; of several tries the one with the least use by others counts."""
        best: tuple[float, Values] | None = None
        for _ in range(1 + _AGAIN):
            neighbours = Neighbours(self._servers.values())
            values = self._attempt(row, name, measure, name, number)
            others = neighbours.used()
            if isinstance(values, dict) and (best is None or others < best[0]):
                best = (others, values)
            if values is _FAILED or others < _DISTURBED or time.monotonic() > deadline:
                break
        if best is not None:
            self.results.add(name, best[1])
            self.results.others.append(best[0])
            figures = "  ".join(f"{figure} {value:,.4g}" for figure, value in best[1].items())
            self._print(f"{row:<22} round {number}  {name:<16} {figures}  (others {best[0]:.2f})")

    def _attempt(self, row: str, name: str, do: Callable[..., object], *arguments: object) -> object:
        try:
            return do(*arguments)
        except Exception as error:  # noqa: BLE001 - one target's failure is a line of the report, not the end of the run
            self._fail(row, name, f"{type(error).__name__}: {error}")
            return _FAILED

    def _fail(self, row: str, name: str, text: str) -> None:
        self.results.failures.append(f"{row} {name}: {text}".replace(" :", ":"))
        self._print(f"{row:<22} {name:<16} FAILED {text}")

    def _server(self, name: str) -> Server:
        if name not in self._servers:
            self._print(f"starting {name}")
            self._servers[name] = self._stack.enter_context(running(KINDS[name]))
        return self._servers[name]

    def _print(self, text: str) -> None:
        print(f"{time.monotonic() - self._begun:6.1f} s  {text}", flush=True)
