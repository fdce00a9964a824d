"""Query of logs: the arguments that every reading function and data source takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import pyarrow as pa

from pipeline import schemas

Mode = Literal["fail", "report", "skip"]
"""Handling of damaged bytes: an error with file, position and reason; a row with them; or skipping."""
Isolation = Literal["read_uncommitted", "read_committed"]
Bounds = tuple[int | None, int | None]
"""From (inclusive) and to (exclusive); None: open. Offsets or milliseconds."""
OPEN: Bounds = (None, None)


@dataclass(frozen=True, slots=True)
class Query:
    """Selection of records. `pipeline.reading.read_segments` describes each field.

    Raises:
        ValueError: an invalid value; the message lists the valid ones.
    """

    schema: pa.Schema
    topics: tuple[str, ...] | None = None
    offsets: Bounds = OPEN
    times: Bounds = OPEN
    isolation: str = "read_uncommitted"
    control: bool = False
    mode: str = "fail"
    crc: bool = True
    broker: int | None = None
    by_base: bool = False
    """Whether a batch is selected by its base offset alone, so that adjacent bounds have no batch in common."""

    def __post_init__(self) -> None:
        for name, kind in (("isolation", Isolation), ("mode", Mode)):
            if (value := getattr(self, name)) not in get_args(kind):
                raise ValueError(f"{name}={value}: there are {', '.join(get_args(kind))}")

    @property
    def start_offset(self) -> int:
        """Return the first selected offset."""
        return max(self.offsets[0] or 0, 0)

    @property
    def stop_offset(self) -> int:
        """Return the offset after the last selected one."""
        # No limit is the highest int64.
        return 2**63 - 1 if self.offsets[1] is None else self.offsets[1]

    @property
    def is_committed(self) -> bool:
        """Return whether only committed records are selected."""
        return self.isolation == "read_committed"


def pick(available: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """Return the columns with these names, in this order. Raises ValueError for an unknown one."""
    if strange := [name for name in columns if name not in available.names]:
        raise ValueError(f"no column {strange[0]!r}; there are: {', '.join(available.names)}")
    return pa.schema([available.field(name) for name in columns])


def record_schema(columns: Sequence[str] | None, mode: str) -> pa.Schema:
    """Return the columns of records: by default Spark's seven and `headers`; and `damage` in mode `report`."""
    names = [*schemas.KAFKA.names, "headers"] if columns is None else list(columns)
    if mode == "report" and "damage" not in names:
        names.append("damage")
    return pick(pa.schema([*schemas.KAFKA, *schemas.EXTRA]), names)
