"""Replays an export to a running cluster: produces the batches of some partitions, each when it is due.

A replay at a given speed keeps all partitions in step. So the tasks count from one start time, which the driver has
set, and a task with several partitions produces their batches in the order in which they are due.
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
from protocol.records.batch import RecordBatch

LEAD_S = 2.0
"""Delay from the driver's start time to the first batch, within which all tasks start."""
_BURST_MS = 100
"""Records that are this close together in a replay at a speed are sent together.

Ours: fewer requests than records, and no delay that a consumer notices.
"""


class Due(NamedTuple):
    """A batch, and when to produce it: milliseconds after the earliest timestamp of all loaded records."""

    at_ms: int
    number: int
    """Index of its partition within the task."""
    records: int
    batch: bytearray


def begun(wanted: Sequence[Target], now_s: float) -> list[Target]:
    """Return the targets with the start time of the first record."""
    return [replace(each, began_s=now_s + LEAD_S) for each in wanted]


def shared_out(wanted: Sequence[Target], tasks: int) -> list[list[Target]]:
    """Distribute the partitions over tasks.

    At a speed, only as many tasks as run in parallel: waiting ones would be late.
    """
    if not any(each.speed > 0 for each in wanted):
        return [[each] for each in wanted]
    return [share for start in range(max(1, tasks)) if (share := list(wanted[start :: max(1, tasks)]))]


def replay(
    wanted: Sequence[Target],
    produce: Callable[[Target, bytearray], object],
    *,
    done: Sequence[int] = (),
    now_s: Callable[[], float] = time.time,  # noqa: TID251 - speed refers to real time
    sleep: Callable[[float], object] = time.sleep,  # noqa: TID251 - as above
) -> list[int]:
    """Pass the partitions' batches to `produce`, each when it is due at their speed (0: immediately).

    A batch is due at the timestamp of its last record, relative to the earliest of all, but not before the previous
    batch of its partition. Late batches are sent immediately. The first `done` records of each partition are left out.
    Returns the number of records of each partition.
    """
    counts = [0] * len(wanted)
    streams = [_batches(number, each, done[number] if done else 0) for number, each in enumerate(wanted)]
    for due in heapq.merge(*streams, key=lambda each: each.at_ms):
        target = wanted[due.number]
        if target.speed > 0:
            sleep(max(0.0, target.began_s + due.at_ms / 1000 / target.speed - now_s()))
        produce(target, due.batch)
        counts[due.number] += due.records
    return counts


def _batches(number: int, target: Target, done: int) -> Iterator[Due]:
    how = Batching(codec=target.codec, span_ms=max(1, int(_BURST_MS * target.speed)) if target.speed > 0 else None)
    at_ms = 0
    for table in tables(target):
        if target.producers:
            table = table.filter(pc.invert(table.column("is_control")))  # noqa: PLW2901 - markers cannot be produced
        left_out = min(done, table.num_rows)
        done -= left_out
        table = table.slice(left_out)  # noqa: PLW2901 - the rest
        for batch in encode(_as_new(table), how):
            batch[:8] = bytes(8)  # a producer's offsets start at 0; the checksum does not cover them
            header = RecordBatch(batch)
            at_ms = max(at_ms, header.max_timestamp_ms - target.first_ms)
            yield Due(at_ms if target.speed > 0 else 0, number, header.record_count, batch)


def _as_new(table: pa.Table) -> pa.Table:
    """Return records as a producer sends them: without gaps, and with their own timestamps."""
    for name, values in (("offset", np.arange(table.num_rows)), ("timestampType", np.zeros(table.num_rows))):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), pa.array(values).cast(table.schema.field(at).type))
    return table
