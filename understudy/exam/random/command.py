"""The options of `understudy exam` for random schedules, and what they do."""

import importlib.util
import re
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from understudy import output_files, server_path
from understudy.exam.driver import Driver
from understudy.exam.random import files, schedule
from understudy.exam.runner import Runner
from understudy.exam.scenario import Scenario

SEEDS: Final = range(1, 21)  # arbitrary: some minutes
PATIENCE: Final = 0.5
"""Half of the usual time for answers: all faults end within two seconds."""


class BadOptions(Exception):
    """Options that contradict each other; the message is one sentence."""


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--random", action="store_true", help="play schedules drawn from seeds instead of the scenarios"
    )
    parser.add_argument("--seeds", metavar="A-B", help="with --random: the seeds (default 1-20)")
    parser.add_argument(
        "--shrink",
        action="store_true",
        help="leave out steps that a finding does not need",
    )
    parser.add_argument(
        "--schedule", metavar="FILE", action="append", default=[],
        help="play the schedule of a file that --save wrote, or all files of a folder (repeatable)",
    )  # fmt: skip
    parser.add_argument("--save", metavar="FOLDER", help="write a file for each finding, which --schedule plays again")


def is_wanted(arguments: Namespace) -> bool:
    """Return whether random schedules are to be played. Raises BadOptions, ScheduleError, OutputFileError."""
    wanted = arguments.random or arguments.schedule
    if not wanted:
        for name in ("seeds", "shrink", "save"):
            if getattr(arguments, name):
                raise BadOptions(f"--{name} needs --random or --schedule")
        return False
    if arguments.schedule and (arguments.random or arguments.seeds):
        raise BadOptions("--schedule plays files, and --random plays seeds: use one of them")
    for name in ("only", "level", "self_test"):
        if getattr(arguments, name):
            raise BadOptions(f"--{name.replace('_', '-')} is an option for scenarios, not for random schedules")
    if importlib.util.find_spec("duckdb") is None:
        raise BadOptions("--random judges with the checks of understudy audit: pip install 'understudy-kafka[duckdb]'")
    seeds_of(arguments.seeds)
    for path in paths_of(arguments.schedule):
        schedule.read(str(path))
    if arguments.save is not None:
        output_files.make_folder(arguments.save, "--save")
    return True


def seeds_of(text: str | None) -> range:
    """Return the seeds. Raises BadOptions."""
    if text is None:
        return SEEDS
    range_match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", text, re.ASCII)
    if range_match is None or int(range_match[2] or range_match[1]) < int(range_match[1]):
        raise BadOptions(f"--seeds needs A-B, such as 1-200, or one seed, not {text}")
    return range(int(range_match[1]), int(range_match[2] or range_match[1]) + 1)


def paths_of(arguments: Sequence[str]) -> list[Path]:
    """Return the files, and those in the folders. Raises BadOptions: a folder has none, or two have the same name."""
    paths: list[Path] = []
    for each in map(Path, arguments):
        inside = sorted(each.glob("*.json")) if each.is_dir() else [each]
        if not inside:
            raise BadOptions(f"--schedule {each}: the folder has no file *.json; --save writes them")
        paths += inside
    names = Counter(path.stem for path in paths)
    if twice := [name for name, count in names.items() if count > 1]:
        raise BadOptions(f"--schedule: two files are called {twice[0]}.json; give one of them another name")
    return paths


def prepared(arguments: Namespace, options: Mapping[str, Any]) -> tuple[Runner, Sequence[Scenario], Callable[[], None]]:
    """Return the runner and what it plays, and a function that writes the files of the findings.

    Raises:
        DriverProblem: the driver cannot be started.
        ScheduleError: a file has no schedule.
        BadOptions: the library supports too little.
    """
    server_path.enter()
    from understudy.exam.random.runner import PLAYS, RandomRunner

    plays = PLAYS if arguments.plays is None else arguments.plays
    runner = RandomRunner(
        lambda: Driver(arguments.driver, patience=PATIENCE), plays=plays, shrinks=arguments.shrink, **options
    )
    library = runner.introduce()
    if arguments.schedule:
        chosen = [
            runner.scenario(schedule.read(str(path)), f"schedule/{path.stem}") for path in paths_of(arguments.schedule)
        ]
    else:
        chosen = runner.seeds(seeds_of(arguments.seeds), library.capabilities)
    if not chosen:
        raise BadOptions("random schedules need a producer and a consumer, which the driver does not list")

    def save() -> None:
        if arguments.save is not None:
            for path in files.save(arguments.save, library.name, runner.findings):
                print(f"wrote {path}: understudy exam --schedule {path} -- DRIVER", file=sys.stderr)

    return runner, chosen, save
