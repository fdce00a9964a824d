"""Plots of the figures: SVG files next to docs/inside/benchmarks.md."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from benchmarks.report import better_peer
from benchmarks.row import SLOPE, Figure, Row, ScaleRow, StorageRow
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
    """Write the plots that have figures; return their file names."""
    with mpl.rc_context(_STYLE):
        return _drawn(results, list(rows), folder)


def _drawn(results: Results, rows: list[Row], folder: Path) -> list[str]:
    written = []
    wire = [f for row in rows if not isinstance(row, StorageRow | ScaleRow) for f in row.figures]
    compared = [(f, ratio) for f in wire if f.goal is not None and (ratio := _times_better(results, f)) is not None]
    if compared:
        written.append(_save(_peers(compared), folder / "benchmarks-peers.svg"))
    scales = [row for row in rows if isinstance(row, ScaleRow) and len(results.scales.get(row.name, ())) > 1]
    if scales:
        written.append(_save(_scales(results, scales), folder / "benchmarks-scale.svg"))
    return written


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


def _scales(results: Results, rows: list[ScaleRow]) -> Picture:
    lines = (len(rows) + 1) // 2
    figure = Picture(figsize=(9, 2.6 * lines), layout="constrained")
    grid = figure.subplots(lines, 2, squeeze=False)
    for axes, row in zip(grid.flat, rows, strict=False):
        _scale(axes, results, row)
    for axes in list(grid.flat)[len(rows) :]:
        axes.set_visible(False)
    return figure


def _scale(axes: Axes, results: Results, row: ScaleRow) -> None:
    sizes = sorted(results.scales[row.name])
    for each in row.figures:
        costs = [results.scales[row.name][size].get(each.name) for size in sizes]
        if each.name != "idle_ms" and costs[0] and all(costs):
            axes.plot(sizes, [(cost or 0) / costs[0] for cost in costs], marker="o", markersize=3, label=each.title)
    axes.axhline(SLOPE, color="black", linewidth=0.8, linestyle="--")
    axes.set_xscale("symlog" if sizes[0] == 0 else "log")
    axes.set_ylim(bottom=0)
    axes.set_title(row.title, fontsize=9)
    axes.set_ylabel("cost, smallest = 1")
    axes.legend(fontsize=6)


def _save(figure: Picture, file: Path) -> str:
    figure.savefig(file, metadata={"Date": None})
    # SVG paths are written with trailing blanks, which files of this repository must not have.
    file.write_text("\n".join(line.rstrip() for line in file.read_text().splitlines()) + "\n")
    return file.name
