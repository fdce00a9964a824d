"""Plots of the figures: SVG files next to docs/inside/benchmarks.md."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Picture

from benchmarks.report import better_peer
from benchmarks.row import Figure, Row
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
    figures = [figure for row in rows for figure in row.figures if figure.goal is not None]
    compared = [(figure, ratio) for figure in figures if (ratio := _times_better(results, figure)) is not None]
    if not compared:
        return []
    with mpl.rc_context(_STYLE):
        return [_save(_peers(compared), folder / "benchmarks-peers.svg")]


def _times_better(results: Results, figure: Figure) -> float | None:
    """Return the ratio of Understudy to the better peer; above 1 if Understudy is better."""
    mine, peer = results.median(figure.name, "understudy"), better_peer(results, figure)
    if not mine or not peer:
        return None
    return mine / peer if figure.better == "higher" else peer / mine


def _peers(compared: list[tuple[Figure, float]]) -> Picture:
    figure = Picture(figsize=(8, 0.6 + 0.32 * len(compared)), layout="constrained")
    axes = figure.add_subplot()
    names = [each.title.lstrip(". ") for each, _ in compared]
    values = [value for _, value in compared]
    bars = axes.barh(range(len(names)), values, color=[_OURS if value >= 1 else _BEHIND for value in values])
    axes.bar_label(bars, [f"{value:.2f}" for value in values], padding=3)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=1)
    axes.margins(x=0.15)
    axes.set_xlabel("how many times better than the better of Kafka and kfake (1: as good)")
    return figure


def _save(figure: Picture, file: Path) -> str:
    figure.savefig(file, metadata={"Date": None})
    # SVG paths are written with trailing blanks, which files of this repository must not have.
    file.write_text("\n".join(line.rstrip() for line in file.read_text().splitlines()) + "\n")
    return file.name
