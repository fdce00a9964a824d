"""The ledger of fresh seeds: how many were played, on which commit, what they found, and what became of it.

    understudy simulate --seeds 100 --kinds all | python -m tests.simulator.ledger --kinds all --build sources
    python -m tests.simulator.ledger --add < LINES

The first prints the entry of a run from its output, ready to add; the second adds such lines to `seeds.jsonl` and
writes the sentences about the rates on the pages again. Each finding notes what became of it: edit that by
hand, and run `--add` without lines.

An entry is one line of JSON: the commit, the build (`compiled` or `sources`), the kinds (`all`, or `by seed` for those
that each seed chooses, or `copier` for seeds of the right copier in examples/simulation, which are consecutive), the
number of seeds, the virtual minutes with faults, and the findings.
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
RACE_PAGE = ROOT / "docs" / "find-the-race.md"
ALL, BY_SEED, COPIER = "all", "by seed", "copier"
GOAL = 20_000
OPEN = "open"
"""What became of a finding that has not been examined."""
_RUN = re.compile(r"seed (\d+): (ok|BROKEN), ")
_BROKEN = re.compile(r"  broken: (.*)")
_PROGRAM = re.compile(r"(\d+) seeds?, \d+ with findings; ")
_REPORT = re.compile(r"seed (\d+): FOUND after [\d.]+ virtual s(?:: (.*)|, hash .*)")
_FINDING = re.compile(r"  finding: (.*)")
_SENTENCE = re.compile(r"^Of [\d,]+ fresh seeds in the ledger.*$", re.MULTILINE)
_COPIER_SENTENCE = re.compile(r"^Of [\d,]+ seeds of the right copier.*$", re.MULTILINE)


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
    seeds, findings, of_program = list[int](), dict[int, str](), 0
    for line in output:
        if match := _PROGRAM.match(line):
            of_program += int(match[1])
        elif match := _REPORT.match(line):
            findings[int(match[1])] = match[2] or ""
        elif findings and (match := _FINDING.match(line)):
            findings[[*findings][-1]] = findings[[*findings][-1]] or match[1]
        elif match := _RUN.match(line):
            seeds.append(int(match[1]))
            if match[2] == "BROKEN":
                findings[seeds[-1]] = ""
        elif seeds and (match := _BROKEN.match(line)):
            findings[seeds[-1]] = findings[seeds[-1]] or match[1]
    played = of_program or len(seeds)
    return Entry(of_commit, build, kinds, played, minutes, [Finding(*each) for each in findings.items()])


def commit() -> str:
    """Return the short id of the commit that is checked out."""
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def since_last_finding(entries: Iterable[Entry]) -> Mapping[str, int]:
    """Return the seeds of each sort since the last entry with findings; the copier's count by themselves."""
    counts = {ALL: 0, BY_SEED: 0, COPIER: 0}
    for each in entries:
        if each.findings:
            counts |= {COPIER: 0} if each.kinds == COPIER else {ALL: 0, BY_SEED: 0}
        else:
            counts[each.kinds] += each.seeds
    return counts


def sentence(entries: Sequence[Entry]) -> str:
    """Return the sentence on the rate for the simulator's page."""
    own = [each for each in entries if each.kinds != COPIER]
    total, broken = sum(each.seeds for each in own), sum(len(each.findings) for each in own)
    counts = since_last_finding(own)
    return (
        f"Of {total:,} fresh seeds in the ledger, {broken} broke a promise. Since the last of them, "
        f"{counts[ALL] + counts[BY_SEED]:,} of {GOAL:,} have been played: {counts[ALL]:,} with all kinds and "
        f"{counts[BY_SEED]:,} with those that the seed chooses."
    )


def copier_sentence(entries: Sequence[Entry]) -> str:
    """Return the sentence on the right copier for the page about programs of users."""
    own = [each for each in entries if each.kinds == COPIER]
    broken = sum(len(each.findings) for each in own)
    return (
        f"Of {sum(each.seeds for each in own):,} seeds of the right copier with the faults of today, {broken} had a "
        f"finding; the last {since_last_finding(own)[COPIER]:,} had none."
    )


def add(lines: Iterable[str]) -> None:
    """Add entries to the ledger, and write the pages' sentences again."""
    entries = [*read(FILE.read_text(encoding="utf-8").splitlines()), *read(lines)]
    FILE.write_text("".join(f"{each.line}\n" for each in entries), encoding="utf-8")
    for page, pattern, text in (
        (PAGE, _SENTENCE, sentence(entries)),
        (RACE_PAGE, _COPIER_SENTENCE, copier_sentence(entries)),
    ):
        page.write_text(pattern.sub(text, page.read_text(encoding="utf-8")), encoding="utf-8")


def main() -> None:
    """Read stdin; print its entry, or add its lines."""
    parser = argparse.ArgumentParser(description="The ledger of fresh seeds of the simulator.")
    parser.add_argument("--add", action="store_true", help="add the lines of stdin to the ledger and to the page")
    parser.add_argument(
        "--kinds", choices=[ALL, BY_SEED, COPIER], default=BY_SEED, help="the kinds of the runs on stdin"
    )
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
