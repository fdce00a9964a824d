"""`understudy compare`: sends the same requests to a Kafka cluster and to Understudy, and reports differences."""

import importlib
import re
from collections.abc import Mapping, Sequence

from understudy import output_files, server_path
from understudy.argparser import Parser, refuse
from understudy.launcher import ServerProcess, command_line

EPILOG = """\
Both receive the same random requests: topics, settings, records of all codecs, transactions, groups, offsets.
Answers, logs and the coordinators' own records are compared field by field. Each difference is reduced to the
fewest requests that reproduce it. Use a test broker: topics created there are deleted again, groups and transactional
ids stay until they expire. Exit code 0: no unexplained difference, 1: some, 2: the comparison was not possible.
"""


def parser() -> Parser:
    """The options."""
    parser = Parser(
        prog="understudy compare",
        description="Send the same requests to a Kafka cluster and to Understudy, and report differences.",
        epilog=EPILOG,
    )
    parser.add_argument("--kafka", metavar="HOST:PORT", required=True, help="Kafka cluster of one broker")
    parser.add_argument(
        "--understudy", metavar="HOST:PORT", help="running Understudy; by default one is started with the same settings"
    )
    parser.add_argument(
        "--as-version",
        metavar="X.Y",
        help="Kafka release of the Understudy that is started, such as 4.3 (default: the newest)",
    )
    parser.add_argument(
        # Arbitrary: 100 sequences, so that a first look is short.
        "--histories",
        metavar="N",
        type=int,
        default=100,  # ours: as many as find a difference that is not rare
        help="number of request sequences (default 100)",
    )
    parser.add_argument(
        # Arbitrary: enough for several APIs to meet, few to read.
        "--length",
        metavar="N",
        type=int,
        default=40,  # ours: long enough for states to meet, short enough to be shrunk
        help="number of requests per sequence (default 40)",
    )
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="seed of the random requests (default 0)")
    parser.add_argument("--json", metavar="FILE", help="write the full result as JSON")
    parser.add_argument("--junit", metavar="FILE", help="write JUnit XML with a test case per API")
    return parser


def is_address(text: str) -> bool:
    """Return whether this is HOST:PORT."""
    return re.fullmatch(r"[^,\s]+:\d{1,5}", text, re.ASCII) is not None and int(text.rpartition(":")[2]) <= 65535


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the process's exit code."""
    arguments = parser().parse_args(argv)
    for name in ("kafka", "understudy"):
        address = getattr(arguments, name)
        if address is not None and not is_address(address):
            refuse("understudy compare", f"--{name} needs HOST:PORT, not {address}")
    if arguments.as_version is not None and arguments.understudy is not None:
        refuse(
            "understudy compare",
            "--as-version is of the Understudy that is started, and --understudy names another one",
        )
    if arguments.histories < 1 or arguments.length < 2:
        refuse("understudy compare", "--histories needs at least 1, --length at least 2")
    try:
        for option in ("json", "junit"):
            if getattr(arguments, option) is not None:
                output_files.check(getattr(arguments, option), f"--{option}")
    except output_files.OutputFileError as error:
        refuse("understudy compare", str(error))
    server_path.enter()
    command = importlib.import_module("comparison.command")
    options = command.Options(
        arguments.kafka,
        arguments.understudy,
        arguments.histories,
        arguments.length,
        arguments.seed,
        arguments.json,
        arguments.junit,
    )
    started: list[ServerProcess] = []

    def start(settings: Mapping[str, str]) -> str:
        release = {} if arguments.as_version is None else {"as_version": arguments.as_version}
        started.append(ServerProcess(command_line(port=0, control_port="off", settings=settings, **release)))
        return started[0].ready.bootstrap_servers[0]

    try:
        code: int = command.main(options, start)
    finally:
        for process in started:
            process.stop()
    return code
