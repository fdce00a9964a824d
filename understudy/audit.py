"""`understudy audit DIR|HOST:PORT`: checks logs, and a journal. Exit code 1: findings."""

import re
from argparse import Namespace
from collections.abc import Sequence

from understudy import spark_command
from understudy.argparser import Parser, client_config

PROGRAM = "understudy audit"
FORMATS = ("table", "json", "html", "junit")
SEVERITIES = ("error", "warning", "info")
DEFAULT_PAUSE_S = "10"
_LONGEST_PAUSE_S = 86_400  # a day; ours, who waits longer starts it from a timer
_LONGEST_BUCKET_S = 31_622_400  # a leap year: with more, all is in one bucket


def _check_follow(parser: Parser, arguments: Namespace) -> None:
    """Reject options that contradict `--follow`."""
    if not is_number(arguments.follow):
        if arguments.dir is not None:
            parser.error(f"--follow {arguments.follow}: give a number of seconds")
        arguments.dir, arguments.follow = arguments.follow, DEFAULT_PAUSE_S
    arguments.follow = float(arguments.follow)
    if arguments.follow > _LONGEST_PAUSE_S:
        parser.error(f"--follow SECONDS: give a number up to {_LONGEST_PAUSE_S}, a day")
    if arguments.follow < 0 or arguments.steps < 0:
        parser.error("--follow SECONDS and --steps N cannot be negative")
    if arguments.format not in ("table", "json") or arguments.out:
        parser.error("--follow writes lines to stdout: use --format table or json, and no --out")
    if arguments.metrics_port is not None and not 0 < arguments.metrics_port < 65_536:
        parser.error(f"--metrics-port {arguments.metrics_port}: give a port from 1 to 65535")


def is_number(text: str) -> bool:
    """Return whether this is the pause of `--follow` rather than the directory."""
    return re.fullmatch(r"-?\d+(\.\d*)?", text) is not None


def _check_cluster(parser: Parser, arguments: Namespace) -> None:
    """Reject options that only apply to a running cluster, or do not apply to one."""
    address = arguments.dir or ""
    is_cluster = "/" not in address and re.fullmatch(r"[^,]+:\d+(,[^,]+:\d+)*", address) is not None
    if is_cluster and arguments.follow is None:
        parser.error(f"{address} is a running cluster: use --follow")
    if is_cluster and (arguments.journal or arguments.id):
        parser.error("--journal and --id need a data directory")
    if not is_cluster and (arguments.topic or arguments.from_end or arguments.client_config):
        parser.error("--topic, --from-end and --client-config need HOST:PORT")
    if arguments.keep < 1:
        parser.error("--keep MB: give a number from 1 on")
    if arguments.count_by is not None and not 1 <= arguments.count_by <= _LONGEST_BUCKET_S:
        parser.error(f"--count-by SECONDS: give a number from 1 to {_LONGEST_BUCKET_S}")
    arguments.is_cluster = is_cluster


def _live_options(parser: Parser) -> None:
    """Add the options of `--follow`."""
    parser.add_argument(
        "--follow",
        metavar="SECONDS",
        nargs="?",
        const=DEFAULT_PAUSE_S,
        help="audit repeatedly, with a pause of 10 s, and report each new finding in a line",
    )
    parser.add_argument("--until-finding", action="store_true", help="with --follow: end with the first finding")
    parser.add_argument("--steps", metavar="N", type=int, default=0, help="with --follow: end after N audits")
    parser.add_argument("--metrics-port", metavar="PORT", type=int, help="with --follow: serve Prometheus metrics here")
    parser.add_argument(
        "--topic", metavar="NAME", action="append", default=[], help="HOST:PORT: only topics that match (repeatable)"
    )
    parser.add_argument("--from-end", action="store_true", help="HOST:PORT: only records that are written from now on")
    parser.add_argument(
        "--keep",
        metavar="MB",
        type=int,
        default=128,  # ours, for a small disk
        help="HOST:PORT: size of the copy of the logs (default 128)",
    )
    client_config(parser)


def _topic_options(parser: Parser) -> None:
    """Add the options of inputs and outputs."""
    parser.add_argument(
        "--count-by",
        metavar="SECONDS",
        type=int,
        help="count records by topic and time, and compare the counts of inputs and outputs",
    )
    for name, what in (
        ("--input", "for --id and --count-by: topic that is consumed"),
        ("--output", "for --id and --count-by: topic that is written"),
        ("--group", "for --id: group that consumes; default: by the transactions of the outputs"),
    ):
        parser.add_argument(name, metavar=name[2:].upper(), action="append", default=[], help=f"{what} (repeatable)")


def main(argv: Sequence[str]) -> int:
    """Parse the command line and run the pipeline's command."""
    parser = spark_command.parser(
        PROGRAM,
        "Check a broker's data directory for lost or duplicate records, torn batches, hanging transactions.",
        "Exit code 0: nothing found; 1: findings; 2: invalid command line or input.",
    )
    parser.add_argument(
        "dir",
        metavar="DIR|HOST:PORT",
        nargs="?",
        help="data directory of a broker, or the folder that contains several; with --follow also a running cluster",
    )
    parser.add_argument(
        "--journal", metavar="DIR", help="files of `understudy serve --journal` to compare the logs with"
    )
    parser.add_argument(
        "--history", metavar="PATH", help="histories of clients, as JSON lines: a file or folder; works without DIR"
    )
    parser.add_argument("--format", choices=FORMATS, default="table", help="output format (default table)")
    spark_command.spark_above(parser)
    parser.add_argument("--out", metavar="FILE", help="write the output to this file instead of stdout")
    parser.add_argument("--only", metavar="CHECK", action="append", default=[], help="run only this check (repeatable)")
    parser.add_argument("--without", metavar="CHECK", action="append", default=[], help="skip this one (repeatable)")
    parser.add_argument("--records", action="store_true", help="also decode every record: slower, but finds more")
    parser.add_argument(
        "--id",
        metavar="key|header:NAME|json:PATH",
        help="what makes a record unique: check that each input is in the output exactly once",
    )
    _topic_options(parser)
    parser.add_argument("--checks", metavar="FOLDER", help="also run your own checks: a file NAME.sql for each")
    parser.add_argument(
        "--fail-on",
        choices=SEVERITIES,
        default="warning",
        help="lowest severity that makes the exit code 1 (default warning)",
    )
    _live_options(parser)
    parser.add_argument("--list", action="store_true", help="list the checks, and exit")
    parser.add_argument("--show", metavar="CHECK", help="print a check and its query, and exit")
    arguments = parser.parse_args(argv)
    is_address = arguments.follow is not None and not is_number(arguments.follow)
    is_alone = bool(arguments.history) and arguments.follow is None
    if arguments.dir is None and not is_address and not (is_alone or arguments.list or arguments.show):
        parser.error("needs DIR, a broker's data directory, or the folder of several: understudy audit DIR")
    if arguments.follow is None and (arguments.until_finding or arguments.steps or arguments.metrics_port is not None):
        parser.error("--until-finding, --steps and --metrics-port need --follow")
    if arguments.follow is not None:
        _check_follow(parser, arguments)
    _check_cluster(parser, arguments)
    return spark_command.run(PROGRAM, "audit", vars(arguments))
