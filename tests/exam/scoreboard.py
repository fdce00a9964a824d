"""docs/scoreboard.md from the JSON of exams.

    understudy exam --format json --out run.json -- $(python -m tests.exam.libraries franz-go)
    python -m tests.exam.scoreboard [--add] franz-go.json franz-go.2.json ...

A run replaces what is recorded in `recorded.json` of its library and the scenarios that it has played; with `--add`,
it counts beside that, where the library's version is the same. Scenarios whose verdicts differ from one run to another
are marked. With `--on-kafka`, the runs are those of `python -m tests.exam.real`. Without arguments, the page is written
again from what is recorded.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.clients.targets import ROOT
from tests.exam.findings import NOTES
from tests.exam.libraries import LIBRARIES
from understudy.exam import scenarios as _all  # noqa: F401 - registers them
from understudy.exam.runner import JOBS
from understudy.exam.scenario import SCENARIOS

RECORDED: Final = Path(__file__).with_name("recorded.json")
ON_KAFKA: Final = Path(__file__).with_name("recorded_on_kafka.json")
REFERENCE: Final = "java-4.4.0"
PAGE: Final = ROOT / "docs" / "scoreboard.md"
VARIED: Final = "varied"
VERDICTS: Final = ("pass", "fail", "non-strict", "flaky", VARIED, "not exercised", "not supported")
SHOWN: Final = ("fail", "non-strict", "flaky", VARIED)
EVIDENCE: Final = 6
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
    found: dict[str, Run] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


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
    made: dict[str, Any] = {
        "verdict": verdicts.pop() if len(verdicts) == 1 else VARIED,
        "runs": len(plays) + (before["runs"] if before else 0),
    }
    if made["verdict"] in SHOWN:
        about = next((each for each in reversed(plays) if each["problem"]), None)
        if about is not None:
            made["problem"] = about["problem"].replace(str(Path.home()), "~")
            made["evidence"] = around_fault(about["evidence"])
        elif before:
            made |= {field: before[field] for field in ("problem", "evidence") if field in before}
    return made


def around_fault(evidence: Sequence[str]) -> list[str]:
    """The requests around the first one that met a fault."""
    met = next((index for index, line in enumerate(evidence) if "by fault" in line), max(len(evidence) - EVIDENCE, 0))
    return [line.strip() for line in evidence[max(met - 2, 0) :][:EVIDENCE]]


def counted(run: Run, verdict: str, area: str = "") -> int:
    """How many scenarios have this verdict, of all or of one area."""
    return sum(each["verdict"] == verdict and name.startswith(area) for name, each in run["results"].items())


def page(found: Mapping[str, Run], on_kafka: Mapping[str, Run]) -> Iterator[str]:
    """The lines of docs/scoreboard.md."""
    yield "<!-- Generated by python -m tests.exam.scoreboard from tests/exam/recorded.json. -->"
    yield ""
    yield "# How client libraries do in the exam"
    yield ""
    yield ABOUT
    yield ""
    yield from totals(found)
    yield ""
    yield "## By area"
    yield ""
    yield "Scenarios that passed, of those that were exercised."
    yield ""
    yield from by_area(found)
    yield ""
    yield "## On a real Kafka"
    yield ""
    yield from of_reference(on_kafka)
    yield ""
    yield from of_others(found, on_kafka)
    yield ""
    yield "## Findings"
    yield ""
    yield "To play one again, run `understudy exam --only ID -- $(python -m tests.exam.libraries LIBRARY)`, or, on"
    yield "Apache Kafka with `understudy proxy` in front of it, `python -m tests.exam.real LIBRARY ID`."
    for name, run in found.items():
        yield from findings(name, run, found, on_kafka)


def totals(found: Mapping[str, Run]) -> Iterator[str]:
    """A line for each library."""
    yield f"| library | version | runs | {' | '.join(VERDICTS)} | time |"
    yield f"|---|---|{'--:|' * (len(VERDICTS) + 2)}"
    for run in found.values():
        cells = " | ".join(str(counted(run, verdict) or "") for verdict in VERDICTS)
        yield f"| {run['library']} | {run['version']} | {runs_of(run)} | {cells} | {shown_time(run)} |"
    missing = {name: sum(each not in run["results"] for each in SCENARIOS) for name, run in found.items()}
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


def by_area(found: Mapping[str, Run]) -> Iterator[str]:
    """A line for each library, a column for each area."""
    areas = list(dict.fromkeys(name.partition("/")[0] for run in found.values() for name in run["results"]))
    yield f"| library | {' | '.join(areas)} |"
    yield f"|---|{'--:|' * len(areas)}"
    for run in found.values():
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
    others = [f"{counted(run, verdict)} {verdict}" for verdict in VERDICTS if counted(run, verdict)]
    yield f"{run['library']} {run['version']} on Apache Kafka {run['kafka']}, behind `understudy proxy`: of"
    yield f"{len(SCENARIOS)} scenarios, {len(run['results'])} were played: {', '.join(others)}."
    yield ""
    for name, each in run["results"].items():
        if each["verdict"] != "pass":
            yield f"* **{name}** ({each['verdict']}): {cell(each.get('problem') or SCENARIOS[name].title)}."


def of_others(found: Mapping[str, Run], on_kafka: Mapping[str, Run]) -> Iterator[str]:
    """Findings that were looked for on Kafka, each with the verdict on its own client."""
    yield "Findings of other libraries that were also played on Apache Kafka:"
    yield ""
    yield "| library | scenario | here | on Apache Kafka | the Java client |"
    yield "|---|---|---|---|---|"
    for name, run in on_kafka.items():
        for key, each in run["results"].items() if name != REFERENCE else ():
            here, own = (verdict_of(found, side, key) for side in (name, REFERENCE))
            there = f"{each['verdict']}, {run['kafka']}"
            yield f"| {run['library']} {run['version']} | {key} | {here} | {there} | {own} |"


def verdict_of(found: Mapping[str, Run], name: str, key: str) -> str:
    """What is recorded of a library and a scenario."""
    return str(found.get(name, {"results": {}})["results"].get(key, {"verdict": "not played"})["verdict"])


def elsewhere(key: str, name: str, found: Mapping[str, Run], on_kafka: Mapping[str, Run]) -> str:
    """How a finding is judged on Apache Kafka, and how Kafka's own client does."""
    release = on_kafka.get(name, {}).get("kafka", "")
    text = f"On Apache Kafka{release and ' '}{release}: {verdict_of(on_kafka, name, key)}."
    return text if name == REFERENCE else f"{text} The Java client here: {verdict_of(found, REFERENCE, key)}."


def findings(name: str, run: Run, found: Mapping[str, Run], on_kafka: Mapping[str, Run]) -> Iterator[str]:
    """What one library did in the scenarios that it does not pass, the broken MUSTs first."""
    shown = [(key, each) for key, each in run["results"].items() if each["verdict"] in SHOWN and key in SCENARIOS]
    shown.sort(key=lambda pair: SHOWN.index(pair[1]["verdict"]))
    yield ""
    yield f"### {run['library']} {run['version']}"
    yield ""
    if not shown:
        yield "None."
    noted: dict[str, str] = {}
    for key, each in shown:
        scenario = SCENARIOS[key]
        yield f"* **{key}** ({each['verdict']}): {scenario.title}. Found: {cell(each['problem'])}."
        if note := NOTES.get((name, key)):
            first = noted.setdefault(note, key)
            yield f"  {note}" if first == key else f"  As for `{first}`."
        if each["verdict"] == "fail":
            yield f"  Expected: {scenario.correct} At stake: {scenario.loss} Rule: {scenario.rule}."
            yield f"  {elsewhere(key, name, found, on_kafka)}"
            yield ""
            yield "  ```"
            yield from (f"  {line}" for line in each["evidence"])
            yield "  ```"


def cell(text: str) -> str:
    """A message of a library in one line, without what Markdown would take for its own."""
    line = " ".join(text.split()).rstrip(".")
    line = line if len(line) <= 220 else line[:220] + "..."
    return line.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def library_of(path: Path) -> str:
    """The library whose run a file has: `franz-go.json`, or `franz-go.2.json` for a second one."""
    return path.stem if path.stem in LIBRARIES else path.stem.rsplit(".", 1)[0]


def main() -> None:
    """Record the runs that are named, and write the page."""
    arguments = sys.argv[1:]
    file = ON_KAFKA if "--on-kafka" in arguments else RECORDED
    found = recorded(file)
    given: dict[str, list[Run]] = {}
    add = "--add" in arguments
    for path in (Path(each) for each in arguments if not each.startswith("--")):
        given.setdefault(library_of(path), []).append(json.loads(path.read_text(encoding="utf-8")))
    found |= {name: kept(runs, found.get(name), add=add) for name, runs in given.items()}
    found = dict(sorted(found.items(), key=lambda pair: pair[1]["library"].lower()))
    file.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text("\n".join(page(recorded(), recorded(ON_KAFKA))) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
