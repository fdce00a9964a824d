"""The result of a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from simulator.checker import Log
from simulator.history import Place
from simulator.plan import Fault
from simulator.trace import Trace


@dataclass
class Result:
    """Result of a run."""

    seed: int
    violations: list[str]
    digest: str
    lines: int
    virtual_ms: int
    faults: list[Fault]
    trace: Trace = field(default_factory=Trace)
    progress: dict[str, int] = field(default_factory=dict)
    committed: Mapping[Place, Log] = field(default_factory=dict)
    """Partition -> offsets and values that a ``read_committed`` reader finds at the end."""

    excused: list[str] = field(default_factory=list)
    """Promises that Kafka breaks, too, and why; see :mod:`simulator.hanging`, `start_offsets` and `leaderless`."""

    left_out_markers: bool = False
    """Whether a marker was skipped, with broken promises or without."""

    broken_ms: int | None = None
    """When the first promise was broken that counts, in virtual ms."""
