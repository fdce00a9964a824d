"""What a row of the benchmarks is: its figures, their goals, and how it is measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from benchmarks.targets import Kind, Server

PEERS = ("kafka", "kfake")
ALL = ("understudy", "understudy-disk", "kafka", "kfake", "mock", "limit")
WITHOUT_MOCK = tuple(name for name in ALL if name != "mock")


@dataclass(frozen=True, slots=True)
class Goal:
    """What Understudy shall reach: factors of other figures, or numbers."""

    of_better: float | None = None
    of_kafka: float | None = None
    of_own: tuple[str, float] | None = None  # another figure of Understudy's and a factor
    most: Mapping[str, float] = field(default_factory=dict)  # target -> value

    def __str__(self) -> str:
        """As the table says it, without the direction that the figure knows."""
        said = []
        if self.of_better is not None:
            said.append(f"{self.of_better:g} x the better peer")
        if self.of_kafka is not None:
            said.append(f"{self.of_kafka:g} x Kafka")
        if self.of_own is not None:
            said.append(f"{self.of_own[1]:g} x its {self.of_own[0].rpartition('_')[2]}")
        said += [f"{value:g}" + ("" if name == "understudy" else " (disk)") for name, value in self.most.items()]
        return ", ".join(said)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. `unit` stands behind the title; `better` is the direction that wins."""

    name: str
    title: str
    unit: str
    better: Literal["higher", "lower"] = "higher"
    goal: Goal | None = None


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is done: everything shrinks for a quick run."""

    rounds: int = 3
    part: float = 1.0

    def of(self, count: int, least: int = 1) -> int:
        """So many, scaled."""
        return max(int(count * self.part), least)


Values = Mapping[str, float]  # figure -> value


@dataclass(frozen=True, slots=True)
class ServerRow:
    """A row measured on servers that run through the whole benchmark.

    `prepare`, if there is one, runs once for each server and gives what `measure` needs: a topic's name.
    `measure(server, topic, scale, first)` gives the figures of one round; it raises if a count is not as it must be.
    """

    name: str
    figures: tuple[Figure, ...]
    measure: Callable[[Server, str, Scale, bool], Values]
    prepare: Callable[[Server, str, Scale], None] | None = None
    kept: bool = False
    targets: tuple[str, ...] = ALL
    budget_s: float = 180.0


@dataclass(frozen=True, slots=True)
class FreshRow:
    """A row for which each measurement starts its own server, or none at all: it gets the kind only."""

    name: str
    figures: tuple[Figure, ...]
    measure: Callable[[Kind, Scale], Values]
    targets: tuple[str, ...] = ALL
    rounds: int = 3
    budget_s: float = 180.0


@dataclass(frozen=True, slots=True)
class StorageRow:
    """A row about the room `storage` alone, without sockets; it runs once for each kind of files."""

    name: str
    figures: tuple[Figure, ...]
    measure: Callable[[str, Scale, int], Values]  # "memory" or "disk", the scale, the largest log
    targets: tuple[str, ...] = ("memory", "disk")


@dataclass(frozen=True, slots=True)
class ScaleRow:
    """What operations cost Understudy at several sizes of one thing, and what memory one more of it takes.

    Each size is measured in a process of its own, by `benchmarks.scale`; figures are named as that names them, the row
    as the scale there, with "scale_" before it.
    """

    name: str
    title: str
    one: str
    sizes: tuple[int, ...]
    figures: tuple[Figure, ...]

    def sizes_of(self, scale: Scale) -> tuple[int, ...]:
        """Those of a run: a quick one leaves out what takes long."""
        whole = scale.part > 0.5 or len(self.sizes) == 2
        return self.sizes if whole else tuple(size for size in self.sizes if size <= 1000)


SLOPE = 1.3
"""Goal: what an operation costs at the largest size, against the smallest."""

Row = ServerRow | FreshRow | StorageRow | ScaleRow
