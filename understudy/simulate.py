"""`understudy simulate`: runs a cluster and its clients on virtual time, with faults, from a seed."""

import importlib
import math
import re
from collections.abc import Sequence
from pathlib import Path

from understudy import server_path
from understudy.argparser import Parser, refuse

KINDS = ("consumer", "share", "lag", "change", "rules", "hold", "release", "world", "streams", "coordinators")
EPILOG = """\
Each run has three brokers, producers and consumers in one process, without sockets and without waiting; the same seed
gives the same run each time. Broken guarantees are printed with the last events, and with the command that
repeats the run. Exit code 0: all guarantees held, 1: some did not.
"""


def parser() -> Parser:
    """The options."""
    made = Parser(
        prog="understudy simulate",
        description="Run a cluster and its clients on virtual time, with faults, and check Kafka's guarantees.",
        epilog=EPILOG,
    )
    made.add_argument("--seed", metavar="N", type=int, help="first seed (default: a random one, which is printed)")
    made.add_argument("--seeds", metavar="N", type=int, default=1, help="number of runs, with consecutive seeds")
    made.add_argument("--seconds", metavar="S", type=float, help="start no further run after this many real seconds")
    made.add_argument(
        "--minutes", metavar="M", type=float, default=0.5, help="virtual minutes with faults in each run (default 0.5)"
    )
    made.add_argument("--hours", metavar="H", type=float, help="the same in hours: one long run instead of many")
    made.add_argument(
        "--kinds",
        metavar="KIND,...",
        help=f"what each run adds: any of {', '.join(KINDS)}, or all, or none (default: the seed decides)",
    )
    made.add_argument("--faults", metavar="N,N,...", help="only these faults of the seed's plan, by number")
    made.add_argument(
        "--shrink", action="store_true", help="leave out faults that a broken promise does not need, within two minutes"
    )
    made.add_argument(
        "--coverage", action="store_true", help="print which transitions of the coordinators were reached"
    )
    made.add_argument(
        "--data-dir", metavar="DIR", type=Path,
        help="write the brokers' directories of each run to DIR/seed-N, as it leaves them, for understudy audit",
    )  # fmt: skip
    made.add_argument("--story", metavar="N", type=int, default=0, help="print the last N lines of each run")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the process's exit code."""
    arguments = parser().parse_args(argv)
    lengths = [arguments.minutes, *([] if arguments.hours is None else [arguments.hours])]
    if arguments.seeds < 1 or not all(0 < length < math.inf for length in lengths):
        refuse("understudy simulate", "--seeds needs at least 1, --minutes and --hours more than 0")
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
    if arguments.data_dir is not None:
        try:
            arguments.data_dir.mkdir(parents=True)
        except FileExistsError:
            refuse("understudy simulate", f"--data-dir needs a new folder, and {arguments.data_dir} exists")
        except OSError as error:
            refuse("understudy simulate", f"--data-dir {arguments.data_dir} cannot be created: {error.strerror}")
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
        arguments.shrink,
        arguments.coverage,
        arguments.data_dir,
    )
    code: int = command.main(options)
    return code
