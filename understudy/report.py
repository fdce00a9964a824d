"""`understudy report DIR`: reports on a data directory: sizes, skew, hot keys, compaction, retention, lag, values."""

import argparse
from collections.abc import Sequence

from understudy import spark_command
from understudy.argparser import whole_number

PROGRAM = "understudy report"
FORMATS = ("table", "json", "html")


def limit(text: str) -> int:
    """Parse a retention limit: a number of at least 0, or -1 for no limit."""
    try:
        number = int(text)
    except ValueError:
        number = -2
    if not -1 <= number < 1 << 63:  # an int64
        raise argparse.ArgumentTypeError(f"{text} is neither a number of at least 0 nor -1 (no limit)")
    return number


def main(argv: Sequence[str]) -> int:
    """Parse the command line and run the pipeline's command."""
    parser = spark_command.parser(
        PROGRAM, "Report on the contents of a broker's data directory: by size, partition, key, age and consumer group."
    )
    parser.add_argument(
        "names", metavar="[REPORT...] DIR", nargs="*",
        help="names of reports (default: all), and the data directory of a broker, or the folder that contains several",
    )  # fmt: skip
    parser.add_argument("--journal", metavar="DIR", help="files of `understudy serve --journal`: lag over time")
    parser.add_argument(
        "--history", metavar="PATH", help="histories of clients, as JSON lines: what is lost, by its ids"
    )
    parser.add_argument("--format", choices=FORMATS, default="table", help="output format (default table)")
    spark_command.spark_above(parser)
    parser.add_argument("--out", metavar="FILE", help="write the output to this file instead of stdout")
    parser.add_argument("--plots", metavar="FOLDER", help="also write the charts to this folder as PNG files")
    parser.add_argument(
        "--only", metavar="REPORT", action="append", default=[], help="as REPORT before DIR (repeatable)"
    )
    parser.add_argument("--without", metavar="REPORT", action="append", default=[], help="skip this one (repeatable)")
    parser.add_argument(
        "--topic", metavar="NAME", action="append", default=[],
        help="only this topic, or those of a pattern such as 'orders*' (repeatable; default: all but internal ones)",
    )  # fmt: skip
    parser.add_argument(
        "--retention-ms", metavar="MS", type=limit, help="estimate the effect of this retention.ms (-1: no limit)"
    )
    parser.add_argument(
        "--retention-bytes", metavar="BYTES", type=limit, help="estimate the effect of this retention.bytes"
    )
    parser.add_argument(
        "--at", metavar="TIME", help="time of the report: milliseconds or 2026-11-22T10:00:00 (default: now)"
    )
    parser.add_argument(
        # Arbitrary: a screen.
        "--top",
        metavar="N",
        type=whole_number,
        default=20,  # as Selection has it, and below
        help="number of hot keys per topic (default 20)",
    )
    # As Selection has it.
    parser.add_argument(
        "--values", metavar="N", type=whole_number, default=100_000,
        help="approximate number of values to sample (default 100000)",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="list the reports, and exit")
    parser.add_argument("--show", metavar="REPORT", help="print a report and its query, and exit")
    arguments = vars(parser.parse_args(argv))
    *names, directory = arguments.pop("names") or [None]
    if directory is None and not (arguments["list"] or arguments["show"]):
        parser.error("needs DIR, a broker's data directory, or the folder of several: understudy report DIR")
    return spark_command.run(PROGRAM, "report", {**arguments, "dir": directory, "only": [*names, *arguments["only"]]})
