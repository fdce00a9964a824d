"""docs/inside/scoreboard.md, and its sums in docs/clients.md, from the JSON of exams.

    understudy exam --format json --out run.json -- $(python -m tests.exam.libraries franz-go)
    python -m tests.exam.scoreboard [--add] franz-go.json franz-go.2.json ...

A run replaces what is recorded in `recorded.json` of its library and the scenarios that it has played; with `--add`,
it counts beside that, where the library's version is the same. Scenarios whose verdicts differ from one run to another
are marked. With `--on-kafka`, the runs are those of `python -m tests.exam.real`. Without arguments, the page is written
again from what is recorded. `--findings [LIBRARY ...]` prints each scenario that a library did not pass, with the
problem, the rule, and what is known of the cause.

A recorded file has a line for each scenario: a letter for the verdict of each library, in the order of `libraries`,
and the number of its runs; and a line for each problem, with the libraries and scenarios that had it.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.clients.targets import ROOT
from tests.exam.findings import NOTES
from tests.exam.libraries import LIBRARIES
from tools.compact_json import dumps
from tools.marked import replaced
from understudy.exam import scenarios as _all  # noqa: F401 - registers them
from understudy.exam.runner import JOBS
from understudy.exam.scenario import SCENARIOS

RECORDED: Final = Path(__file__).with_name("recorded.json")
ON_KAFKA: Final = Path(__file__).with_name("recorded_on_kafka.json")
REFERENCE: Final = "java-4.4.0"
PAGE: Final = ROOT / "docs" / "inside" / "scoreboard.md"
SUMS: Final = ROOT / "docs" / "clients.md"
MARK: Final = "<!-- made from the recorded runs: python -m tests.exam.scoreboard -->"
VARIED: Final = "varied"
VERDICTS: Final = ("pass", "fail", "non-strict", "flaky", VARIED, "not exercised", "not supported")
SHOWN: Final = ("fail", "non-strict", "flaky", VARIED)
LETTERS: Final = dict(zip(VERDICTS, "pFnfvx-", strict=True))
"""Verdict -> its letter in a recorded file."""
NOT_PLAYED: Final = "."
Run = Mapping[str, Any]
ABOUT: Final = """\
The verdicts of [`understudy exam`](exam.md), which runs scripted scenarios against a cluster whose responses can be
lost, delayed and replaced:

* *fail*: the library broke a rule of level MUST. Each failure was repeated three times.
* *non-strict*: it broke a rule of level SHOULD. Mostly, it gave up and reported that, where a better one retries.
* *varied*: two runs differed.
* *not exercised*: the library never sent the request that was to fail.
* *not supported*: the driver does not offer what the scenario needs.

*Time* is that of the last whole exam, in minutes and seconds, with six scenarios at a time, or the number in brackets.
The runs were made on one machine of two cores, some of them beside other work with load averages up to 50, so what
depends on time may be better elsewhere."""


def recorded(file: Path = RECORDED) -> dict[str, Run]:
    """Library -> what is kept of its runs, in the order of the names."""
    table = json.loads(file.read_text(encoding="utf-8"))
    verdicts = {letter: verdict for verdict, letter in LETTERS.items()}
    problems = {place: problem for problem, places in table["problems"].items() for place in places}
    runs: dict[str, Run] = {name: {**about, "results": {}} for name, about in table["libraries"].items()}
    for key, cells in table["verdicts"].items():
        for (name, run), text in zip(runs.items(), cells.split(" "), strict=True):
            if text != NOT_PLAYED:
                result = {"verdict": verdicts[text[0]], "runs": int(text[1:])}
                problem = problems.get(f"{name} {key}")
                run["results"][key] = result if problem is None else {**result, "problem": problem}
    return runs


def record(runs: Mapping[str, Run], file: Path) -> None:
    """Write what `recorded` reads."""
    about = {name: {field: run[field] for field in run if field != "results"} for name, run in runs.items()}
    rows = {key: [run["results"].get(key) for run in runs.values()] for key in SCENARIOS}
    verdicts = {key: " ".join(map(_recorded_cell, row)) for key, row in rows.items() if any(row)}
    problems: dict[str, list[str]] = {}
    for name, run in runs.items():
        for key, result in run["results"].items():
            if "problem" in result:
                problems.setdefault(result["problem"], []).append(f"{name} {key}")
    table = {"libraries": about, "verdicts": verdicts, "problems": problems}
    file.write_text(dumps(table, depth=2), encoding="utf-8")


def _recorded_cell(result: Mapping[str, Any] | None) -> str:
    return f"{LETTERS[result['verdict']]}{result['runs']}" if result else NOT_PLAYED


def kept(runs: Sequence[Run], earlier: Run | None = None, *, add: bool = False) -> Run:
    """What is kept of the runs of one library: of each scenario the verdict, or that the runs differ.

    `earlier` is what was kept before; of another version of the library, nothing of it is kept.
    """
    last = runs[-1]
    version = last["library"]["version"]
    before: Mapping[str, Any] = earlier["results"] if earlier and earlier["version"] == version else {}
    played: dict[str, list[Mapping[str, Any]]] = {}
    for run in runs:
        for each in run["results"]:
            played.setdefault(each["id"], []).append(each)
    results = {name: before[name] for name in before if name not in played}
    whole = [run for run in runs if len(run["results"]) == len(SCENARIOS)]
    time = {"seconds": round(whole[-1]["seconds"]), "jobs": whole[-1]["jobs"]} if whole else time_of(earlier, version)
    for name, plays in played.items():
        results[name] = entry(plays, before.get(name) if add else None)
    return {
        "library": last["library"]["name"],
        "version": version,
        "kafka": last["kafka"],
        **time,
        "results": {name: results[name] for name in SCENARIOS if name in results},
    }


def time_of(earlier: Run | None, version: str) -> Mapping[str, Any]:
    """How long the last whole exam of this version took, and how many scenarios were played at a time."""
    if earlier is None or earlier["version"] != version:
        return {}
    return {field: earlier[field] for field in ("seconds", "jobs") if field in earlier}


def entry(plays: Sequence[Mapping[str, Any]], before: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """What is kept of one scenario: the verdict, the number of runs, and what was found last."""
    verdicts = {each["verdict"] for each in plays} | ({before["verdict"]} if before else set())
    if verdicts == {"pass", "flaky"}:
        verdicts = {"flaky"}  # a run that passes is one more repetition of what failed at first
    row: dict[str, Any] = {
        "verdict": verdicts.pop() if len(verdicts) == 1 else VARIED,
        "runs": len(plays) + (before["runs"] if before else 0),
    }
    if row["verdict"] in SHOWN:
        about = next((each for each in reversed(plays) if each["problem"]), None)
        if about is not None:
            row["problem"] = about["problem"].replace(str(Path.home()), "~")
        elif before and "problem" in before:
            row["problem"] = before["problem"]
    return row


def counted(run: Run, verdict: str, area: str = "") -> int:
    """How many scenarios have this verdict, of all or of one area."""
    return sum(each["verdict"] == verdict and name.startswith(area) for name, each in run["results"].items())


def page(runs: Mapping[str, Run], on_kafka: Mapping[str, Run]) -> Iterator[str]:
    """The lines of docs/inside/scoreboard.md."""
    yield "<!-- Generated by python -m tests.exam.scoreboard from tests/exam/recorded.json. -->"
    yield ""
    yield "# The exam's scoreboard: areas, and what failed"
    yield ""
    yield "[The verdicts, and their sums by library](../clients.md#how-libraries-do-in-the-exam) are for users."
    yield ""
    yield "## By area"
    yield ""
    yield "Scenarios that passed, of those that were exercised."
    yield ""
    yield from by_area(runs)
    yield ""
    yield "## On a real Kafka"
    yield ""
    yield from of_reference(on_kafka)
    yield ""
    yield "## What failed"
    yield ""
    yield "The broken rules of level MUST, and what varied. To play one again, run"
    yield "`understudy exam --only ID -- $(python -m tests.exam.libraries LIBRARY)`, or, on Apache Kafka with"
    yield "`understudy proxy` in front of it, `python -m tests.exam.real LIBRARY ID`."
    yield "`python -m tests.exam.scoreboard --findings LIBRARY` prints what was found in each scenario that a library"
    yield "does not pass, the rule, and, where it is known, the cause."
    for name, run in runs.items():
        yield from failed(name, run, runs, on_kafka)


def sums(runs: Mapping[str, Run]) -> str:
    """The part of docs/clients.md: the verdicts, and a line for each library."""
    return "\n".join([ABOUT, "", *totals(runs)])


def totals(runs: Mapping[str, Run]) -> Iterator[str]:
    """A line for each library."""
    yield f"| library | version | runs | {' | '.join(VERDICTS)} | time |"
    yield f"|---|---|{'--:|' * (len(VERDICTS) + 2)}"
    for run in runs.values():
        cells = " | ".join(str(counted(run, verdict) or "") for verdict in VERDICTS)
        yield f"| {run['library']} | {run['version']} | {runs_of(run)} | {cells} | {shown_time(run)} |"
    missing = {name: sum(each not in run["results"] for each in SCENARIOS) for name, run in runs.items()}
    if any(missing.values()):
        yield ""
        yield f"There are {len(SCENARIOS)} scenarios; {max(missing.values())} of them are newer than these runs."


def shown_time(run: Run) -> str:
    """Minutes and seconds of a whole exam, with the number of jobs if it is not the usual one; empty: never timed."""
    if "seconds" not in run:
        return ""
    time = f"{run['seconds'] // 60}:{run['seconds'] % 60:02}"
    return time if run["jobs"] == JOBS else f"{time} ({run['jobs']})"


def runs_of(run: Run) -> str:
    """How often each scenario was played in an exam: the least number, and the greatest if it is another one."""
    counts = {each["runs"] for each in run["results"].values()}
    return "-".join(map(str, sorted({min(counts), max(counts)})))


def by_area(runs: Mapping[str, Run]) -> Iterator[str]:
    """A line for each library, a column for each area."""
    areas = list(dict.fromkeys(name.partition("/")[0] for run in runs.values() for name in run["results"]))
    yield f"| library | {' | '.join(areas)} |"
    yield f"|---|{'--:|' * len(areas)}"
    for run in runs.values():
        cells = []
        for area in areas:
            played = sum(counted(run, verdict, area) for verdict in VERDICTS if not verdict.startswith("not"))
            cells.append(f"{counted(run, 'pass', area)}/{played}" if played else "")
        yield f"| {run['library']} {run['version']} | {' | '.join(cells)} |"


def of_reference(on_kafka: Mapping[str, Run]) -> Iterator[str]:
    """How Kafka's own client does on Kafka, behind the proxy."""
    run = on_kafka.get(REFERENCE)
    if run is None:
        yield "Not played yet."
        return
    yield f"{run['library']} {run['version']} on Apache Kafka {run['kafka']}, behind `understudy proxy`: of"
    yield f"{len(SCENARIOS)} scenarios, {len(run['results'])} were played: {counted(run, 'pass')} pass."
    yield ""
    for verdict in VERDICTS[1:]:
        names = [f"`{name}`" for name, each in run["results"].items() if each["verdict"] == verdict]
        if names:
            yield f"* {verdict}: {', '.join(names)}"


def verdict_of(runs: Mapping[str, Run], name: str, key: str) -> str:
    """What is recorded of a library and a scenario."""
    return str(runs.get(name, {"results": {}})["results"].get(key, {"verdict": "not played"})["verdict"])


def elsewhere(key: str, name: str, runs: Mapping[str, Run], on_kafka: Mapping[str, Run]) -> str:
    """How a finding is judged on Apache Kafka, if it was played there, and how Kafka's own client does."""
    there = verdict_of(on_kafka, name, key)
    texts = [f"on Apache Kafka {on_kafka[name]['kafka']}: {there}"] if there != "not played" else []
    if name != REFERENCE:
        texts.append(f"the Java client: {verdict_of(runs, REFERENCE, key)}")
    return "; ".join(texts)


def shown(run: Run, verdicts: Sequence[str]) -> list[tuple[str, Mapping[str, Any]]]:
    """The scenarios of a library that have one of these verdicts, in the order of the verdicts."""
    pairs = [(key, each) for key, each in run["results"].items() if each["verdict"] in verdicts]
    return sorted(pairs, key=lambda pair: verdicts.index(pair[1]["verdict"]))


def failed(name: str, run: Run, runs: Mapping[str, Run], on_kafka: Mapping[str, Run]) -> Iterator[str]:
    """A line for each scenario in which one library broke a rule of level MUST, at least once."""
    results = shown(run, [verdict for verdict in SHOWN if verdict != "non-strict"])
    if results:
        yield ""
        yield f"### {run['library']} {run['version']}"
        yield ""
        for key, each in results:
            remark = elsewhere(key, name, runs, on_kafka)
            yield f"* {key} ({each['verdict']}{'; ' if remark else ''}{remark})"


def findings(name: str, run: Run, runs: Mapping[str, Run], on_kafka: Mapping[str, Run]) -> Iterator[str]:
    """What one library did in the scenarios that it does not pass, the broken MUSTs first, for `--findings`."""
    yield f"{run['library']} {run['version']}"
    noted: dict[str, str] = {}
    for key, each in shown(run, SHOWN):
        scenario = SCENARIOS[key]
        yield f"* {key} ({each['verdict']}): {scenario.title}. Found: {cell(each['problem'])}."
        if note := NOTES.get((name, key)):
            first = noted.setdefault(note, key)
            yield f"  {note}" if first == key else f"  As for {first}."
        if each["verdict"] == "fail":
            yield f"  Expected: {scenario.correct} At stake: {scenario.loss} Rule: {scenario.rule}."
        if remark := elsewhere(key, name, runs, on_kafka):
            yield f"  ({remark})"


def cell(text: str) -> str:
    """A message of a library in one line."""
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= 220 else line[:220] + "..."


def library_of(path: Path) -> str:
    """The library whose run a file has: `franz-go.json`, or `franz-go.2.json` for a second one."""
    return path.stem if path.stem in LIBRARIES else path.stem.rsplit(".", 1)[0]


def main() -> None:
    """Record the runs that are named, and write the page; or print what is recorded of the libraries that are named."""
    arguments = sys.argv[1:]
    names = [each for each in arguments if not each.startswith("--")]
    if "--findings" in arguments:
        runs, on_kafka = recorded(), recorded(ON_KAFKA)
        for name in names or runs:
            sys.stdout.write("\n".join(findings(name, runs[name], runs, on_kafka)) + "\n")
        return
    file = ON_KAFKA if "--on-kafka" in arguments else RECORDED
    runs = recorded(file)
    added: dict[str, list[Run]] = {}
    for path in map(Path, names):
        added.setdefault(library_of(path), []).append(json.loads(path.read_text(encoding="utf-8")))
    runs |= {name: kept(each, runs.get(name), add="--add" in arguments) for name, each in added.items()}
    record(dict(sorted(runs.items(), key=lambda pair: pair[1]["library"].lower())), file)
    PAGE.write_text("\n".join(page(recorded(), recorded(ON_KAFKA))) + "\n", encoding="utf-8")
    SUMS.write_text(replaced(SUMS.read_text(encoding="utf-8"), MARK, sums(recorded())), encoding="utf-8")


if __name__ == "__main__":
    main()
