"""`understudy exam -- DRIVER`: plays the scenarios with a client library and reports verdicts."""

import fnmatch
import importlib.util
import json
import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from control_api.spelling import hint
from understudy import output_files
from understudy.argparser import Parser, refuse
from understudy.errors import UnderstudyError
from understudy.exam import driver_api, report
from understudy.exam.driver import Driver, DriverProblem
from understudy.exam.level import Level
from understudy.exam.random import command as random
from understudy.exam.random.schedule import ScheduleError
from understudy.exam.runner import JOBS, PLAYS, Runner, shard
from understudy.exam.scenario import SCENARIOS, Scenario
from understudy.exam.self_test import self_test
from understudy.exam.verdicts import Result, changes

PROGRAM = "understudy exam"
EPILOG = """\
The driver reads commands as JSON lines on stdin and answers on stdout: docs/exam.md describes them, and --schema
prints their JSON schema. Exit code 0: no scenario failed; 1: some did; 2: invalid command or driver.
"""


def parser() -> Parser:
    """Return the parser of the options."""
    options = Parser(
        prog=PROGRAM,
        description="Examine a Kafka client library: scripted faults, and a verdict with evidence for each scenario.",
        epilog=EPILOG,
    )
    options.add_argument("driver", metavar="DRIVER", nargs="*", help="the command that starts the driver, after --")
    options.add_argument("--list", action="store_true", help="list the scenarios instead of playing them")
    options.add_argument("--schema", action="store_true", help="print the JSON schema of the driver contract")
    options.add_argument("--self-test", action="store_true", help="check the driver itself, without faults")
    options.add_argument(
        "--only", metavar="PATTERN", action="append", default=[],
        help="only scenarios whose id matches, such as 'transactions/*' (repeatable)",
    )  # fmt: skip
    options.add_argument("--level", choices=[level.value for level in Level], help="only scenarios of this level")
    options.add_argument("--shard", metavar="I/N", help="only every N-th scenario, beginning with the I-th")
    options.add_argument(
        "--plays",
        metavar="N",
        type=int,
        help=f"how often a scenario that fails is played in total (default {PLAYS}; 5 of random schedules)",
    )
    options.add_argument(
        "--jobs", metavar="N", type=int,
        help=f"how many scenarios are played at the same time, each on a cluster of its own (default {JOBS})",
    )  # fmt: skip
    options.add_argument("--as-version", metavar="X.Y", help="Kafka release that the cluster emulates")
    options.add_argument("--upstream", metavar="HOST:PORT", help="use a running test cluster instead, such as Kafka")
    options.add_argument(
        "--client-config", metavar="FILE", help="with --upstream: a Kafka client's properties with TLS or SASL"
    )
    options.add_argument("--format", choices=report.FORMATS, default="table", help="output format (default table)")
    options.add_argument("--out", metavar="FILE", help="write the output to this file instead of stdout")
    random.add_options(options)
    options.add_argument("--against", metavar="FILE", help="JSON of an earlier run: list the verdicts that changed")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the process's exit code."""
    arguments = parser().parse_args(argv)
    if arguments.schema:
        print(json.dumps(driver_api.schema(), indent=1))
        return 0
    chosen = selected(arguments.only, arguments.level, arguments.shard)
    if arguments.list:
        width = max(len(case.id) for case in chosen)
        print(*(f"{case.id:{width}}  {case.level.value:6}  {case.title}" for case in chosen), sep="\n")
        return 0
    if not arguments.driver:
        refuse(PROGRAM, "needs the driver's command after --, such as: understudy exam -- ./driver")
    if arguments.plays is not None and arguments.plays < 1:
        refuse(PROGRAM, "--plays needs at least 1")
    if arguments.jobs is not None and arguments.jobs < 1:
        refuse(PROGRAM, "--jobs needs at least 1")
    if arguments.format == "html" and importlib.util.find_spec("jinja2") is None:
        refuse(PROGRAM, "--format html needs Jinja2: pip install 'understudy-kafka[exam]'")
    check_upstream(arguments)
    earlier = read_earlier(arguments.against)
    try:
        is_random = random.is_wanted(arguments)
        if arguments.out is not None:
            output_files.check(arguments.out, "--out")
        return examine(arguments, None if is_random else chosen, earlier)
    except (
        output_files.OutputFileError, DriverProblem, UnderstudyError, TypeError, random.BadOptions, ScheduleError,
    ) as error:  # fmt: skip
        refuse(PROGRAM, str(error))


def examine(arguments: Any, chosen: Sequence[Scenario] | None, earlier: Mapping[str, Any] | None) -> int:
    """Play the scenarios, None: random schedules, and write the report.

    Raises:
        BadOptions, DriverProblem, OutputFileError, ScheduleError, UnderstudyError: it cannot be played or written.
    """
    save = None
    if chosen is None:
        runner, chosen, save = random.prepared(arguments, options_of(arguments))
    else:
        runner = Runner(lambda: Driver(arguments.driver), plays=arguments.plays or PLAYS, **options_of(arguments))
    if arguments.self_test:
        problems = self_test(runner)
        print(*map(report.encodable, problems or ["The driver keeps the contract."]), sep="\n")
        return 1 if problems else 0
    done: list[Result] = []

    def progress(result: Result) -> None:
        done.append(result)
        print(report.progress_line(result, len(done), len(chosen)), file=sys.stderr, flush=True)

    jobs = JOBS if arguments.jobs is None else arguments.jobs
    result = runner.run(chosen, progress, jobs=1 if arguments.upstream else min(jobs, len(chosen)))
    deliver(arguments.out, report.rendered(result, arguments.format), report.heading(result))
    if save is not None:
        save()
    if earlier is not None:
        print(*(changes(earlier, result.results) or ["No verdict has changed."]), sep="\n", file=sys.stderr)
    return 1 if result.failed else 0


def deliver(out: str | None, text: str, heading: str) -> None:
    """Print the report, or write it to the file of --out; if that fails, print it, because it took long to make.

    Raises:
        OutputFileError: the file cannot be written, or belongs to something else by now.
    """
    if out is None:
        print(text, end="")
        return
    try:
        output_files.write(out, text.encode(), "--out")
    except output_files.OutputFileError:
        print(text, end="", flush=True)
        raise
    print(f"understudy exam: {heading}", file=sys.stderr)


def options_of(arguments: Any) -> Mapping[str, Any]:
    """Return the runner's options: for Understudy's own cluster, or for one that is already running."""
    if arguments.upstream is not None:
        from understudy.exam.upstream import opened  # requires confluent-kafka

        return {"opened": partial(opened, arguments.upstream, arguments.client_config)}
    return {} if arguments.as_version is None else {"as_version": arguments.as_version}


def check_upstream(arguments: Any) -> None:
    """Exit with one sentence if options contradict --upstream, or a package for it is not installed."""
    if arguments.upstream is None:
        if arguments.client_config is not None:
            refuse(PROGRAM, "--client-config needs --upstream")
        return
    if arguments.as_version is not None:
        refuse(PROGRAM, "--as-version is an option of Understudy's own cluster, and --upstream is another one")
    if (arguments.jobs or 1) > 1:
        refuse(PROGRAM, "--jobs needs a cluster for each job, and --upstream is one")
    if importlib.util.find_spec("confluent_kafka") is None:
        refuse(PROGRAM, "--upstream needs confluent-kafka: pip install 'understudy-kafka[exam-upstream]'")


def selected(only: Sequence[str], level: str | None, part: str | None) -> Sequence[Scenario]:
    """Return the selected scenarios; exits with one sentence if there are none."""
    for pattern in only:
        if not any(fnmatch.fnmatchcase(name, pattern) for name in SCENARIOS):
            refuse(
                PROGRAM, f"--only {pattern}: no scenario has such an id{hint(pattern, SCENARIOS)}; --list shows them"
            )
    chosen: Sequence[Scenario] = [
        each
        for each in SCENARIOS.values()
        if (not only or any(fnmatch.fnmatchcase(each.id, pattern) for pattern in only))
        and level in {None, each.level.value}
    ]
    if part is not None:
        index, _, count = part.partition("/")
        if re.fullmatch(r"\d{1,9}/\d{1,9}", part, re.ASCII) is None or not 1 <= int(index) <= int(count):
            refuse(PROGRAM, f"--shard needs I/N, such as 1/4, not {part}")
        chosen = shard(chosen, int(index), int(count))
    if not chosen:
        refuse(PROGRAM, "no scenario is left by --only, --level and --shard")
    return chosen


def read_earlier(path: str | None) -> Mapping[str, Any] | None:
    """Return the JSON of an earlier run; exits with one sentence if it is invalid."""
    if path is None:
        return None
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        refuse(PROGRAM, f"--against {path} cannot be read: {error.strerror}")
    except ValueError:
        refuse(PROGRAM, f"--against {path} is not JSON; write it with --format json")
    if not isinstance(document, dict) or document.get("kind") != "exam":
        refuse(PROGRAM, f"--against {path} is not the result of an exam; write it with --format json")
    rows = document.get("results")
    if not isinstance(rows, list) or not all(isinstance(row, dict) and {"id", "verdict"} <= row.keys() for row in rows):
        refuse(PROGRAM, f"--against {path} has no results, each with its id and verdict; write it with --format json")
    return document
