"""Draws the pictures of a conformance report: API versions used and offered, and response latencies.

Sizes without a reason of their own are ours, by eye: inches, points, or shares of a line.
"""

from typing import Final

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from pipeline.conformance.run import Rows, Run, named
from pipeline.rendering import plots
from pipeline.rendering.plots import BLUE, ORANGE, PLAIN, RED, Picture

MOST_CLIENTS: Final = 4  # as many marks and colours
MOST_APIS: Final = 30  # rows that fit on a page
_MARKS: Final = ("o", "s", "D", "^")
_COLOURS: Final = (BLUE, ORANGE, RED, "#3f9a6b")

Client = tuple[str, str]


def pictures(run: Run) -> list[tuple[str, Picture]]:
    """Return the pictures by name."""
    clients = [
        (row["software"], row["software_version"])
        for row in sorted(run.parts["clients"], key=lambda row: -row["requests"])[:MOST_CLIENTS]
    ]
    drawn = [
        ("versions", _versions(run.parts["versions"], clients)),
        ("latencies", _latencies(run.parts["latencies"], clients)),
    ]
    return [(name, picture) for name, picture in drawn if picture is not None]


def _own(rows: Rows, client: Client) -> Rows:
    return [row for row in rows if (row["software"], row["software_version"]) == client]


def _apis(rows: Rows, clients: list[Client]) -> list[str]:
    """Return the APIs with the most requests of these clients, sorted by API key."""
    counts: dict[str, int] = {}
    for client in clients:
        for row in _own(rows, client):
            counts[row["api"]] = counts.get(row["api"], 0) + row["requests"]
    most = set(sorted(counts, key=lambda api: -counts[api])[:MOST_APIS])
    return [api for api in counts if api in most]


def _versions(rows: Rows, clients: list[Client]) -> Picture | None:
    """Draw a line per API: the offered versions as a bar, the used ones as marks."""
    apis = _apis(rows, clients)
    if not apis:
        return None
    # Inches: the axis and the legend, and a line of small text for each API.
    figure, axes = plots.figure(0.9 + 0.27 * len(apis))
    offered = {row["api"]: (row["offered_from"], row["offered_to"]) for row in rows if row["offered_to"] is not None}
    for place, api in enumerate(apis):
        if api in offered:
            low, high = offered[api]
            label = "offered" if api == next(iter(offered)) else None
            # Bars reach beyond their first and last mark, and leave space between lines.
            axes.barh(place, high - low + 0.6, 0.55, left=low - 0.3, color=PLAIN, alpha=0.35, linewidth=0, label=label)
    for number, client in enumerate(clients):
        points = [
            (version, apis.index(row["api"]))
            for row in _own(rows, client)
            if row["api"] in apis
            for version in row["versions"]
        ]
        _marks(axes, points, number, len(clients), client)
    _lines(axes, apis)
    axes.set_xlabel("version")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    caption = "The bar of an API has the versions that the broker offered; the marks are those that were used."
    return Picture("Versions offered and used", caption, figure)


def _latencies(rows: Rows, clients: list[Client]) -> Picture | None:
    """Draw a line per API: the median latency as a mark, and a line from there to the 99th percentile."""
    apis = _apis(rows, clients)
    if not apis:
        return None
    figure, axes = plots.figure(0.9 + 0.27 * len(apis))
    for number, client in enumerate(clients):
        own = [row for row in _own(rows, client) if row["api"] in apis]
        shift = _shift(number, len(clients))
        for row in own:
            place = apis.index(row["api"]) + shift
            axes.plot([row["p50_ms"], row["p99_ms"]], [place, place], color=_COLOURS[number], linewidth=1.5, alpha=0.7)
        _marks(axes, [(max(row["p50_ms"], 0.001), apis.index(row["api"])) for row in own], number, len(clients), client)
    _lines(axes, apis)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("ms")
    return Picture("Response latencies", "A mark is the median, its line goes to the 99th percentile.", figure)


def _marks(axes: Axes, points: list[tuple[float, int]], number: int, of: int, client: Client) -> None:
    shift = _shift(number, of)
    axes.plot(
        [x for x, _ in points], [y + shift for _, y in points], _MARKS[number], color=_COLOURS[number], markersize=5,
        label=plots.literal(named(*client)),
    )  # fmt: skip


def _shift(number: int, of: int) -> float:
    """Return the vertical offset of a client within a line, so that marks do not hide each other."""
    # A bar has 0.55 of a line: marks stay within it.
    return 0.0 if of == 1 else 0.36 * (number / (of - 1) - 0.5)


def _lines(axes: Axes, apis: list[str]) -> None:
    axes.set_yticks(range(len(apis)), apis)
    axes.set_ylim(len(apis) - 0.4, -0.6)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, fontsize="small")
