"""Reports of the results as Markdown and JSON."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.row import BUILDS, PEERS, Figure, Goal, Row
from benchmarks.runner import Results
from benchmarks.targets import KINDS

BEGIN, BEGIN_PIPELINE, END = (
    "<!-- made by make bench -->",
    "<!-- made by python -m benchmarks.pipeline -->",
    "<!-- end -->",
)


def _number(value: float) -> str:
    """Format a number with three significant digits."""
    if value >= 1_000_000:
        return f"{value / 1_000_000:.2f} M"
    if value >= 10_000:
        return f"{value / 1000:.0f} k"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def _cell(results: Results, figure: str, target: str) -> str:
    """Format the median."""
    middle = results.median(figure, target)
    return "-" if middle is None else _number(middle)


def _spread(results: Results, figure: str, targets: Iterable[str]) -> str:
    """Format the largest distance between two rounds of one target, relative to its median."""
    rounds = ((name, results.rounds[figure].get(name, ())) for name in targets)
    spreads = [
        (max(values) - min(values)) / middle
        for name, values in rounds
        if len(values) > 1 and (middle := results.median(figure, name))
    ]
    return f"{max(spreads) * 100:.0f} %" if spreads else "-"


def better_peer(results: Results, figure: Figure) -> float | None:
    """Return the better figure of Kafka and kfake."""
    values = [value for peer in PEERS if (value := results.median(figure.name, peer)) is not None]
    if not values:
        return None
    return max(values) if figure.better == "higher" else min(values)


def verdict(results: Results, figure: Figure, build: str = "understudy") -> bool | None:
    """Return whether a build meets the goal; None without a goal or without the figures to compare with."""
    goal = figure.goal
    mine = results.median(figure.name, build)
    if goal is None or mine is None:
        return None
    checks = [_holds(figure, mine, bound) for bound in _bounds(results, figure, goal)]
    for of, most in goal.most.items():
        target = build if of == "understudy" else of
        value = results.median(figure.name, target)
        checks.append(None if value is None else value <= most)
    return None if None in checks else all(checks)


def _bounds(results: Results, figure: Figure, goal: Goal) -> Iterable[float | None]:
    factors = (
        (goal.of_better, better_peer(results, figure)),
        (goal.of_kafka, results.median(figure.name, "kafka")),
        (goal.of_kfake, results.median(figure.name, "kfake")),
        (goal.of_limit, results.median(figure.name, "limit")),
    )
    for factor, theirs in factors:
        if factor is not None:
            yield None if theirs is None else theirs * factor


def _holds(figure: Figure, mine: float, bound: float | None) -> bool | None:
    if bound is None:
        return None
    return mine >= bound if figure.better == "higher" else mine <= bound


def _ratios(results: Results, figure: Figure, other: float | None) -> str:
    """Format the ratios of the builds that were measured to another figure."""
    mine = [results.median(figure.name, build) for build in BUILDS]
    return ", ".join(f"{each / other:.2f}" for each in mine if each is not None and other) or "-"


def _met(results: Results, figure: Figure) -> str:
    """Name the builds that meet the goal."""
    verdicts = [verdict(results, figure, build) for build in BUILDS]
    texts = {(True, False): "met, not compiled", (False, True): "met when compiled"}
    met, met_compiled = verdicts
    known = met if met is not None else met_compiled
    return texts.get((met, met_compiled), {True: "met", False: "missed", None: ""}[known])  # type: ignore[arg-type]  # None is not a key


def _table(results: Results, figures: Iterable[Figure], targets: Iterable[str]) -> list[str]:
    targets = list(targets)
    titles = [KINDS[name].title for name in targets]
    lines = [
        "| " + " | ".join(["", *titles, "spread", "to the better peer", "goal", ""]) + " |",
        "|---" + "|---:" * (len(titles) + 2) + "|---|---|",
    ]
    for figure in figures:
        if figure.name not in results.rounds:
            continue
        sign = ">= " if figure.better == "higher" else "<= "
        cells = [
            f"{figure.title}, {figure.unit}",
            *(_cell(results, figure.name, name) for name in targets),
            _spread(results, figure.name, targets),
            _ratios(results, figure, better_peer(results, figure)),
            sign + str(figure.goal) if figure.goal else "",
            _met(results, figure),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


_PICTURES = {"benchmarks-peers.svg": "How many times better than the better peer, row by row"}


def markdown(
    results: Results,
    rows: Iterable[Row],
    machine: Mapping[str, str],
    targets: Iterable[str],
    pictures: Iterable[str] = (),
) -> str:
    """Return the part of docs/inside/benchmarks.md that a run writes."""
    wire = [figure for row in rows for figure in row.figures]
    lines = [BEGIN, "", "| the machine | |", "|---|---|", *(f"| {name} | {value} |" for name, value in machine.items())]
    main, costs = [f for f in wire if not f.name.endswith("_cpu")], [f for f in wire if f.name.endswith("_cpu")]
    for title, table in (
        ("Beside the peers", _table(results, main, targets)),
        ("What a record costs the server", _table(results, costs, targets)),
    ):
        if len(table) > 2:
            lines += ["", f"### {title}", "", *table]
    for name in pictures:
        lines += ["", f"![{_PICTURES.get(name, name)}]({name})"]
    if results.failures:
        lines += ["", "### Not measured", "", *(f"* {_clean(text)}" for text in results.failures)]
    return "\n".join([*lines, "", END])


def _clean(text: str) -> str:
    """Shorten a text to one line, without paths of this machine."""
    return re.sub(r"(?<![\w.])/[\w./-]+", "...", text.replace("\n", " "))[:300]


def write_page(page: Path, generated: str) -> None:
    """Replace the generated part of a page that begins with the same line; the text around it is kept."""
    text = page.read_text()
    before, _, rest = text.partition(generated.partition("\n")[0])
    _, _, after = rest.partition(END)
    page.write_text(before + generated + after)


def as_json(results: Results, rows: Iterable[Row], machine: Mapping[str, str]) -> dict[str, object]:
    """Return all results: rounds of each figure, medians, verdicts, failures."""
    figures = {figure.name: figure for row in rows for figure in row.figures}
    return {
        "machine": dict(machine),
        "figures": {
            name: {
                "title": figures[name].title,
                "unit": figures[name].unit,
                "better": figures[name].better,
                "goal": str(figures[name].goal) if figures[name].goal else None,
                "met": {build: verdict(results, figures[name], build) for build in BUILDS},
                "medians": {target: results.median(name, target) for target in targets},
                "rounds": {target: list(values) for target, values in targets.items()},
            }
            for name, targets in results.rounds.items()
            if name in figures
        },
        "failures": results.failures,
    }
