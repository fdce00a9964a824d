"""`understudy audit DIR`: checks the logs of a data directory, and a journal. Exit code 1: findings."""

from argparse import Namespace
from collections.abc import Sequence

from understudy import spark_command
from understudy.argparser import Parser

PROGRAM = "understudy audit"
FORMATS = ("table", "json", "html", "junit")
SEVERITIES = ("error", "warning", "info")


def _check_follow(made: Parser, arguments: Namespace) -> None:
    """What does not go together with `--follow`."""
    if arguments.follow < 0 or arguments.steps < 0:
        made.error("--follow SECONDS and --steps N cannot be negative")
    if arguments.format not in ("table", "json") or arguments.out:
        made.error("--follow writes lines to stdout: use --format table or json, and no --out")
    if arguments.metrics_port is not None and not 0 < arguments.metrics_port < 65_536:
        made.error(f"--metrics-port {arguments.metrics_port}: give a port from 1 to 65535")


def main(argv: Sequence[str]) -> int:
    """Parse the command line and run the pipeline's command."""
    made = spark_command.parser(
        PROGRAM,
        "Check a broker's data directory for lost or duplicate records, torn batches, hanging transactions.",
        "Exit code 0: nothing found; 1: findings; 2: invalid command line or input.",
    )
    made.add_argument(
        "dir", metavar="DIR", nargs="?", help="data directory of a broker, or the folder that contains several"
    )
    made.add_argument("--journal", metavar="DIR", help="files of `understudy serve --journal` to compare the logs with")
    made.add_argument("--format", choices=FORMATS, default="table", help="output format (default table)")
    spark_command.spark_above(made)
    made.add_argument("--out", metavar="FILE", help="write the output to this file instead of stdout")
    made.add_argument("--only", metavar="CHECK", action="append", default=[], help="run only this check (repeatable)")
    made.add_argument("--without", metavar="CHECK", action="append", default=[], help="skip this one (repeatable)")
    made.add_argument("--records", action="store_true", help="also decode every record: slower, but finds more")
    made.add_argument(
        "--id",
        metavar="key|header:NAME|json:PATH",
        help="what makes a record unique: check that each input is in the output exactly once",
    )
    for name, what in (
        ("--input", "topic that is consumed"),
        ("--output", "topic that is written"),
        ("--group", "group that consumes; default: by the transactions of the outputs"),
    ):
        made.add_argument(
            name, metavar=name[2:].upper(), action="append", default=[], help=f"for --id: {what} (repeatable)"
        )
    made.add_argument(
        "--fail-on",
        choices=SEVERITIES,
        default="warning",
        help="lowest severity that makes the exit code 1 (default warning)",
    )
    made.add_argument(
        "--follow",
        metavar="SECONDS",
        type=float,
        nargs="?",
        const=10.0,
        help="audit again and again, with a pause of 10 s, and report each new finding in a line",
    )
    made.add_argument("--until-finding", action="store_true", help="with --follow: end with the first finding")
    made.add_argument("--steps", metavar="N", type=int, default=0, help="with --follow: end after N audits")
    made.add_argument("--metrics-port", metavar="PORT", type=int, help="with --follow: serve Prometheus metrics here")
    made.add_argument("--list", action="store_true", help="list the checks, and exit")
    made.add_argument("--show", metavar="CHECK", help="print a check and its query, and exit")
    arguments = made.parse_args(argv)
    if arguments.dir is None and not (arguments.list or arguments.show):
        made.error("needs DIR, a broker's data directory, or the folder of several: understudy audit DIR")
    if arguments.follow is None and (arguments.until_finding or arguments.steps or arguments.metrics_port is not None):
        made.error("--until-finding, --steps and --metrics-port need --follow")
    if arguments.follow is not None:
        _check_follow(made, arguments)
    return spark_command.run(PROGRAM, "audit", vars(arguments))
