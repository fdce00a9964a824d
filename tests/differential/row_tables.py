"""The tables of docs/rows.md, made of what the last runs on both clusters kept beside this file."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from broker.handlers import APIS
from protocol.api_errors import ERRORS_OF
from tests.differential import kinds, rows
from tools.specification import SCENARIO, link

FOLDER = Path(__file__).parent


def kept(name: str) -> Any:
    """What a run kept, or nothing."""
    file = FOLDER / name
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def rows_table() -> str:
    """Counts, and a line for each row."""
    return rows.table(rows.recorded())


def _linked(row: str) -> str:
    """A scenario's id, with a link to it; names of other tests as they are."""
    return f"[{row}]({link(rows.TRANSACTIONS, row)})" if re.fullmatch(SCENARIO, row) else row


def mistakes_table() -> str:
    """A line for each mistake."""
    lines = ["| mistake | rows asked of both | history: what differs |", "|---|---|---|"]
    for mistake, by in kept("mistakes.json").items():
        asked = ", ".join(_linked(row) for row in by["rows"]) or "-"
        lines.append(f"| {mistake} | {asked} | {by['history'] or by.get('why') or '-'} |")
    return "\n".join(lines)


def histories_table() -> str:
    """How many were played, and API by version by error code."""
    state = kept("histories.json")
    if not state:
        return "None yet."
    newer = kept("histories-4.4.json")
    steady = sum(found["steady"] for found in state["found"])
    seeds = ", ".join(f"{low} to {high - 1}" for low, high in state["seeds"])
    once = len(state["found"]) - steady
    played = f"{state['histories']} histories of 40 steps (seeds {seeds}): {state['steps']} requests asked of both."
    lines = [
        f"{played} {steady} differences came each time, {once} once. The versions and error codes that were met:",
        "",
        "| API | versions | answers by error code |",
        "|---|---|---|",
    ]
    for api in sorted({api for api, *_ in state["seen"]}):
        mine = [(version, code, times) for name, version, code, times in state["seen"] if name == api]
        codes: Counter[str] = Counter()
        for _, code, times in mine:
            codes[code] += times
        versions = sorted({version for version, _, _ in mine})
        summary = ", ".join(f"{code} {times}" for code, times in codes.most_common())
        lines.append(f"| {api} | {', '.join(map(str, versions))} | {summary} |")
    seeds = f"{newer['seeds'][0][0]} to {newer['seeds'][-1][1] - 1}"
    steady = sum(found["steady"] for found in newer["found"])
    summary = (
        f"On Kafka 4.4.0: {newer['histories']} histories (seeds {seeds}): {newer['steps']} requests asked of both, "
        f"{len(newer['seen'])} combinations of API, version and error code; {steady} differences came each time. "
        f"{len(newer['found'])} histories differed once, after an overloaded machine had made Kafka fence its only "
        "broker, which raises the epochs of its coordinators; on a fresh broker they show none."
    )
    lines += ["", summary]
    return "\n".join(lines)


def kinds_table() -> str:
    """How many histories of each kind were played on Kafka 4.4.0, and what differed."""
    lines = [
        "| kind | brokers | restarts in each | seeds | histories | requests of both | differences: each time | once |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for run in kinds.kept()["runs"]:
        seeds = ", ".join(f"{low} to {high - 1}" for low, high in run["seeds"])
        numbers = (run[name] for name in ("brokers", "restarts"))
        counts = (run[name] for name in ("histories", "steps", "steady", "once"))
        lines.append("| " + " | ".join(map(str, (run["kind"], *numbers, seeds, *counts))) + " |")
    return "\n".join(lines)


def triples_table() -> str:
    """Each API that is served: the versions and error codes that Kafka 4.4.0 answered, and those that are missing."""
    reached: dict[str, dict[str, set[int]]] = {}
    for api, version, code, _ in [*kinds.kept()["seen"], *kept("histories-4.4.json")["seen"]]:
        reached.setdefault(api, {}).setdefault(code, set()).add(version)
    lines = [
        "| API | served | not reached | error codes, with the versions that answered them | ours has, not reached |",
        "|---|---|---|---|---|",
    ]
    triples = missing = 0
    for api in sorted(APIS, key=lambda each: each.key.title):
        codes = reached.get(api.key.title, {})
        served = set(range(api.versions[0], api.versions[1] + 1))
        left = served - set().union(*codes.values())
        own = sorted(set(ERRORS_OF[api.key.title]) - codes.keys())
        answered = ", ".join(f"{code} {ranges(codes[code])}" for code in sorted(codes))
        triples, missing = triples + sum(map(len, codes.values())), missing + len(left)
        cells = api.key.title, ranges(served), ranges(left) or "-", answered or "-", ", ".join(own) or "-"
        lines.append("| " + " | ".join(cells) + " |")
    versions = sum(api.versions[1] - api.versions[0] + 1 for api in APIS)
    summary = f"{triples} triples of API, version and error code; {versions - missing} of {versions} served versions."
    return "\n".join([summary, "", *lines])


def ranges(versions: set[int]) -> str:
    """Such as ``0-3, 5``."""
    parts = []
    for low in sorted(each for each in versions if each - 1 not in versions):
        high = next(each for each in range(low, max(versions) + 1) if each + 1 not in versions)
        parts.append(str(low) if low == high else f"{low}-{high}")
    return ", ".join(parts)
