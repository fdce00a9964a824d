"""`understudy audit DIR`: asks the logs of a data directory, and a journal, what went wrong. Exit 1: something did."""

from collections.abc import Sequence

from understudy import tables

PROGRAM = "understudy audit"
FORMATS = ("table", "json", "html", "junit")
SEVERITIES = ("error", "warning", "info")


def main(argv: Sequence[str]) -> int:
    """Parse the words and have the pipeline do it."""
    made = tables.parser(
        PROGRAM,
        "Look for what went wrong in a broker's data directory: lost, doubled, torn, hanging, lying.",
        "Exit code 0: nothing found; 1: findings; 2: the question makes no sense.",
    )
    made.add_argument("dir", metavar="DIR", nargs="?", help="a broker's data directory, or the folder of several")
    made.add_argument("--journal", metavar="DIR", help="files of `understudy serve --journal` to compare with")
    made.add_argument("--format", choices=FORMATS, default="table", help="how to tell (default table)")
    made.add_argument("--out", metavar="FILE", help="write there rather than to stdout")
    made.add_argument("--only", metavar="CHECK", action="append", default=[], help="run this check (repeatable)")
    made.add_argument("--without", metavar="CHECK", action="append", default=[], help="leave it out (repeatable)")
    made.add_argument("--records", action="store_true", help="decode every record too: slower, and sees more")
    made.add_argument(
        "--fail-on", choices=SEVERITIES, default="warning", help="exit 1 from this severity on (default warning)"
    )
    made.add_argument("--list", action="store_true", help="list the checks, and do nothing")
    made.add_argument("--show", metavar="CHECK", help="print a check with its query, and do nothing")
    words = made.parse_args(argv)
    if words.dir is None and not (words.list or words.show):
        made.error("says nothing about what to look at: name a data directory")
    return tables.run(PROGRAM, "audit", vars(words))
