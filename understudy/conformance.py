"""`understudy conformance JOURNAL`: how clients kept to the protocol, from what they did; two runs compared."""

from collections.abc import Sequence

from understudy import tables

PROGRAM = "understudy conformance"
FORMATS = ("table", "json", "html", "junit")
SEVERITIES = ("error", "warning", "info")


def main(argv: Sequence[str]) -> int:
    """Parse the words and have the pipeline do it."""
    made = tables.parser(
        PROGRAM,
        "Tell what clients did: APIs and versions, latencies, errors and what came next, invariants broken.",
        "Exit code 0: no invariant broken; 1: some; 2: the question makes no sense.",
    )
    made.add_argument("journal", metavar="JOURNAL", help="the folder that `understudy serve --journal` wrote")
    made.add_argument("--against", metavar="JOURNAL", help="an earlier run: tell what differs, fail for what is new")
    made.add_argument("--format", choices=FORMATS, default="table", help="how to tell (default table)")
    made.add_argument("--out", metavar="FILE", help="write there rather than to stdout")
    made.add_argument("--plots", metavar="FOLDER", help="write the pictures there as PNG files too")
    made.add_argument(
        "--software", metavar="NAME", action="append", default=[],
        help="only clients of this name, or of a pattern such as 'librdkafka*' (repeatable)",
    )  # fmt: skip
    made.add_argument("--only", metavar="INVARIANT", action="append", default=[], help="look for this one (repeatable)")
    made.add_argument("--without", metavar="INVARIANT", action="append", default=[], help="leave it out (repeatable)")
    made.add_argument(
        "--fail-on", choices=SEVERITIES, default="error", help="exit 1 from this severity on (default error)"
    )
    return tables.run(PROGRAM, "conformance", vars(made.parse_args(argv)))
