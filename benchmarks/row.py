"""Rows of the benchmarks: their figures, goals and measurements."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from benchmarks.targets import Kind, Server

PEERS = ("kafka", "kfake")
BUILDS = ("understudy", "understudy-compiled")
"""The same sources, interpreted and compiled: goals apply to both."""
STORING = (*BUILDS, "understudy-disk", "kafka", "kfake")
ALL = (*STORING, "mock", "limit")
WITHOUT_MOCK = tuple(name for name in ALL if name != "mock")


@dataclass(frozen=True, slots=True)
class Goal:
    """Goal of Understudy: factors of other figures, or numbers; all of them must be met."""

    of_better: float | None = None
    of_kafka: float | None = None
    of_kfake: float | None = None
    of_limit: float | None = None
    most: Mapping[str, float] = field(default_factory=dict)  # target -> value

    def __str__(self) -> str:
        """Return the goal as in the table, without the direction, which the figure has."""
        parts = []
        if self.of_better is not None:
            parts.append(f"{self.of_better:g} x the better peer")
        if self.of_kafka is not None:
            parts.append(f"{self.of_kafka:g} x Kafka")
        if self.of_kfake is not None:
            parts.append(f"{self.of_kfake:g} x kfake")
        if self.of_limit is not None:
            parts.append(f"{self.of_limit:g} x the limit")
        parts += [f"{value:g}" + ("" if name == "understudy" else " (disk)") for name, value in self.most.items()]
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Figure:
    """Line of the table. `unit` follows the title; `better` is the better direction."""

    name: str
    title: str
    unit: str
    better: Literal["higher", "lower"] = "higher"
    goal: Goal | None = None


@dataclass(frozen=True, slots=True)
class Scale:
    """Amount of work, which is smaller in a quick run."""

    rounds: int = 3
    part: float = 1.0

    def of(self, count: int, least: int = 1) -> int:
        """Scale a count."""
        return max(int(count * self.part), least)


Values = Mapping[str, float]  # figure -> value


@dataclass(frozen=True, slots=True)
class ServerRow:
    """Row measured on servers that run during the whole benchmark.

    Only the first round may begin after `budget_s`; `least_s` is reserved for the row while earlier ones are measured.
    `prepare`, if there is one, runs once per server and fills the topic for `measure`. `measure(server, topic, scale,
    first)` returns the figures of one round; it raises if a count is wrong.
    """

    name: str
    figures: tuple[Figure, ...]
    measure: Callable[[Server, str, Scale, bool], Values]
    prepare: Callable[[Server, str, Scale], None] | None = None
    kept: bool = False
    targets: tuple[str, ...] = ALL
    budget_s: float = 180.0
    least_s: float = 25.0


@dataclass(frozen=True, slots=True)
class FreshRow:
    """Row whose measurements start their own servers: they only get the kind."""

    name: str
    figures: tuple[Figure, ...]
    measure: Callable[[Kind, Scale], Values]
    targets: tuple[str, ...] = ALL
    rounds: int = 3
    budget_s: float = 180.0
    least_s: float = 25.0


Row = ServerRow | FreshRow
