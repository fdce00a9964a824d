"""Measures how long the console takes to be painted in Chromium with a million requests in the journal.

    python -m benchmarks.first_paint [--entries 1000000] [--loads 9] [--most-ms 200]

Each page is loaded so many times in turns, each time with an empty cache. "First paint" is the browser's own
first-contentful-paint, counted from the navigation; "data" is when the view with what the server answered is in the
page. The exit code is 1 if the median of a page's first paint is above the limit.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import understudy
from benchmarks.journal_queries import fill, kept_in
from benchmarks.machine import description
from benchmarks.targets import SETTINGS
from tests.control.chromium import Page, chromium

PAGES = {"overview": "", "journal": "journal"}
_PATIENCE_S = 60.0
# Notes when the view with its data is there; the page itself is not changed.
_WATCH = """
new MutationObserver((_, watching) => {
  if (!document.querySelector(".view")) return;
  watching.disconnect();
  window.dataAt = performance.now();
}).observe(document, {childList: true, subtree: true});
"""
_TIMES = """
const [paint] = performance.getEntriesByName("first-contentful-paint");
return paint && window.dataAt ? [paint.startTime, window.dataAt] : null;
"""


class Load(NamedTuple):
    """One load of a page, in ms from the navigation."""

    first_paint: float
    data: float


def load(page: Page, url: str, way: str) -> Load:
    """Load a page with an empty cache."""
    page.driver.execute_cdp_cmd("Network.clearBrowserCache", {})
    page.open(url, way)
    deadline = time.monotonic() + _PATIENCE_S
    while (times := page.script(_TIMES)) is None:
        if time.monotonic() > deadline:
            raise AssertionError(f"the page {way!r} was not painted")
        time.sleep(0.05)  # asking is work for the browser, too
    return Load(*times)


def measure(url: str, loads: int) -> dict[str, list[Load]]:
    """Load each page in turns; the first turn, in which the browser starts, does not count."""
    found: dict[str, list[Load]] = {name: [] for name in PAGES}
    with tempfile.TemporaryDirectory(prefix="first-paint-") as profile, chromium(Path(profile)) as page:
        page.look(1280, 900)
        page.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _WATCH})
        for turn in range(loads + 1):
            for name, way in PAGES.items():
                times = load(page, url, way)
                if turn:
                    found[name].append(times)
    return found


def lines(found: dict[str, list[Load]]) -> Iterator[str]:
    """Format the medians, with the fastest and the slowest load."""
    yield "| page | first paint, ms | data, ms |\n|---|---:|---:|"
    for name, loads in found.items():
        yield f"| {name} | {_range([each.first_paint for each in loads])} | {_range([each.data for each in loads])} |"


def _range(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.0f} ({min(values):.0f} to {max(values):.0f})"


def main() -> int:
    """Fill a journal, load the pages, print the table."""
    asked = argparse.ArgumentParser(
        prog="python -m benchmarks.first_paint", description=(__doc__ or "").splitlines()[0]
    )
    asked.add_argument("--entries", type=int, default=1_000_000, help="requests in the journal")
    asked.add_argument("--loads", type=int, default=9, help="loads of each page")
    asked.add_argument("--most-ms", type=float, default=200, help="the limit of the median of each first paint")
    options = asked.parse_args()
    limits = {"understudy.journal.max.entries": options.entries, "understudy.journal.max.bytes": 8 * 2**30}
    machine = description()
    print(f"load average {os.getloadavg()[0]:.1f}, {machine['processors']}, {machine['system']}", flush=True)
    with understudy.start(topics=["t:1"], settings={**SETTINGS, **limits}) as kafka:
        fill(kafka.bootstrap_servers, options.entries)
        print(f"{kept_in(kafka):,} requests in the journal", flush=True)
        found = measure(kafka.control_url, options.loads)
    print("\n".join(lines(found)))
    slowest = max(statistics.median(each.first_paint for each in loads) for loads in found.values())
    print(f"the slower page: {slowest:.0f} ms, limit {options.most_ms:.0f} ms")
    return int(slowest > options.most_ms)


if __name__ == "__main__":
    sys.exit(main())
