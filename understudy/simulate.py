"""`understudy simulate`: runs a cluster and its clients on virtual time, with faults, from a seed."""

import argparse
import importlib
import math
import os
import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from understudy import server_path
from understudy.argparser import Parser, refuse
from understudy.fault_kinds import FAULTS

KINDS = ("consumer", "share", "lag", "change", "rules", "hold", "release", "world", "streams", "coordinators")
EPILOG = """\
Each run has three brokers, producers and consumers in one process, without sockets and without waiting; the same seed
gives the same run each time. Broken guarantees are printed with the last events, and with the command that
repeats the run. Exit code 0: all guarantees held, 1: some did not.
"""


def restart_with_fixed_hash(arguments: Sequence[str]) -> None:
    """Start Python again if the order of sets of strings is not fixed, for a simulation of a user's program."""
    wanted = any(each.partition("=")[0] == "--application" for each in arguments)
    if not wanted or os.environ.get("PYTHONHASHSEED", "random") != "random" or getattr(sys, "frozen", False):
        return
    sys.stdout.flush()
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)  # noqa: S606 - itself


def parser() -> Parser:
    """The options."""
    options = Parser(
        prog="understudy simulate",
        description="Run a cluster and its clients on virtual time, with faults, and check Kafka's guarantees.",
        epilog=EPILOG,
    )
    options.add_argument("--seed", metavar="N", type=int, help="first seed (default: a random one, which is printed)")
    options.add_argument("--seeds", metavar="N|A-B", default="1", help="number of runs, or their seeds, as in 1-100")
    options.add_argument("--seconds", metavar="S", type=float, help="start no further run after this many real seconds")
    options.add_argument(
        # Arbitrary: time for some faults, and a trace that can be read.
        "--minutes",
        metavar="M",
        type=float,
        default=0.5,
        help="virtual minutes with faults in each run (default 0.5)",
    )
    options.add_argument("--hours", metavar="H", type=float, help="the same in hours: one long run instead of many")
    options.add_argument(
        "--kinds",
        metavar="KIND,...",
        help=f"what each run adds: any of {', '.join(KINDS)}, or all, or none (default: the seed decides)",
    )
    options.add_argument(
        "--faults", metavar="N,N,...", help="only these faults of the seed's plan, by number; with --application also "
        f"kinds of faults: {', '.join(FAULTS)}, or none (default: all)",
    )  # fmt: skip
    options.add_argument(
        "--shrink",
        action=argparse.BooleanOptionalAction,
        help="leave out faults that a broken promise does not need, within two minutes; --application does so within "
        "45 s, unless --no-shrink is set",
    )
    options.add_argument(
        "--coverage", action="store_true", help="print which transitions of the coordinators were reached"
    )
    options.add_argument(
        "--data-dir", metavar="DIR", type=Path,
        help="write the brokers' directories of each run to DIR/seed-N, as it leaves them, for understudy audit",
    )  # fmt: skip
    program = options.add_argument_group("for a program of your own")
    program.add_argument(
        "--application", metavar="MODULE:FUNCTION",
        help="simulate this async def main(sim), from the current folder, instead of our own clients",
    )  # fmt: skip
    # Three brokers, as many as replicas in production.
    program.add_argument("--brokers", metavar="N", type=int, default=3, help="number of brokers (default 3)")
    program.add_argument(
        "--topic", metavar="NAME[:PARTITIONS]", action="append", default=[], help="topic to create; may be repeated"
    )
    program.add_argument("--jobs", metavar="N", type=int, default=1, help="number of seeds to play at the same time")
    options.add_argument("--story", metavar="N", type=int, default=0, help="print the last N lines of each run")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the process's exit code."""
    arguments = parser().parse_args(argv)
    arguments.seed, arguments.seeds = seeds_of(arguments.seed, arguments.seeds)
    lengths = [arguments.minutes, *([] if arguments.hours is None else [arguments.hours])]
    if arguments.seeds < 1 or not all(0 < length < math.inf for length in lengths):
        refuse("understudy simulate", "--seeds needs at least 1, --minutes and --hours more than 0")
    if arguments.application is not None:
        return of_application(arguments)
    only = None
    if arguments.faults is not None:
        numbers = [number for number in arguments.faults.split(",") if number]
        if not all(re.fullmatch(r"\d{1,9}", number, re.ASCII) for number in numbers):
            refuse("understudy simulate", f"--faults needs numbers, such as 0,3,7, not {arguments.faults}")
        only = frozenset(map(int, numbers))
    kinds: frozenset[str] | None = None
    if arguments.kinds is not None:
        kinds = frozenset(KINDS if arguments.kinds == "all" else arguments.kinds.split(",")) - {"none", ""}
    if kinds is not None and not kinds <= set(KINDS):
        refuse("understudy simulate", f"--kinds needs some of {', '.join(KINDS)}, all or none, not {arguments.kinds}")
    make_data_dir(arguments.data_dir)
    server_path.enter()
    command = importlib.import_module("simulator.command")
    options = command.Options(
        arguments.seed,
        arguments.seeds,
        arguments.seconds,
        arguments.minutes if arguments.hours is None else arguments.hours * 60,
        only,
        kinds,
        arguments.story,
        bool(arguments.shrink),
        arguments.coverage,
        arguments.data_dir,
    )
    code: int = command.main(options)
    return code


def seeds_of(first: int | None, argument: str) -> tuple[int | None, int]:
    """Return the first seed, None for a random one, and their number, from `--seed` and `--seeds`."""
    range_match = re.fullmatch(r"(\d{1,18})(?:-(\d{1,18}))?", argument, re.ASCII)
    if range_match is None:
        refuse("understudy simulate", f"--seeds needs a number of runs or seeds A-B, such as 1-100, not {argument}")
    if range_match[2] is None:
        return first, int(range_match[1])
    begin, end = int(range_match[1]), int(range_match[2])
    if first is not None or end < begin:
        refuse("understudy simulate", f"--seeds {argument} needs A not above B, and no --seed beside it")
    return begin, end - begin + 1


def of_application(arguments: argparse.Namespace) -> int:
    """Simulate a program of the user's own."""
    from understudy import simulate_application

    if arguments.jobs < 1:
        refuse("understudy simulate", f"--jobs needs at least 1, not {arguments.jobs}")
    make_data_dir(arguments.data_dir)
    # Short enough to be typed.
    first = random.SystemRandom().randrange(1_000_000_000) if arguments.seed is None else arguments.seed
    return simulate_application.main(
        simulate_application.Request(
            arguments.application,
            range(first, first + arguments.seeds),
            arguments.minutes if arguments.hours is None else arguments.hours * 60,
            arguments.brokers,
            tuple(arguments.topic),
            arguments.faults or "all",
            arguments.jobs,
            arguments.story,
            arguments.data_dir,
            arguments.shrink is not False,
        )
    )


def make_data_dir(folder: Path | None) -> None:
    """Create the folder for the brokers' directories."""
    if folder is None:
        return
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        refuse("understudy simulate", f"--data-dir needs a new folder, and {folder} exists")
    except OSError as error:
        refuse("understudy simulate", f"--data-dir {folder} cannot be created: {error.strerror}")
