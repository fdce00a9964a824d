"""`understudy simulate --application`: plays many seeds of a program of the user's own, and reports what they find."""

import importlib
import inspect
import os
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from understudy import server_path
from understudy.argparser import refuse
from understudy.found_seed import Player, report
from understudy.seeds import ChildFailed, outcomes
from understudy.simulation import Main, Outcome, options

if TYPE_CHECKING:
    from rich.progress import Progress

PROGRAM = "understudy simulate"
_STORY = 40  # lines: a screen


@dataclass(frozen=True, slots=True)
class Request:
    """The options of the command, as they were given."""

    application: str
    seeds: range
    minutes: float
    brokers: int
    topics: tuple[str, ...]
    faults: str
    jobs: int
    story: int
    data_dir: Path | None
    shrink: bool = True

    def command(self, seed: int, faults: str | None = None) -> str:
        """Return the command that repeats one seed."""
        parts = [PROGRAM, "--application", self.application, "--seed", str(seed), "--minutes", f"{self.minutes:g}"]
        parts += ["--brokers", str(self.brokers)] if self.brokers != 3 else []  # the default
        parts += [part for topic in self.topics for part in ("--topic", topic)]
        chosen = self.faults if faults is None else faults
        parts += ["--faults", chosen] if chosen != "all" else []
        fixed = os.environ.get("PYTHONHASHSEED", "0")
        return " ".join([*([f"PYTHONHASHSEED={fixed}"] if fixed != "0" else []), *parts])


def load(application: str) -> Main:
    """Import MODULE:FUNCTION from the current folder. Refuses what is none."""
    module, colon, name = application.partition(":")
    if not (module and colon and name):
        refuse(PROGRAM, f"--application needs MODULE:FUNCTION, such as tests.simulated:main, not {application}")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        member: Any = importlib.import_module(module)
        for part in name.split("."):
            member = getattr(member, part)
    except Exception as error:  # noqa: BLE001 - the module is the user's
        if not isinstance(error, AttributeError | ModuleNotFoundError):
            traceback.print_exc()
        refuse(PROGRAM, f"--application {application} cannot be imported in {Path.cwd()}: {error}")
    if not inspect.iscoroutinefunction(member):
        refuse(PROGRAM, f"--application needs an async def main(sim), which {application} is not")
    main: Main = member
    return main


def topics_of(arguments: Sequence[str]) -> dict[str, int]:
    """Return the topics NAME[:PARTITIONS] with their partitions."""
    topics = {}
    for each in arguments:
        name, colon, count = each.partition(":")
        # Arbitrary: more than a run of some minutes writes to.
        if not name or (colon and not (count.isdecimal() and 0 < int(count) <= 1_000)):
            refuse(PROGRAM, f"--topic needs NAME or NAME:PARTITIONS, such as orders:3, not {each}")
        topics[name] = int(count) if colon else 1
    return topics


def main(request: Request) -> int:
    """Play all seeds; return 1 if there was a finding, else 0."""
    function = load(request.application)
    with server_path.entered():
        try:
            chosen = options(request.minutes, request.brokers, topics_of(request.topics), request.faults)
        except ValueError as error:
            refuse(PROGRAM, str(error))
        return _Command(request, function, chosen).run()


class _Command:
    def __init__(self, request: Request, function: Main, chosen: Any) -> None:
        self._request, self._function, self._chosen = request, function, chosen
        self._failed: list[Outcome] = []

    def run(self) -> int:
        """Play the seeds, print a report for each finding, and the totals."""
        request, began_s, virtual_s, done = self._request, time.perf_counter(), 0.0, 0
        try:
            with _Bar(len(request.seeds)) as bar:
                for outcome in self._outcomes():
                    done, virtual_s = done + 1, virtual_s + outcome.virtual_s
                    if outcome.findings:
                        bar.hide()
                        self._report(outcome)
                    bar.show(done, len(self._failed))
        except ChildFailed as error:
            refuse(PROGRAM, str(error), 1)
        took_s = time.perf_counter() - began_s
        rate = f"{virtual_s:.0f} virtual s in {took_s:.1f} s"
        print(f"{done} {'seed' if done == 1 else 'seeds'}, {len(self._failed)} with findings; {rate}")
        for each in self._failed[:_STORY]:
            print(f"seed {each.seed}: {request.command(each.seed)}")
        sys.stdout.flush()
        return 1 if self._failed else 0

    def _outcomes(self) -> Iterator[Outcome]:
        """Play the seeds; a single one in this process, so that a debugger works."""
        seeds = self._request.seeds
        if len(seeds) == 1:
            return iter([self._player(seeds[0]).play(seeds[0])])
        return outcomes(lambda seed: self._player(seed).play_apart(seed), seeds, self._request.jobs)

    def _player(self, seed: int) -> Player:
        folder = self._request.data_dir
        chosen = self._chosen if folder is None else replace(self._chosen, data_dir=folder / f"seed-{seed}")
        return Player(self._function, chosen)

    def _report(self, outcome: Outcome) -> None:
        """Report everything about the first seed, and the first finding of the others."""
        self._failed.append(outcome)
        seed, request = outcome.seed, self._request
        if len(self._failed) == 1:
            player = Player(self._function, self._chosen)
            lines = report(
                player, outcome, lambda faults: request.command(seed, faults), _note, request.story or _STORY,
                shrink=request.shrink,
            )  # fmt: skip
        else:
            first, *_ = outcome.findings[0].splitlines()
            lines = [f"seed {seed}: FOUND after {outcome.broken_ms / 1000:.1f} virtual s: {first}"]
        print("\n".join(lines), flush=True)


def _note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class _Bar:
    """A progress bar on a terminal, if there are several seeds; what is printed meanwhile goes to the same places."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._bar: Progress | None = None
        self._began_s = time.perf_counter()

    def __enter__(self) -> Self:
        if self._total > 1 and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("seeds"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[found]} found"),
                TextColumn("{task.fields[rate]:.1f} per s"), TimeRemainingColumn(),
                console=Console(stderr=True), redirect_stdout=False, redirect_stderr=False, transient=True,
            )  # fmt: skip
            self._bar.add_task("seeds", total=self._total, found=0, rate=0.0)
            self._bar.start()
        return self

    def hide(self) -> None:
        """Remove the bar, so that something can be printed."""
        if self._bar is not None:
            self._bar.stop()

    def show(self, done: int, findings: int) -> None:
        """Show the bar with what has been done."""
        if self._bar is not None:
            rate = done / max(time.perf_counter() - self._began_s, 1e-3)  # never by 0
            self._bar.update(self._bar.task_ids[0], completed=done, found=findings, rate=rate)
            self._bar.start()

    def __exit__(self, *_: object) -> None:
        self.hide()
