"""`understudy conformance JOURNAL`: protocol conformance of clients, from a journal; comparison of two runs."""

from collections.abc import Sequence

from understudy import spark_command

PROGRAM = "understudy conformance"
FORMATS = ("table", "json", "html", "junit")
SEVERITIES = ("error", "warning", "info")


def main(argv: Sequence[str]) -> int:
    """Parse the command line and run the pipeline's command."""
    parser = spark_command.parser(
        PROGRAM,
        "Report what clients did: APIs and versions, latencies, errors and reactions to them, violated invariants.",
        "Exit code 0: no violated invariant; 1: some; 2: invalid command line or input.",
    )
    parser.add_argument("journal", metavar="JOURNAL", help="the folder that `understudy serve --journal` wrote")
    parser.add_argument(
        "--against",
        metavar="JOURNAL",
        help="journal of an earlier run: report differences, fail only for new violations",
    )
    parser.add_argument("--format", choices=FORMATS, default="table", help="output format (default table)")
    spark_command.spark_above(parser)
    parser.add_argument("--out", metavar="FILE", help="write the output to this file instead of stdout")
    parser.add_argument("--plots", metavar="FOLDER", help="also write the charts to this folder as PNG files")
    parser.add_argument(
        "--software", metavar="NAME", action="append", default=[],
        help="only clients of this name, or of a pattern such as 'librdkafka*' (repeatable)",
    )  # fmt: skip
    parser.add_argument(
        "--only", metavar="INVARIANT", action="append", default=[], help="check only this invariant (repeatable)"
    )
    parser.add_argument(
        "--without", metavar="INVARIANT", action="append", default=[], help="skip this one (repeatable)"
    )
    parser.add_argument(
        "--fail-on",
        choices=SEVERITIES,
        default="error",
        help="lowest severity that makes the exit code 1 (default error)",
    )
    return spark_command.run(PROGRAM, "conformance", vars(parser.parse_args(argv)))
