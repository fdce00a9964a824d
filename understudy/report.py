"""`understudy report DIR`: what lies in a data directory: sizes, skew, hot keys, compaction, retention, lag, values."""

import argparse
from collections.abc import Sequence

from understudy import tables

PROGRAM = "understudy report"
FORMATS = ("table", "json", "html")


def whole_number(text: str) -> int:
    """A number from 1 on, as argparse wants its types."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 on")
    return number


def limit(text: str) -> int:
    """A retention: a number from 0 on, or -1 for none."""
    try:
        number = int(text)
    except ValueError:
        number = -2
    if number < -1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 on, nor -1 for no limit")
    return number


def main(argv: Sequence[str]) -> int:
    """Parse the words and have the pipeline do it."""
    made = tables.parser(
        PROGRAM, "Tell what lies in a broker's data directory: by size, by partition, by key, by age, by reader."
    )
    made.add_argument("dir", metavar="DIR", nargs="?", help="a broker's data directory, or the folder of several")
    made.add_argument("--journal", metavar="DIR", help="files of `understudy serve --journal`: lag over time")
    made.add_argument("--format", choices=FORMATS, default="table", help="how to tell (default table)")
    made.add_argument("--out", metavar="FILE", help="write there rather than to stdout")
    made.add_argument("--plots", metavar="FOLDER", help="write the pictures there as PNG files too")
    made.add_argument("--only", metavar="REPORT", action="append", default=[], help="make this one (repeatable)")
    made.add_argument("--without", metavar="REPORT", action="append", default=[], help="leave it out (repeatable)")
    made.add_argument(
        "--topic", metavar="NAME", action="append", default=[],
        help="only this topic, or those of a pattern such as 'orders*' (repeatable; default: all but internal ones)",
    )  # fmt: skip
    made.add_argument("--retention-ms", metavar="MS", type=limit, help="what if retention.ms were this (-1: no limit)")
    made.add_argument("--retention-bytes", metavar="BYTES", type=limit, help="what if retention.bytes were this")
    made.add_argument("--at", metavar="TIME", help="when: milliseconds or 2026-11-22T10:00:00 (default: now)")
    made.add_argument("--top", metavar="N", type=whole_number, default=20, help="so many hot keys a topic (default 20)")
    made.add_argument(
        "--values", metavar="N", type=whole_number, default=100_000,
        help="look into about so many values (default 100000)",
    )  # fmt: skip
    made.add_argument("--list", action="store_true", help="list the reports, and do nothing")
    made.add_argument("--show", metavar="REPORT", help="print a report with its query, and do nothing")
    words = made.parse_args(argv)
    if words.dir is None and not (words.list or words.show):
        made.error("says nothing about what to look at: name a data directory")
    return tables.run(PROGRAM, "report", vars(words))
