"""Measures the memory of the commands on a large directory, which is generated, audited, exported and loaded again.

    python tools/bounded_memory.py [--gigabytes 10] [--folder DIR] [--master local[2]]

prints the peak resident memory of each kind of process: the command itself, the JVM (Spark's driver, in local mode with
its executor), and one Python worker. Exit code 1: one of them is above its bound, which does not depend on the size of
the directory. Needs three times the gigabytes on disk.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.processors import watched
from tools.fill_directory import Filling, fill

_GB = 1_000_000_000
BOUNDS: Mapping[str, float] = {"driver": 1.0, "java": 3.2, "worker": 1.0}
"""Gigabytes. Java has a heap of 2 GiB; a worker holds a few pieces of 16 MB and the Arrow data made from them."""
_RECORD_BYTES = 205


@dataclass(frozen=True, slots=True)
class Measurement:
    """Duration of one command in seconds, and peak memory of each kind of process in gigabytes."""

    command: str
    seconds: float
    peaks: Mapping[str, float]

    def above(self) -> list[str]:
        """Return the kinds of processes above their bounds."""
        return [kind for kind, peak in self.peaks.items() if peak > BOUNDS[kind]]


def run(*arguments: str) -> Measurement:
    """Run one command to its end. Raises CalledProcessError."""
    begun = time.monotonic()
    command = [sys.executable, "-m", "understudy", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process, watched(process.pid) as peaks:
        code = process.wait()
    if code:
        raise subprocess.CalledProcessError(code, command)
    return Measurement(
        arguments[0], time.monotonic() - begun, {kind: peak / _GB for kind, peak in sorted(peaks.items())}
    )


def measure(folder: Path, gigabytes: float, master: str = "local[2]") -> list[Measurement]:
    """Fill a directory, then audit, export and load it; 8 partitions, transactions, batches of 80 records."""
    data, out = folder / "data", folder / "out"
    size = fill(data, Filling(int(gigabytes * _GB / _RECORD_BYTES), partitions=8, transactions=100))
    print(f"{size / _GB:.2f} GB in {data}", flush=True)
    measurements = []
    for arguments in (
        ("audit", str(data)),
        ("export", str(data), str(out)),
        ("load", str(out), "--to", str(folder / "loaded")),
    ):
        done = run(*arguments, "--master", master, "--quiet")
        measurements.append(done)
        peaks = ", ".join(f"{kind} {peak:.2f} GB" for kind, peak in done.peaks.items())
        print(f"{done.command}: {done.seconds:.0f} s, {peaks}", flush=True)
    return measurements


def main() -> None:
    """Measure and print; exit with 1 if a process is above its bound."""
    parser = argparse.ArgumentParser(description="Measures the memory of the commands on a large directory.")
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--folder", type=Path, help="for the files; default: a temporary one, removed in the end")
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bounded-", dir=options.folder) as folder:
        measurements = measure(Path(folder), options.gigabytes, options.master)
    sys.exit(any(each.above() for each in measurements))


if __name__ == "__main__":
    main()
