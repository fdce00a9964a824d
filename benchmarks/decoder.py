"""Measures records decoded to Arrow and batches listed per second on one core, in its own processor time.

    python -m benchmarks.decoder [--records 1000000] [--repeat 5]

Keys of 12 and values of 180 bytes, a header on every tenth record, 80 records a batch. Processor time does not include
other processes, but their use of the caches has an effect: measure on an idle machine.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random

import pyarrow as pa

from pipeline.reading import read_batches, read_segments
from protocol.records.compression import Codec
from protocol.records.records import Record, build_batch

NOW_MS = 1_700_000_000_000
PER_BATCH = 80
GOALS = {Codec.NONE: 3.0, Codec.ZSTD: 1.2}
"""Goals in millions of records per second."""


def batches(codec: Codec, records: int) -> Iterator[bytearray]:
    """Yield the batches of a log as producers of JSON would write it."""
    chance = Random(1)  # noqa: S311 - the same log each time
    for base in range(0, records, PER_BATCH):
        chunk = []
        for offset in range(base, min(base + PER_BATCH, records)):
            text = f'{{"id":{offset},"user":"user-{chance.randrange(10**6)}","amount":{chance.random() * 1000}'
            value = f'{text},"note":"{chance.getrandbits(320):080x}'.ljust(178)[:178] + '"}'
            headers = [("trace", b"%016x" % offset)] if offset % 10 == 0 else ()
            chunk.append(Record(offset, NOW_MS + offset // 50, b"key-%08d" % offset, value.encode(), headers))
        yield build_batch(chunk, codec=codec, partition_leader_epoch=0)


def millions(read: Callable[[], Iterable[pa.RecordBatch]], repeat: int) -> float:
    """Return the median of millions of rows per second of processor time."""
    rates: list[float] = []
    for _ in range(repeat + 1):
        begun = time.process_time()
        rows = sum(each.num_rows for each in read())
        rates.append(rows / (time.process_time() - begun) / 1e6)
    return statistics.median(rates[1:])


def main() -> None:
    """Write logs, read them, print; exit with 1 if a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decoder", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    missed = False
    print("| codec | all columns | goal | offsets and times | batch headers |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="bench-decoder-") as folder:
        for codec in Codec:
            path = Path(folder) / f"{codec.name.lower()}-0" / f"{0:020d}.log"
            path.parent.mkdir()
            with path.open("wb") as file:
                file.writelines(batches(codec, options.records))
            whole = millions(lambda path=path: read_segments(path), options.repeat)  # type: ignore[misc]
            narrow = millions(lambda path=path: read_segments(path, columns=["offset", "timestamp"]), options.repeat)  # type: ignore[misc]
            listed = millions(lambda path=path: read_batches(path), options.repeat)  # type: ignore[misc]
            goal = GOALS.get(codec)
            missed = missed or (goal is not None and whole < goal)
            goal_text = "" if goal is None else f"{goal:g} M/s"
            print(
                f"| {codec.name.lower()} | {whole:.2f} M/s | {goal_text} | {narrow:.2f} M/s | {listed * 1000:.0f} k/s |"
            )
            path.unlink()
    sys.exit(missed)


if __name__ == "__main__":
    main()
