"""The ledger of fresh seeds: how many were played, on which commit, what they found, and what became of it.

    understudy simulate --seeds 100 --kinds all | python -m tests.simulator.ledger --kinds all --build sources
    python -m tests.simulator.ledger --add < LINES

The first prints the entry of a run from its output, ready to add; the second adds such lines to `seeds.jsonl` and
writes the sentence about the rate on the simulator's page again. Each finding notes what became of it: edit that by
hand, and run `--add` without lines.

An entry is one line of JSON: the commit, the build (`compiled` or `sources`), the kinds (`all`, or `by seed` for those
that each seed chooses), the number of seeds, the virtual minutes with faults, and the findings.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("seeds.jsonl")
PAGE = ROOT / "docs" / "simulator.md"
ALL, BY_SEED = "all", "by seed"
GOAL = 20_000
OPEN = "open"
"""What became of a finding that has not been examined."""
_RUN = re.compile(r"seed (\d+): (ok|BROKEN), ")
_BROKEN = re.compile(r"  broken: (.*)")
_SENTENCE = re.compile(r"^Of [\d,]+ fresh seeds in the ledger.*$", re.MULTILINE)


@dataclass(frozen=True)
class Finding:
    """A seed that broke a promise, the first one that it broke, and what became of it."""

    seed: int
    promise: str
    became: str = OPEN


@dataclass(frozen=True)
class Entry:
    """Fresh seeds of one sort that were played on one commit."""

    commit: str
    build: str
    kinds: str
    seeds: int
    minutes: float
    findings: Sequence[Finding] = field(default_factory=tuple)

    @property
    def line(self) -> str:
        """The entry as a line of the ledger."""
        return json.dumps(asdict(self), ensure_ascii=False)


def read(lines: Iterable[str]) -> list[Entry]:
    """Return the entries of these lines."""
    values = [json.loads(line) for line in lines if line.strip()]
    return [Entry(**{**each, "findings": [Finding(**one) for one in each["findings"]]}) for each in values]


def entry_of(output: Iterable[str], of_commit: str, build: str, kinds: str, minutes: float) -> Entry:
    """Return the entry of a run of `understudy simulate`, from what it printed."""
    seeds, findings = list[int](), dict[int, str]()
    for line in output:
        if match := _RUN.match(line):
            seeds.append(int(match[1]))
            if match[2] == "BROKEN":
                findings[seeds[-1]] = ""
        elif seeds and (match := _BROKEN.match(line)):
            findings[seeds[-1]] = findings[seeds[-1]] or match[1]
    return Entry(of_commit, build, kinds, len(seeds), minutes, [Finding(*each) for each in findings.items()])


def commit() -> str:
    """Return the short id of the commit that is checked out."""
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def since_last_finding(entries: Iterable[Entry]) -> Mapping[str, int]:
    """Return the seeds of each sort since the last entry with findings."""
    counts = {ALL: 0, BY_SEED: 0}
    for each in entries:
        if each.findings:
            counts = dict.fromkeys(counts, 0)
        else:
            counts[each.kinds] += each.seeds
    return counts


def sentence(entries: Sequence[Entry]) -> str:
    """Return the sentence on the rate for the page."""
    total, broken = sum(each.seeds for each in entries), sum(len(each.findings) for each in entries)
    counts = since_last_finding(entries)
    return (
        f"Of {total:,} fresh seeds in the ledger, {broken} broke a promise. Since the last of them, "
        f"{sum(counts.values()):,} of {GOAL:,} have been played: {counts[ALL]:,} with all kinds and "
        f"{counts[BY_SEED]:,} with those that the seed chooses."
    )


def add(lines: Iterable[str]) -> None:
    """Add entries to the ledger, and write the page's sentence again."""
    entries = [*read(FILE.read_text(encoding="utf-8").splitlines()), *read(lines)]
    FILE.write_text("".join(f"{each.line}\n" for each in entries), encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_SENTENCE.sub(sentence(entries), page), encoding="utf-8")


def main() -> None:
    """Read stdin; print its entry, or add its lines."""
    parser = argparse.ArgumentParser(description="The ledger of fresh seeds of the simulator.")
    parser.add_argument("--add", action="store_true", help="add the lines of stdin to the ledger and to the page")
    parser.add_argument("--kinds", choices=[ALL, BY_SEED], default=BY_SEED, help="the kinds of the runs on stdin")
    parser.add_argument(
        "--build", choices=["compiled", "sources"], default="sources", help="the build that they ran on"
    )
    parser.add_argument("--minutes", type=float, default=0.5, help="their virtual minutes with faults")
    options = parser.parse_args()
    if options.add:
        add(sys.stdin)
    else:
        print(entry_of(sys.stdin, commit(), options.build, options.kinds, options.minutes).line)  # noqa: T201


if __name__ == "__main__":
    main()
