"""The ledger of the specification's rows: which were asked of a real Kafka and of ours, and what came of it.

``python -m tests.differential.rows`` asks them (some minutes each), keeps the outcomes in ``rows.json`` and draws
``docs/inside/rows.md``. With ``understudy``, ``kafka`` (4.3.1) or ``kafka-4.4`` behind it, of that one alone.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.compact_json import dumps
from tools.old_kafka import fetch
from tools.specification import link

ROOT = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).with_name("rows.json")
SCENARIOS = "tests/scenarios"
RELEASES = {"kafka": "4.3.1", "kafka-4.4": "4.4.0"}
"""The real ones, by their name in the record."""
TARGETS = ("understudy", *RELEASES)
LETTERS = {"passed": "p", "failed": "F", "skipped": "s"}
"""Outcome -> its letter in the record, which has one for each of `TARGETS`."""
NOT_RUN = "."
BOTH, DIFFERS, STEERED, INSIDE, WAITING, MISSING = "both", "differs", "steered", "inside", "waiting", "missing"

CORE, GROUPS, TRANSACTIONS = "core", "groups", "transactions"
ROWS: Mapping[str, Mapping[str, tuple[int, int]]] = {
    TRANSACTIONS: {
        "IPI": (1, 26), "ADD": (1, 13), "OFF": (1, 2), "E1": (1, 7), "E2": (1, 16), "TMO": (1, 5), "EXP": (1, 2),
        "LOAD": (1, 3), "MRK": (1, 10), "DESC": (1, 1), "LIST": (1, 5), "PROD": (1, 1), "FC": (1, 3), "SEQ": (1, 9),
        "DUP": (1, 6), "RET": (1, 3), "SHAPE": (1, 2), "ACK": (1, 2), "VER": (1, 15), "FEN": (1, 1), "LSO": (1, 4),
        "FET": (1, 6), "LO": (1, 3), "REC": (1, 2), "CMP": (1, 1), "GRP": (1, 18), "DSK": (1, 8),
    },
    CORE: {
        "CON": (1, 17), "MET": (1, 10), "TOP": (1, 13), "PAR": (1, 2), "DEL": (1, 3), "ELE": (1, 1), "REA": (1, 1),
        "DTP": (1, 3), "DCL": (1, 1), "LOGD": (1, 1), "CFG": (1, 15), "PRD": (1, 20), "FET": (10, 18), "SES": (1, 8),
        "LST": (1, 5), "EPO": (1, 2), "DRC": (1, 2), "LOG": (1, 16), "SAS": (1, 9), "SCR": (1, 3), "ACL": (1, 8),
        "TOK": (1, 2), "QUO": (1, 5), "TEL": (1, 3),
    },
    GROUPS: {"CLS": (1, 45), "OFF": (1, 23), "KIP848": (1, 46), "SHR": (1, 44), "STR": (1, 17)},
}  # fmt: skip
"""The numbered rows of the specification: by its parts, the first and the last number of each kind."""
WAIT = {
    f"{TRANSACTIONS} E2-16": "a state of Kafka's trunk that was in no release (GAPS.md)",
}
REASONS: Mapping[str, str] = {
    f"{GROUPS} SHR-31": "Kafka 4.4 mended what 4.3 answers, -1 for the whole request; --as-version 4.3 does as 4.3",
}
"""Rows whose tests a real Kafka does not pass, or that no test holds, and why that is so."""

NAMED = re.compile(r"(?<![A-Za-z])([A-Z][A-Z0-9]*)_(\d\d(?:_to_\d\d|(?:_\d\d)*))(?=_|$)")
TEST = re.compile(r"def (test_\w+)")


@dataclass(frozen=True, slots=True)
class Row:
    """A row, its outcome, and the remark on that."""

    part: str
    id: str
    status: str
    kafka: Mapping[str, str]
    """Release -> how many of its tests passed there."""
    understudy: str
    why: str


def ids(part: str | None, test: str) -> list[str]:
    """The rows that a test names, such as ``core PRD-17``; all parts that have a row of that name are searched."""
    named_rows = []
    for kind, numbers in NAMED.findall(test):
        listed = [int(number) for number in re.findall(r"\d\d", numbers)]
        if "_to_" in numbers:
            listed = list(range(listed[0], listed[1] + 1))
        for number in listed:
            for where in [part] if part else ROWS:
                low, high = ROWS[where].get(kind, (1, 0))
                if low <= number <= high:
                    named_rows.append(f"{where} {kind}-{number:02}")
    return named_rows


def part_of(path: str) -> str | None:
    """The part of the specification that a test file covers; None where only the row's name has it."""
    folders = {"transactions": TRANSACTIONS, "transaction": TRANSACTIONS, "groups": GROUPS, "group": GROUPS}
    named = (folders.get(piece) for piece in Path(path).parts)
    return CORE if "/core/" in path else next((part for part in named if part), None)


def inside() -> dict[str, list[str]]:
    """Rows that tests hold within the process: the folders of those tests."""
    folders: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(SCENARIOS):
            for test in TEST.findall(path.read_text(encoding="utf-8")):
                for row in ids(part_of(name), test):
                    folder = path.parent.relative_to(ROOT).as_posix()
                    if folder not in folders.setdefault(row, []):
                        folders[row].append(folder)
    return folders


def outcomes(record: Mapping[str, Mapping[str, Sequence[str]]], target: str) -> dict[str, list[tuple[str, str]]]:
    """Row -> outcome and reason of each of its tests against a target."""
    by_row: dict[str, list[tuple[str, str]]] = {}
    for test, (outcome, why) in record.get(target, {}).items():
        path, _, name = test.partition("::")
        for row in dict.fromkeys(ids(part_of(path), name.partition("[")[0])):
            by_row.setdefault(row, []).append((outcome, why))
    return by_row


def rows(record: Mapping[str, Mapping[str, Sequence[str]]], releases: Sequence[str] = tuple(RELEASES)) -> Iterator[Row]:
    """All rows, in the specification's order; judged by these releases of Kafka."""
    ours, within = outcomes(record, "understudy"), record.get("inside", {})
    theirs = {target: outcomes(record, target) for target in releases}
    for part, kinds in ROWS.items():
        for kind, (low, high) in kinds.items():
            for number in range(low, high + 1):
                name = f"{part} {kind}-{number:02}"
                real = {RELEASES[target]: by_name.get(name, []) for target, by_name in theirs.items()}
                yield row(name, ours.get(name, []), real, within.get(name, ()))


Outcomes = Sequence[tuple[str, str]]


def row(name: str, ours: Outcomes, real: Mapping[str, Outcomes], within: Sequence[str]) -> Row:
    """One row's line."""
    part, number = name.split(" ")
    tested = f"{sum(outcome == 'passed' for outcome, _ in ours)} of {len(ours)}" if ours else "in process"
    played = {release: [outcome for outcome, _ in theirs if outcome != "skipped"] for release, theirs in real.items()}
    passed = {
        release: f"{of_release.count('passed')} of {len(of_release)}" if of_release else "-"
        for release, of_release in played.items()
    }
    every = [each for theirs in real.values() for each in theirs]
    skipped = sorted({why for outcome, why in every if outcome == "skipped"})
    if any("failed" in of_release for of_release in played.values()) or any(outcome == "failed" for outcome, _ in ours):
        return Row(part, number, DIFFERS, passed, tested, REASONS.get(name, "no reason is known"))
    if any(played.values()):
        return Row(part, number, BOTH, passed, tested, f"in part {'; '.join(skipped)}" if skipped else "")
    if every:
        return Row(part, number, STEERED, passed, tested, "; ".join(skipped).removeprefix("steered: "))
    if within:
        return Row(part, number, INSIDE, passed, tested, "")
    if name in WAIT:
        return Row(part, number, WAITING, passed, "-", WAIT[name])
    return Row(part, number, MISSING, passed, "-", REASONS.get(name, "no test names it"))


MEANINGS = {
    BOTH: "pass on both",
    DIFFERS: "differ, with a reason",
    STEERED: "on Understudy alone, steered: no Kafka can be brought there from outside",
    INSIDE: "on Understudy alone, asked of its parts in process",
    WAITING: "wait for what is not there yet",
    MISSING: "no test of its own",
}


def table(record: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    """Counts by release and by part, and a line for each row that is not the same on both."""
    row_lines = list(rows(record))
    by_part = {part: Counter(each.status for each in row_lines if each.part == part) for part in ROWS}
    by_release = {
        release: Counter(each.status for each in rows(record, [target])) for target, release in RELEASES.items()
    }
    total = Counter(each.status for each in row_lines)
    columns = {**{f"Kafka {release}": counted for release, counted in by_release.items()}, **by_part, "all": total}
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for status, meaning in MEANINGS.items():
        lines.append(f"| {meaning} | {' | '.join(str(counted[status]) for counted in columns.values())} |")
    lines += [f"| rows | {' | '.join(str(sum(counted.values())) for counted in columns.values())} |", ""]
    for status in MEANINGS:
        listed = [each for each in row_lines if each.status == status and (status != BOTH or each.why)]
        if listed:
            lines.append(f"* **{status}**: {', '.join(map(_line, listed))}")
    return "\n".join(lines)


def _line(row: Row) -> str:
    linked = f"[{row.part} {row.id}]({link(row.part, row.id)})"
    return f"{linked} ({row.why})" if row.why else linked


def recorded() -> dict[str, dict[str, list[str]]]:
    """What the last run saw: target -> test -> outcome and reason; and `inside`: row -> folders, as they are now."""
    read = json.loads(RECORD.read_text(encoding="utf-8"))
    outcome_of = {letter: outcome for outcome, letter in LETTERS.items()}
    record: dict[str, dict[str, list[str]]] = {target: {} for target in TARGETS}
    for file, tests in read["outcomes"].items():
        for function, variants in tests.items():
            for variant, letters in (variants if isinstance(variants, dict) else {"": variants}).items():
                test = f"{file}::{function}{variant}"
                for target, letter in zip(TARGETS, letters, strict=True):
                    if letter != NOT_RUN:
                        record[target][test] = [outcome_of[letter], read["reasons"].get(f"{target} {test}", "")]
    return {**record, "inside": inside()}


def save(record: Mapping[str, Mapping[str, Sequence[str]]]) -> None:
    """Write what `recorded` reads: a line for each test function, with its variants."""
    outcomes: dict[str, dict[str, dict[str, str]]] = {}
    reasons = {}
    for test in sorted({test for target in TARGETS for test in record[target]}):
        file, _, name = test.partition("::")
        function, bracket, variant = name.partition("[")
        letters = ""
        for target in TARGETS:
            outcome, why = record[target].get(test, ("", ""))
            letters += LETTERS.get(outcome, NOT_RUN)
            if why:
                reasons[f"{target} {test}"] = why
        outcomes.setdefault(file, {}).setdefault(function, {})[bracket + variant] = letters
    lines = {
        file: {function: variants.get("", variants) for function, variants in tests.items()}
        for file, tests in outcomes.items()
    }
    RECORD.write_text(dumps({"reasons": reasons, "outcomes": lines}, depth=3), encoding="utf-8")


def outcomes_of_run(target: str, *arguments: str) -> dict[str, list[str]]:
    """Run the scenarios against a target: test -> outcome and reason."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "outcomes.json"
        env = {**os.environ, "TARGET": "server" if target == "understudy" else "kafka", "ROWS_FILE": str(file)}
        if target == "kafka-4.4":
            env["KAFKA_LIBS"] = str(fetch("4.4"))
        options = ["-q", "-p", "no:cacheprovider", "-m", "not nightly", *arguments]
        command = [sys.executable, "-m", "pytest", *options, SCENARIOS]
        subprocess.run(command, check=False, cwd=ROOT, env=env)
        document: dict[str, list[str]] = json.loads(file.read_text(encoding="utf-8"))
    return document


def main(arguments: Sequence[str]) -> None:
    """Ask and draw; an argument that is no target is an option of pytest (``-kFET_16``), and asks those again."""
    record = recorded()
    further = [each for each in arguments if each not in TARGETS]
    for target in [each for each in arguments if each in TARGETS] or TARGETS:
        record[target] = {**(record.get(target, {}) if further else {}), **outcomes_of_run(target, *further)}
        for real in RELEASES:
            record[real] = {test: came for test, came in record.get(real, {}).items() if test in record["understudy"]}
        save(record)
    subprocess.run([sys.executable, str(ROOT / "tools" / "generate_pages.py")], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
