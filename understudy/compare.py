"""`understudy compare`: is what I rely on the same on my Kafka and on this one?"""

import importlib
from collections.abc import Mapping, Sequence

from understudy import rooms
from understudy.launcher import ServerProcess, words
from understudy.parser import Parser, refuse

EPILOG = """\
Requests made up from a seed go to both: topics, settings, records of all codecs, transactions, groups, offsets.
Answers, logs and the coordinators' own records are compared field by field. Whatever differs is shortened to the
fewest requests that show it. Use a broker for tests: topics made there are deleted again, groups and transactional
ids stay until they expire. Exit code 0: no unexplained difference, 1: some, 2: it could not be done.
"""


def parser() -> Parser:
    """The options."""
    made = Parser(
        prog="understudy compare",
        description="Ask a Kafka of yours and an Understudy the same, and tell what differs.",
        epilog=EPILOG,
    )
    made.add_argument("--kafka", metavar="HOST:PORT", required=True, help="the Kafka: a cluster of one broker")
    made.add_argument("--understudy", metavar="HOST:PORT", help="ours, if it runs already; else one is started like it")
    made.add_argument("--histories", metavar="N", type=int, default=100, help="how many sequences of requests (100)")
    made.add_argument("--length", metavar="N", type=int, default=40, help="how many requests in each (40)")
    made.add_argument("--seed", metavar="N", type=int, default=0, help="another seed makes up other requests (0)")
    made.add_argument("--json", metavar="FILE", help="everything, for programs")
    made.add_argument("--junit", metavar="FILE", help="a test case for each API, for CI servers")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns the process's exit code."""
    said = parser().parse_args(argv)
    for name in ("kafka", "understudy"):
        address = getattr(said, name)
        if address is not None and not address.rpartition(":")[2].isdigit():
            refuse("understudy compare", f"--{name} needs HOST:PORT, not {address}")
    if said.histories < 1 or said.length < 2:
        refuse("understudy compare", "--histories needs at least 1, --length at least 2")
    rooms.enter()
    command = importlib.import_module("comparison.command")
    wishes = command.Wishes(said.kafka, said.understudy, said.histories, said.length, said.seed, said.json, said.junit)
    started: list[ServerProcess] = []

    def start(settings: Mapping[str, str]) -> str:
        started.append(ServerProcess(words(port=0, control_port="off", settings=settings)))
        return started[0].ready.bootstrap_servers[0]

    try:
        code: int = command.main(wishes, start)
    finally:
        for process in started:
            process.stop()
    return code
