"""Draws the pictures of a report: transactions and the last stable offset that they held back, and records over time.

Colours: committed blue, aborted orange, open and hanging red; also distinguished by shape.

Sizes without a reason of their own are ours, by eye: inches, points, or shares of a line.
"""

from collections.abc import Sequence
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipeline.audits.engine import Engine
from pipeline.rendering import plots
from pipeline.rendering.plots import BLUE, DAY_MS, ORANGE, PLAIN, RED, WINDOWS, Picture, span_text, when
from pipeline.rendering.text import counted, shortened

MOST_PARTITIONS: Final = 8  # a row of the picture each; more do not fit on a screen
MOST_TRANSACTIONS: Final = 400  # narrower bars than a pixel cannot be seen
MOST_BATCHES: Final = 4000  # an SVG of some hundred KB
MOST_TOPICS: Final = 8  # arbitrary: more shades cannot be distinguished
COLOURS: Final = {"COMMIT": BLUE, "ABORT": ORANGE, "open": RED}
_REST: Final = 0.03
"""Space after the last batch, as a share of the time shown: ours, as wide as a mark."""
_HATCHES: Final = {"COMMIT": "", "ABORT": "////", "open": "xx"}


def pictures(engine: Engine, suspects: Sequence[tuple[str, int]]) -> list[Picture]:
    """Return all pictures. `suspects`: partitions with findings, which come first."""
    drawn = [_windows(engine)]
    for topic, partition in _partitions(engine, suspects):
        drawn.append(_timeline(engine, topic, partition))
    return [picture for picture in drawn if picture is not None]


def _rows(engine: Engine, query: str) -> list[dict[str, Any]]:
    """The rows of a query's result."""
    rows: list[dict[str, Any]] = engine.plain(query).to_pylist()
    return rows


def _partitions(engine: Engine, suspects: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the partitions with transactions: those with findings, then those with the most transactions."""
    query = """
      SELECT topic, partition, count(*) AS transactions FROM transactions
      WHERE first_offset IS NOT NULL GROUP BY ALL ORDER BY transactions DESC, topic, partition LIMIT 1000
    """
    known = [(row["topic"], row["partition"]) for row in _rows(engine, query)]
    own = [each for each in known if not each[0].startswith("__")]
    first = [each for each in suspects if each in known]
    return list(dict.fromkeys([*first, *own]))[:MOST_PARTITIONS]


def _windows(engine: Engine) -> Picture | None:
    """Draw the records per time window, topic by topic."""
    query = """
      SELECT min(max_timestamp_ms) AS low, max(max_timestamp_ms) AS high FROM batches
      WHERE damage IS NULL AND max_timestamp_ms BETWEEN 0 AND now_ms() AND left(topic, 2) <> '__'
    """
    span = _rows(engine, query)[0]
    if span["low"] is None:
        return None
    width = plots.window_ms(span["high"] - span["low"])
    query = f"""
      SELECT topic, CAST(floor((max_timestamp_ms - {span["low"]}) / {width}) AS BIGINT) AS place,
             CAST(sum(record_count) AS BIGINT) AS records
      FROM batches
      WHERE damage IS NULL AND NOT is_control AND max_timestamp_ms BETWEEN {span["low"]} AND {span["high"]}
        AND left(topic, 2) <> '__'
      GROUP BY ALL
    """  # noqa: S608 - numbers of ours
    rows = _rows(engine, query)
    totals: dict[str, int] = {}
    for row in rows:
        totals[row["topic"]] = totals.get(row["topic"], 0) + row["records"]
    named = sorted(totals, key=lambda topic: -totals[topic])[:MOST_TOPICS]
    figure, axes = plots.figure(2.6)
    bottoms = [0] * (WINDOWS + 1)
    times = [when(span["low"] + index * width) for index in range(WINDOWS + 1)]
    shades = mpl.color_sequences["tab10"]
    for index, topic in enumerate([*named, None]):
        counts = [0] * (WINDOWS + 1)
        for row in rows:
            if row["topic"] == topic or (topic is None and row["topic"] not in named):
                counts[row["place"]] += row["records"]
        if any(counts):
            axes.bar(
                times, counts, width / DAY_MS, bottom=bottoms, align="edge", label=topic or "others",
                color=shades[index] if topic else PLAIN, linewidth=0,
            )  # fmt: skip
            bottoms = [low + count for low, count in zip(bottoms, counts, strict=True)]
    axes.set_ylabel(f"records per {span_text(width)}")
    plots.dated(axes)
    plots.beside(axes)
    amounts = f"{counted(sum(totals.values()), 'record')} of {counted(len(totals), 'topic')}"
    caption = f"{amounts}, counted per {span_text(width)} of their timestamps."
    return Picture("Records written over time", caption, figure)


def _timeline(engine: Engine, topic: str, partition: int) -> Picture | None:
    """Draw the transactions of a partition over time, and the distance from its last stable offset to its end."""
    name = topic.replace("'", "''")
    where = f"topic = '{name}' AND partition = {partition}"
    query = f"""
      SELECT producer_id, epoch, first_offset, last_offset, marker_offset, marker, first_ms, marker_ms FROM transactions
      WHERE {where} AND first_offset IS NOT NULL ORDER BY first_offset DESC LIMIT {MOST_TRANSACTIONS}
    """  # noqa: S608 - a topic's name holds no quotes, and they are doubled
    transactions = _rows(engine, query)[::-1]
    query = f"""
      SELECT base_offset, last_offset, max_timestamp_ms FROM batches
      WHERE {where} AND damage IS NULL AND base_offset >= {transactions[0]["first_offset"] if transactions else 0}
      ORDER BY segment_base DESC, position DESC LIMIT {MOST_BATCHES}
    """  # noqa: S608 - as above
    batches = _rows(engine, query)[::-1]
    if not transactions or not batches:
        return None
    times_ms = [row["max_timestamp_ms"] for row in batches]
    end_ms = max(times_ms)
    end_ms += max((end_ms - min(times_ms)) * _REST, 1)  # shows the last state, and a single batch
    names = _transactional_ids(engine)
    for row in transactions:
        row["lane"] = names.get(row["producer_id"], f"producer {row['producer_id']}")
    named = list(dict.fromkeys(row["lane"] for row in transactions))
    figure, (lanes, offsets) = _two_figures(len(named))
    for row in transactions:
        kind = row["marker"] or "open"
        stop = row["marker_ms"] if row["marker"] else end_ms
        begin = when(row["first_ms"])
        lanes.barh(
            named.index(row["lane"]), max(when(stop) - begin, 1e-9), left=begin, height=0.7,
            color=COLOURS.get(kind, PLAIN), hatch=_HATCHES.get(kind), edgecolor="white", linewidth=0.4,
        )  # fmt: skip
    lanes.set_yticks(range(len(named)), [plots.literal(shortened(each)) for each in named])
    times = [when(at_ms) for at_ms in (*times_ms, end_ms)]
    ends = [row["last_offset"] + 1 for row in batches]
    held = stable(batches, transactions)
    ends, held = [*ends, ends[-1]], [*held, held[-1]]
    offsets.fill_between(times, held, ends, step="post", color=RED, alpha=0.2, linewidth=0)
    offsets.step(times, ends, where="post", color=PLAIN, label="log end", linewidth=1)
    offsets.step(times, held, where="post", color="black", label="last stable offset", linewidth=1.4)
    offsets.set_ylabel("offset")
    offsets.legend(loc="upper left", frameon=False, fontsize="small")
    plots.dated(offsets)
    return Picture(f"{topic}-{partition}", _caption(transactions), figure)


def _transactional_ids(engine: Engine) -> dict[int, str]:
    """Return producer id -> transactional id, as far as the transaction log is in the directory."""
    query = """
      SELECT transaction_producer_id AS producer_id, max(transactional_id) AS transactional_id
      FROM state_transactions WHERE transaction_producer_id >= 0 GROUP BY transaction_producer_id
    """
    return {row["producer_id"]: row["transactional_id"] for row in _rows(engine, query)}


def stable(batches: Sequence[dict[str, Any]], transactions: Sequence[dict[str, Any]]) -> list[int]:
    """Return the last stable offset after each batch: the first offset of an open transaction, else the log's end."""
    offsets = []
    for row in batches:
        end = row["last_offset"] + 1
        pinned = [
            each["first_offset"]
            for each in transactions
            if each["first_offset"] < end and (each["marker_offset"] is None or each["marker_offset"] >= end)
        ]
        offsets.append(min(pinned, default=end))
    return offsets


def _caption(transactions: Sequence[dict[str, Any]]) -> str:
    counts = {kind: sum((row["marker"] or "open") == kind for row in transactions) for kind in COLOURS}
    committed = counted(counts["COMMIT"], "transaction")
    text = f"{committed} committed, {counts['ABORT']} aborted (hatched), {counts['open']} not ended"
    newest = f"; the newest {MOST_TRANSACTIONS} are shown" if len(transactions) == MOST_TRANSACTIONS else ""
    return (
        text
        + newest
        + ". Consumers with isolation.level=read_committed cannot see what is between the two lines below."
    )


def _two_figures(producers: int) -> tuple[Figure, tuple[Axes, Axes]]:
    # Inches: 0.22 for a lane, the height of its name; half a page at most.
    height = min(0.3 + 0.22 * producers, 3.5)
    figure = Figure(figsize=(10, height + 2.2), layout="constrained")
    lanes, offsets = figure.subplots(2, 1, sharex=True, height_ratios=(height, 2))
    plots.bare(lanes)
    plots.bare(offsets)
    return figure, (lanes, offsets)
