"""The tables of docs/inside/rows.md, made of what the last runs on both clusters kept beside this file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from broker.handlers import APIS
from protocol.api_errors import ERRORS_OF
from tests.differential import kinds, rows

FOLDER = Path(__file__).parent


def kept(name: str) -> Any:
    """What a run kept."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def rows_table() -> str:
    """Counts, and the rows that are not the same on both."""
    return rows.table(rows.recorded())


def mistakes_table() -> str:
    """How many mistakes were noticed, by what, and those that were noticed by nothing."""
    mistakes = kept("mistakes.json")
    by_rows = sum(bool(by["rows"]) for by in mistakes.values())
    by_history = sum(bool(by["history"]) for by in mistakes.values())
    by_both = sum(bool(by["rows"] and by["history"]) for by in mistakes.values())
    noticed = (
        f"rows that were run on both noticed {by_rows}, histories {by_history}, and {by_both} were noticed by both"
    )
    lines = [f"{len(mistakes)} mistakes: {noticed}. Noticed by neither:", ""]
    lines += [f"* {mistake}: {by['why']}" for mistake, by in mistakes.items() if not by["rows"] and not by["history"]]
    return "\n".join(lines)


def histories_table() -> str:
    """How many histories were played on each release, and what differed."""
    state, newer = kept("histories.json"), kept("histories-4.4.json")
    why = (
        "Each of the latter differed after an overloaded machine had made Kafka fence its only broker, which raises "
        "the epochs of its coordinators; on a fresh broker they show none."
    )
    return "\n".join(
        (
            f"* On Kafka 4.3.1: {_played(state)}",
            f"* On Kafka 4.4.0: {_played(newer)} {why}",
            f"* On Kafka 4.4.0 in all: {_in_all(newer)}",
        )
    )


def _in_all(records: Mapping[str, Any]) -> str:
    """The sum of what is kept of Kafka 4.4.0: ``records`` and all kinds, and scripts whose requests overlap."""
    whole = [records, *kinds.kept()["runs"]]
    histories, steps = (sum(run[name] for run in whole) for name in ("histories", "steps"))
    plays = sum(scripts["kafka"] for scripts in kept("scripts-4.4.json"))
    return (
        f"{histories} histories with those of the kinds below, {steps} requests, and {plays} plays of scripts whose "
        f"requests overlap: {histories + plays} plays."
    )


def _played(state: Mapping[str, Any]) -> str:
    seeds = ", ".join(f"{low} to {high - 1}" for low, high in state["seeds"])
    steady = sum(difference["steady"] for difference in state["found"])
    return (
        f"{state['histories']} histories of 40 steps (seeds {seeds}), {state['steps']} requests, {len(state['seen'])} "
        f"combinations of API, version and error code; {steady} differences came each time, "
        f"{len(state['found']) - steady} once."
    )


def kinds_table() -> str:
    """How many histories of each kind were played on Kafka 4.4.0, and what differed."""
    lines = [
        "| kind | runs | with restarts | of three brokers | histories | requests | differences: each time | once |",
        "|---|---|---|---|---|---|---|---|",
    ]
    by_kind: dict[str, list[Mapping[str, Any]]] = {}
    for run in kinds.kept()["runs"]:
        by_kind.setdefault(run["kind"], []).append(run)
    for kind, runs in by_kind.items():
        counts = [len(runs), sum(run["restarts"] > 0 for run in runs), sum(run["brokers"] > 1 for run in runs)]
        counts += [sum(run[name] for run in runs) for name in ("histories", "steps", "steady", "once")]
        lines.append("| " + " | ".join(map(str, (kind, *counts))) + " |")
    return "\n".join(lines)


def triples_table() -> str:
    """How many triples Kafka 4.4.0 answered, the served versions that none of them has, and the error codes of ours."""
    reached: dict[str, dict[str, set[int]]] = {}
    for api, version, code, _ in [*kinds.kept()["seen"], *kept("histories-4.4.json")["seen"]]:
        reached.setdefault(api, {}).setdefault(code, set()).add(version)
    triples = sum(len(versions) for codes in reached.values() for versions in codes.values())
    served = missing = own = unmet = 0
    lines = []
    for api in sorted(APIS, key=lambda each: each.key.title):
        codes = reached.get(api.key.title, {})
        versions = set(range(api.versions[0], api.versions[1] + 1))
        left = versions - set().union(*codes.values())
        served, missing = served + len(versions), missing + len(left)
        own, unmet = own + len(ERRORS_OF[api.key.title]), unmet + len(set(ERRORS_OF[api.key.title]) - codes.keys())
        if left:
            lines.append(f"* {api.key.title}: version {ranges(left)}")
    summary = (
        f"{triples} triples of API, version and error code; {served - missing} of {served} served versions; "
        f"{own - unmet} of {own} pairs of API and error code that Understudy can answer."
    )
    return "\n".join([summary, *(["", "Not reached:", "", *lines] if lines else [])])


def ranges(versions: set[int]) -> str:
    """Such as ``0-3, 5``."""
    parts = []
    for low in sorted(each for each in versions if each - 1 not in versions):
        high = next(each for each in range(low, max(versions) + 1) if each + 1 not in versions)
        parts.append(str(low) if low == high else f"{low}-{high}")
    return ", ".join(parts)
