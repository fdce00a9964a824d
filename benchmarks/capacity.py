"""Measures how much one broker can hold: memory, processor time per operation, and how long a bystander waits.

    python -m benchmarks.capacity [--targets understudy,kafka] [--only groups,...] [--scale 1.0] [--grow]

For each case a client creates a number of connections, partitions, transactional ids, groups, members or sessions in
one broker that does nothing else. The bystander (`benchmarks.bystander`) sends ApiVersions meanwhile. Needs an idle
machine, and about 20,000 file descriptors. `--scale 0.1` creates a tenth of everything; `--grow` continues with twice
as many in a new broker, until it is unusable: a request fails, the bystander's 99th percentile is above a second, it
takes more than two minutes, or more than 6 GB.
"""

import argparse
import resource
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks import capacity_cases as cases
from benchmarks.bystander import bystander
from benchmarks.targets import KINDS, Server, running

_MOST_P99_MS, _MOST_S, _MOST_MB = 1000.0, 120.0, 6000.0


@dataclass(frozen=True, slots=True)
class Row:
    """The cost of one case."""

    case: str
    target: str
    count: int
    took_s: float
    rss_mb: float
    cpu_us: float
    p99_ms: float

    def line(self) -> str:
        """Return the row of a Markdown table."""
        return (
            f"| {self.count:,} {self.case} | {self.target} | {self.took_s:.0f} s | {self.rss_mb:.0f} MB | "
            f"{self.cpu_us:.0f} us | {self.p99_ms:.0f} ms |"
        )

    @property
    def usable(self) -> bool:
        """Return whether a user would still consider the broker usable."""
        return self.p99_ms <= _MOST_P99_MS and self.took_s <= _MOST_S and self.rss_mb <= _MOST_MB


CASES: dict[str, tuple[Callable[[Server, ExitStack, int], None], int]] = {
    "connections": (cases.connections, 10_000),
    "partitions": (cases.partitions, 200_000),
    "transactional ids": (cases.transactional_ids, 100_000),
    "groups": (cases.groups, 50_000),
    "members of a classic group": (cases.classic_members, 2_000),
    "members of a consumer group": (cases.consumer_members, 2_000),
    "members of a streams group": (cases.streams_members, 2_000),
    "members of a share group": (cases.share_members, 1_000),
    "share sessions": (cases.share_sessions, 1_000),
    "fetch sessions": (cases.fetch_sessions, 2_000),
}
"""Case -> the function that creates it, and how many. A share group has at most 1,000 members (`group.share.max.size`).
"""


def measure(target: str, case: str, count: int) -> Row:
    """Run one case on a new server of the target."""
    make, _ = CASES[case]
    with running(KINDS[target]) as server, ExitStack() as stack:
        before_s = server.cpu_s()
        with bystander(server.bootstrap) as samples:
            begun = time.time()
            make(server, stack, count)
            took_s = time.time() - begun
        cpu_us = (server.cpu_s() - before_s) * 1e6 / count
        waits = sorted(waited * 1e3 for _, waited in samples)
        return Row(case, target, count, took_s, server.rss_bytes() / 1e6, cpu_us, waits[int(len(waits) * 0.99)])


def grow(target: str, case: str, count: int) -> None:
    """Print rows, each of twice as many, until one is unusable."""
    while True:
        try:
            row = measure(target, case, count)
        except (AssertionError, OSError, RuntimeError) as error:
            print(f"| {count:,} {case} | {target} | failed: {str(error)[:100] or type(error).__name__} | | | |")
            return
        print(row.line(), flush=True)
        if not row.usable:
            return
        count *= 2


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", default="understudy,kafka")
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--grow", action="store_true")
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for case in options.only.split(","):
        for target in options.targets.split(","):
            count = max(int(CASES[case][1] * options.scale), 1)
            if options.grow:
                grow(target, case, count)
            else:
                print(measure(target, case, count).line(), flush=True)


if __name__ == "__main__":
    main()
