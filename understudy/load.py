"""`understudy load IN --to DIR|BOOTSTRAP`: an export back into a data directory, or into a running cluster."""

from collections.abc import Sequence

from understudy import tables
from understudy.export import choices

PROGRAM = "understudy load"


def main(argv: Sequence[str]) -> int:
    """Parse the words and have the pipeline do it."""
    made = tables.parser(PROGRAM, "Load an export: exactly into a data directory, or as new records into a cluster.")
    made.add_argument("source", metavar="IN", help="an export: a folder or a URI")
    made.add_argument("--to", metavar="DIR|BOOTSTRAP", required=True, help="a data directory, or HOST:PORT")
    choices(made)
    made.add_argument("--codec", default="none", help="none, gzip, snappy, lz4 or zstd (default none)")
    made.add_argument("--speed", metavar="FACTOR", help="produce at this many times the pace of the record times")
    made.add_argument("--config", metavar="KEY=VALUE", action="append", default=[], help="a topic setting (repeatable)")
    made.add_argument("--unchecked", action="store_true", help="do not compare the files with their checksums")
    return tables.run(PROGRAM, "load", vars(made.parse_args(argv)))
