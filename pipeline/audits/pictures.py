"""The pictures of a report: how transactions went and what they held back, and how much was written when.

Each is a piece of SVG. Colours: committed blue, aborted orange, open and hanging red; told apart by shape too.
"""

import io
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from pyspark.sql import SparkSession

MOST_PARTITIONS: Final = 8
MOST_TRANSACTIONS: Final = 400
MOST_BATCHES: Final = 4000
WINDOWS: Final = 60
MOST_TOPICS: Final = 8
COLOURS: Final = {"COMMIT": "#3b6ea8", "ABORT": "#e0812b", "open": "#c0392b"}
_HATCHES: Final = {"COMMIT": "", "ABORT": "////", "open": "xx"}
_PLAIN: Final = "#9aa5b1"
_DAY: Final = 86_400_000
_DAY_MS: Final = float(_DAY)


class Picture(NamedTuple):
    """A picture with its title and what it shows in words."""

    title: str
    words: str
    svg: str


def pictures(spark: SparkSession, suspects: Sequence[tuple[str, int]]) -> list[Picture]:
    """All pictures of the session's tables; `suspects`: partitions that had findings, which come first."""
    made = [_windows(spark)]
    for topic, partition in _partitions(spark, suspects):
        made.append(_timeline(spark, topic, partition))
    return [picture for picture in made if picture is not None]


def _partitions(spark: SparkSession, suspects: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """The partitions with transactions: those with findings, then those with most of them."""
    rows = spark.sql("""
      SELECT topic, partition, count(*) AS transactions FROM transactions
      WHERE first_offset IS NOT NULL GROUP BY ALL ORDER BY transactions DESC, topic, partition LIMIT 1000
    """).toArrow()
    known = [(row["topic"], row["partition"]) for row in rows.to_pylist()]
    own = [each for each in known if not each[0].startswith("__")]
    first = [each for each in suspects if each in known]
    return list(dict.fromkeys([*first, *own]))[:MOST_PARTITIONS]


def _windows(spark: SparkSession) -> Picture | None:
    """Records per window of time, topic by topic."""
    span = spark.sql("""
      SELECT min(max_timestamp_ms) AS low, max(max_timestamp_ms) AS high FROM batches
      WHERE damage IS NULL AND max_timestamp_ms BETWEEN 0 AND now_ms() AND topic NOT LIKE '\\\\_\\\\_%'
    """).toArrow().to_pylist()[0]
    if span["low"] is None:
        return None
    width = _width(span["high"] - span["low"])
    rows = spark.sql(f"""
      SELECT topic, (max_timestamp_ms - {span["low"]}) DIV {width} AS window, sum(record_count) AS records FROM batches
      WHERE damage IS NULL AND NOT is_control AND max_timestamp_ms BETWEEN {span["low"]} AND {span["high"]}
        AND topic NOT LIKE '\\\\_\\\\_%'
      GROUP BY ALL
    """).toArrow().to_pylist()  # noqa: S608 - numbers of ours
    totals: dict[str, int] = {}
    for row in rows:
        totals[row["topic"]] = totals.get(row["topic"], 0) + row["records"]
    named = sorted(totals, key=lambda topic: -totals[topic])[:MOST_TOPICS]
    figure, axes = _figure(2.6)
    bottoms = [0] * (WINDOWS + 1)
    times = [_when(span["low"] + index * width) for index in range(WINDOWS + 1)]
    shades = mpl.color_sequences["tab10"]
    for index, topic in enumerate([*named, None]):
        counts = [0] * (WINDOWS + 1)
        for row in rows:
            if row["topic"] == topic or (topic is None and row["topic"] not in named):
                counts[row["window"]] += row["records"]
        if any(counts):
            axes.bar(
                times, counts, width / _DAY_MS, bottom=bottoms, align="edge", label=topic or "others",
                color=shades[index] if topic else _PLAIN, linewidth=0,
            )  # fmt: skip
            bottoms = [low + count for low, count in zip(bottoms, counts, strict=True)]
    axes.set_ylabel(f"records per {_span(width)}")
    _dates(axes)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize="small")
    words = f"{sum(totals.values())} records of {len(totals)} topics, counted per {_span(width)} of their times."
    return Picture("How much was written when", words, _svg(figure))


def _timeline(spark: SparkSession, topic: str, partition: int) -> Picture | None:
    """The transactions of a partition over time, and how far its last stable offset lagged behind its end."""
    name = topic.replace("'", "''")
    where = f"topic = '{name}' AND partition = {partition}"
    told = spark.sql(f"""
      SELECT producer_id, epoch, first_offset, last_offset, marker_offset, marker, first_ms, marker_ms FROM transactions
      WHERE {where} AND first_offset IS NOT NULL ORDER BY first_offset DESC LIMIT {MOST_TRANSACTIONS}
    """).toArrow().to_pylist()[::-1]  # noqa: S608 - a topic's name holds no quotes, and they are doubled
    batches = spark.sql(f"""
      SELECT base_offset, last_offset, max_timestamp_ms FROM batches
      WHERE {where} AND damage IS NULL AND base_offset >= {told[0]["first_offset"] if told else 0}
      ORDER BY segment_base DESC, position DESC LIMIT {MOST_BATCHES}
    """).toArrow().to_pylist()[::-1]  # noqa: S608 - as above
    if not told or not batches:
        return None
    end_ms = max(row["max_timestamp_ms"] for row in batches)
    producers = list(dict.fromkeys(row["producer_id"] for row in told))
    figure, (lanes, offsets) = _two_figures(len(producers))
    for row in told:
        kind = row["marker"] or "open"
        stop = row["marker_ms"] if row["marker"] else end_ms
        begin = _when(row["first_ms"])
        lanes.barh(
            producers.index(row["producer_id"]), max(_when(stop) - begin, 1e-9), left=begin, height=0.7,
            color=COLOURS[kind], hatch=_HATCHES[kind], edgecolor="white", linewidth=0.4,
        )  # fmt: skip
    lanes.set_yticks(range(len(producers)), [str(each) for each in producers])
    lanes.set_ylabel("producer")
    times = [_when(row["max_timestamp_ms"]) for row in batches]
    ends = [row["last_offset"] + 1 for row in batches]
    held = stable(batches, told)
    offsets.fill_between(times, held, ends, step="post", color="#f3d9d5", linewidth=0)
    offsets.step(times, ends, where="post", color=_PLAIN, label="log end", linewidth=1)
    offsets.step(times, held, where="post", color="black", label="last stable offset", linewidth=1.4)
    offsets.set_ylabel("offset")
    offsets.legend(loc="upper left", frameon=False, fontsize="small")
    _dates(offsets)
    return Picture(f"{topic}-{partition}", _words(told), _svg(figure))


def stable(batches: Sequence[dict[str, Any]], told: Sequence[dict[str, Any]]) -> list[int]:
    """The last stable offset after each batch: the first offset of a transaction that was open then, else the end."""
    found = []
    for row in batches:
        end = row["last_offset"] + 1
        pinned = [
            each["first_offset"]
            for each in told
            if each["first_offset"] < end and (each["marker_offset"] is None or each["marker_offset"] >= end)
        ]
        found.append(min(pinned, default=end))
    return found


def _words(told: Sequence[dict[str, Any]]) -> str:
    counts = {kind: sum((row["marker"] or "open") == kind for row in told) for kind in COLOURS}
    text = f"{counts['COMMIT']} transactions committed, {counts['ABORT']} aborted (hatched), {counts['open']} not ended"
    newest = f"; the newest {MOST_TRANSACTIONS} are shown" if len(told) == MOST_TRANSACTIONS else ""
    return text + newest + ". Between the two lines below lies what consumers that read committed cannot see."


def _width(span_ms: int) -> int:
    """A round length of windows of which `WINDOWS` are enough."""
    least = span_ms // WINDOWS + 1
    rounded = (unit * factor for unit in (1, 1000, 60_000, 3_600_000, _DAY) for factor in (1, 2, 5, 10, 15, 30))
    return min((width for width in rounded if width >= least), default=-(-least // _DAY) * _DAY)


def _when(at_ms: int) -> float:
    return at_ms / _DAY_MS


def _span(width_ms: int) -> str:
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if width_ms >= size:
            return f"{width_ms / size:.3g} {unit}"
    return f"{width_ms} ms"


def _figure(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(10, height), layout="constrained")
    axes = figure.add_subplot()
    _plain(axes)
    return figure, axes


def _two_figures(producers: int) -> tuple[Figure, tuple[Axes, Axes]]:
    height = min(0.3 + 0.22 * producers, 3.5)
    figure = Figure(figsize=(10, height + 2.2), layout="constrained")
    lanes, offsets = figure.subplots(2, 1, sharex=True, height_ratios=(height, 2))
    _plain(lanes)
    _plain(offsets)
    return figure, (lanes, offsets)


def _plain(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize="small")


def _dates(axes: Axes) -> None:
    locator = AutoDateLocator()  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def _svg(figure: Figure) -> str:
    """The drawing itself, texts as texts, without the file's head."""
    out = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "understudy", "hatch.linewidth": 0.6}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    return re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', "", text[text.index("<svg") :], count=1)


