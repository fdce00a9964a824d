"""Plots of the figures: SVG files next to docs/inside/benchmarks.md."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Picture

from benchmarks.report import better_peer
from benchmarks.row import BUILDS, Figure, Row
from benchmarks.runner import Results

_STYLE: Any = {
    "svg.hashsalt": "understudy",  # the same figures make the same file
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.axisbelow": True,
}
_OURS, _BEHIND = "#2a7f62", "#b5543c"


def draw(results: Results, rows: Iterable[Row], folder: Path) -> list[str]:
    """Write the plot of the figures that have a goal; return the names of the files."""
    figures = [figure for row in rows for figure in row.figures]
    named = zip(figures, _names(each.title for each in figures), strict=True)
    compared = [(name, ratio) for each, name in named if each.goal and (ratio := _times_better(results, each))]
    if not compared:
        return []
    with mpl.rc_context(_STYLE):
        return [_save(_peers(compared), folder / "benchmarks-peers.svg")]


def _times_better(results: Results, figure: Figure) -> float | None:
    """Return the ratio of the better build to the better peer; above 1 if Understudy is better."""
    builds = [value for build in BUILDS if (value := results.median(figure.name, build))]
    mine, peer = (max if figure.better == "higher" else min)(builds, default=0), better_peer(results, figure)
    if not mine or not peer:
        return None
    return mine / peer if figure.better == "higher" else peer / mine


def _peers(compared: list[tuple[str, float]]) -> Picture:
    figure = Picture(figsize=(8, 0.6 + 0.32 * len(compared)), layout="constrained")
    axes = figure.add_subplot()
    names, values = zip(*compared, strict=True)
    bars = axes.barh(range(len(names)), values, color=[_OURS if value >= 1 else _BEHIND for value in values])
    axes.bar_label(bars, [f"{value:.2f}" for value in values], padding=3)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=1)
    axes.margins(x=0.15, y=0.01)
    axes.set_xlabel("times better than the better of Kafka and kfake")
    return figure


def _names(titles: Iterable[str]) -> list[str]:
    """Name the figures; the title of one that belongs to that above it begins with dots."""
    names, above = [], ""
    for title in titles:
        if title.startswith("... "):
            names.append(f"{above}: {title.removeprefix('... ')}")
        else:
            names.append(title)
            above = title.partition(":")[0] if ":" in title else title.partition(",")[0]
    return names


def _save(figure: Picture, file: Path) -> str:
    figure.savefig(file, metadata={"Date": None})
    # SVG paths are written with trailing blanks, which files of this repository must not have.
    file.write_text("\n".join(line.rstrip() for line in file.read_text().splitlines()) + "\n")
    return file.name
