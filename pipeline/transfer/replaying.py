"""An export -> a running cluster: the batches of some partitions, each produced when it is due.

Whoever replays at a speed wants the pace of all partitions together. So the tasks count from one moment, which the
driver has set, and a task that has several partitions produces their batches in the order in which they are due.
"""

import heapq
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.encoding import Batching, encode
from pipeline.transfer.targets import Target, tables

LEAD_S = 2.0
"""From the driver's word to the first batch: by then the tasks have started, so that none begins behind the others."""
_BURST_MS = 100
"""Records so close together in a replay at a speed go out together."""


class Due(NamedTuple):
    """A batch, and when to produce it: milliseconds behind the earliest record of all that is loaded, as written."""

    at_ms: int
    number: int
    """Which of the task's partitions it belongs to."""
    records: int
    batch: bytearray


def begun(wanted: Sequence[Target], now_s: float) -> list[Target]:
    """The same targets, knowing when the first record of all is to be produced."""
    return [replace(each, began_s=now_s + LEAD_S) for each in wanted]


def shared_out(wanted: Sequence[Target], tasks: int) -> list[list[Target]]:
    """Which partitions each task has. At a speed, only as many tasks as run at once: one that waits would be late."""
    if not any(each.speed > 0 for each in wanted):
        return [[each] for each in wanted]
    return [found for start in range(max(1, tasks)) if (found := list(wanted[start :: max(1, tasks)]))]


def replay(
    wanted: Sequence[Target],
    produce: Callable[[Target, bytearray], object],
    *,
    now_s: Callable[[], float] = time.time,  # noqa: TID251 - this is what a speed means, on whichever machine
    sleep: Callable[[float], object] = time.sleep,  # noqa: TID251 - as above
) -> list[int]:
    """Give the partitions' batches to `produce`, each when it is due at their speed (0: at once).

    A batch is due when its last record was written, counted from the earliest record of all, but not before the one in
    front of it in its partition. What is late goes out at once. Returns how many records each partition had.
    """
    counts = [0] * len(wanted)
    streams = [_batches(number, each) for number, each in enumerate(wanted)]
    for due in heapq.merge(*streams, key=lambda each: each.at_ms):
        target = wanted[due.number]
        if target.speed > 0:
            sleep(max(0.0, target.began_s + due.at_ms / 1000 / target.speed - now_s()))
        produce(target, due.batch)
        counts[due.number] += due.records
    return counts


def _batches(number: int, target: Target) -> Iterator[Due]:
    how = Batching(codec=target.codec, span_ms=max(1, int(_BURST_MS * target.speed)) if target.speed > 0 else None)
    at_ms = 0
    for table in tables(target):
        if target.producers:
            table = table.filter(pc.invert(table.column("is_control")))  # noqa: PLW2901 - markers cannot be produced
        for batch in encode(_as_new(table), how):
            batch[:8] = bytes(8)  # a producer counts from 0; the checksum does not cover it
            at_ms = max(at_ms, int.from_bytes(batch[35:43], signed=True) - target.first_ms)
            yield Due(at_ms if target.speed > 0 else 0, number, int.from_bytes(batch[57:61]), batch)


def _as_new(table: pa.Table) -> pa.Table:
    """Records as a producer sends them: without holes, and with times of its own."""
    for name, values in (("offset", np.arange(table.num_rows)), ("timestampType", np.zeros(table.num_rows))):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), pa.array(values).cast(table.schema.field(at).type))
    return table
