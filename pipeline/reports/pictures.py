"""Draws the pictures of a report, each from the rows of the question with the same name.

Sizes without a reason of their own are ours, by eye: inches, points, or shares of a line.
"""

from collections.abc import Sequence
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MultipleLocator

from pipeline.rendering import plots
from pipeline.rendering.plots import BLUE, ORANGE, PLAIN, RED, Picture
from pipeline.rendering.text import formatted, size_text
from pipeline.reports.answers import Report

MOST_BARS: Final = 15  # what can be read in one picture; the tables have all
MOST_TOPICS: Final = 4  # with six keys each: what can be read in one picture
MOST_LINES: Final = 8  # as many colours
_WIDEST: Final = 32  # characters of a label; ours, a third of the picture

Rows = Sequence[dict[str, Any]]


def pictures(report: Report) -> list[tuple[str, Picture]]:
    """Return all pictures for these results, with the name of the report that each belongs to."""
    drawn: list[tuple[str, Picture | None]] = [
        ("size", _sizes(report.rows("size"))),
        ("skew", _skew(report.rows("skew"), report.rows("partitions"))),
        ("hot-keys", _hot_keys(report.rows("hot-keys"))),
        ("compaction", _goes(report.rows("compaction"), "removable_bytes", "What compaction would remove")),
        ("retention", _goes(report.rows("retention"), "removed_bytes", "What retention would remove")),
        ("lag-history", _lags(report.lags)),
    ]
    return [(name, picture) for name, picture in drawn if picture is not None]


def _sizes(rows: Rows) -> Picture | None:
    """Draw the bytes of each topic."""
    if not rows:
        return None
    shown = rows[:MOST_BARS]
    # Inches: the axis, and a line of small text for each bar; the same below.
    figure, axes = plots.figure(0.6 + 0.26 * len(shown))
    _bars(axes, [row["topic"] for row in shown], [row["bytes"] for row in shown], BLUE)
    for place, row in enumerate(shown):
        axes.annotate(
            f"{size_text(row['bytes'])}, {row['records']} records", (row["bytes"], place), (4, 0),
            textcoords="offset points", va="center", fontsize="small",
        )  # fmt: skip
    axes.set_xlim(0, max(row["bytes"] for row in shown) * 1.3)
    _sized(axes)
    return Picture("Size of the topics", _first(len(shown), len(rows), "topics"), figure)


def _skew(topics: Rows, partitions: Rows) -> Picture | None:
    """Draw each partition against the mean, for the most uneven topics."""
    shown = [row for row in topics if row["most_times_the_mean"] is not None][:MOST_TOPICS]
    if not shown:
        return None
    # Inches: bars beside each other, whose height shows only a ratio.
    figure, axes = plots.figure(2.4)
    start = 0.0
    for number, row in enumerate(shown):
        bars = [each["times_the_mean"] or 0 for each in partitions if each["topic"] == row["topic"]]
        places = [start + place for place in range(len(bars))]
        # Nearly touching bars are a topic; a gap between topics grows with the picture.
        axes.bar(places, bars, 0.85, color=BLUE if number % 2 == 0 else ORANGE, linewidth=0)
        axes.text(start - 0.4, 1.04, _short(row["topic"]), transform=axes.get_xaxis_transform(), fontsize="small")
        start += len(bars) + max(1.0, 0.03 * sum(each["partitions"] for each in shown))
    axes.axhline(1, color="black", linewidth=1)
    axes.set_xticks([])
    axes.set_ylabel("times the mean")
    caption = "Each bar is a partition; the line is where it would end if all of its topic were equally full."
    return Picture("Partitions compared with the mean of their topic", caption, figure)


def _hot_keys(rows: Rows) -> Picture | None:
    """Draw the most frequent keys of the topics whose top key has the largest share."""
    topics = sorted({row["topic"] for row in rows}, key=lambda topic: -_hottest(rows, topic))[:MOST_TOPICS]
    if not topics:
        return None
    figure, axes = plots.figure(0.6 + 0.26 * sum(min(_keys_of(rows, topic), 6) for topic in topics))
    names: list[str] = []
    shares: list[float] = []
    colours: list[str] = []
    for number, topic in enumerate(topics):
        # The hottest six: MOST_TOPICS of them fill a picture.
        for row in [each for each in rows if each["topic"] == topic][:6]:
            names.append(
                f"{_short(topic)}: {_short(formatted('key', row['key']) if row['key'] is not None else 'no key')}"
            )
            shares.append(100 * row["share"])
            colours.append(BLUE if number % 2 == 0 else ORANGE)
    _bars(axes, names, shares, colours)
    axes.set_xlabel("% of the topic's records")
    return Picture("The hottest keys", f"The first of {len(topics)} topics.", figure)


def _hottest(rows: Rows, topic: str) -> float:
    return float(max(row["share"] for row in rows if row["topic"] == topic))


def _keys_of(rows: Rows, topic: str) -> int:
    return sum(row["topic"] == topic for row in rows)


def _goes(rows: Rows, part: str, title: str) -> Picture | None:
    """Draw removed and remaining bytes, topic by topic."""
    totals: dict[str, list[float]] = {}
    for row in rows:
        goes = row[part] or 0
        known = totals.setdefault(row["topic"], [0, 0])
        known[0] += goes
        known[1] += max(row["bytes"] - goes, 0)
    shown = sorted(totals, key=lambda topic: -sum(totals[topic]))[:MOST_BARS]
    if not shown or not any(goes for goes, _ in totals.values()):
        return None
    figure, axes = plots.figure(0.8 + 0.26 * len(shown))
    goes_of, stays_of = [totals[topic][0] for topic in shown], [totals[topic][1] for topic in shown]
    _bars(axes, shown, goes_of, RED, label="goes", hatch="////")
    axes.barh(range(len(shown)), stays_of, 0.7, left=goes_of, color=PLAIN, label="stays", linewidth=0)
    plots.beside(axes)
    _sized(axes)
    return Picture(title, _first(len(shown), len(totals), "topics"), figure)


def _lags(rows: Rows) -> Picture | None:
    """Draw lag over time, a line for each reader and topic."""
    lines: dict[tuple[Any, ...], list[tuple[float, int]]] = {}
    for row in rows:
        lines.setdefault((row["reader"], row["topic"], row["run"], row["era"]), []).append((row["at_ms"], row["lag"]))
    if not lines:
        return None
    shown = sorted(lines, key=lambda line: -max(lag for _, lag in lines[line]))[:MOST_LINES]
    figure, axes = plots.figure(2.8)
    for number, line in enumerate(shown):
        points = sorted(lines[line])
        axes.step(
            [plots.when(at) for at, _ in points], [lag for _, lag in points], where="post", linewidth=1.5,
            # Three styles, so that neighbours differ without colour.
            color=f"C{number}", linestyle=("-", "--", ":")[number % 3], label=_short(f"{line[0] or '-'}: {line[1]}"),
            marker="o" if len(points) == 1 else "", markersize=4,
        )  # fmt: skip
    axes.set_ylabel("lag, in offsets")
    axes.set_ylim(bottom=0)
    plots.dated(axes)
    plots.beside(axes)
    return Picture(
        "Lag over time", _first(len(shown), len(lines), "readers, all partitions of a topic together"), figure
    )


def _bars(axes: Axes, names: Sequence[str], sizes: Sequence[float], colours: Any, **options: Any) -> None:
    axes.barh(range(len(names)), sizes, 0.7, color=colours, linewidth=0, **options)
    axes.set_yticks(range(len(names)), [_short(name, 2 * _WIDEST) for name in names])
    axes.invert_yaxis()


def _sized(axes: Axes) -> None:
    # A power of two, so that sizes are round: four to eight ticks.
    step = 1 << max(int(axes.get_xlim()[1] / 4).bit_length() - 1, 0)
    axes.xaxis.set_major_locator(MultipleLocator(step))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size_text(value)))


def _short(text: str, most: int = _WIDEST) -> str:
    shown = text if len(text) <= most else text[: most - 3] + "..."
    return shown.replace("$", r"\$")  # matplotlib would treat a pair of them as a formula


def _first(shown: int, whole: int, what: str) -> str:
    return f"The first {shown} of {whole} {what}." if shown < whole else f"{whole} {what}."
