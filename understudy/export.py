"""`understudy export DIR|BOOTSTRAP OUT`: topics as Parquet files with a manifest, nothing lost."""

from collections.abc import Sequence

from understudy import tables
from understudy.parser import Parser

PROGRAM = "understudy export"


def choices(made: Parser) -> None:
    """The options that say what is wanted, as `export` and `load` share them."""
    made.add_argument(
        "--topic", metavar="NAME", action="append", default=[],
        help="only this topic, or those of a pattern such as 'orders*' (repeatable; default: all but internal ones)",
    )  # fmt: skip
    made.add_argument("--offsets", metavar="FROM:TO", help="only these offsets, TO not included")
    made.add_argument("--since", metavar="TIME", help="only records from then on: milliseconds or 2026-11-22T10:00:00")
    made.add_argument("--until", metavar="TIME", help="only records before")
    made.add_argument("--sample", metavar="SHARE", help="this share of the keys, such as 10%%, always the same ones")
    made.add_argument("--where", metavar="SQL", help="only records for which this SQL condition holds")
    made.add_argument(
        "--mask", metavar="COLUMN=SQL", action="append", default=[],
        help="replace key, value, headers or timestamp_ms by an expression, such as 'key=sha2(key,256)' (repeatable)",
    )  # fmt: skip
    made.add_argument(
        "--topic-map", metavar="OLD=NEW", action="append", default=[], help="give a topic another name (repeatable)"
    )


def main(argv: Sequence[str]) -> int:
    """Parse the words and have the pipeline do it."""
    made = tables.parser(PROGRAM, "Copy topics to Parquet: offsets, times, headers and all.")
    made.add_argument("source", metavar="DIR|BOOTSTRAP", help="a data directory, or HOST:PORT of a running cluster")
    made.add_argument("out", metavar="OUT", help="a folder, or a URI such as s3://bucket/copy")
    choices(made)
    made.add_argument(
        "--producers", action="store_true", help="producer ids, sequences, aborted records and markers too"
    )
    made.add_argument(
        "--isolation", choices=("read_committed", "read_uncommitted"), default="read_committed",
        help="whose view is copied (default read_committed)",
    )  # fmt: skip
    made.add_argument(
        "--register", metavar="KIND", dest="register_as", action="append", choices=("delta", "iceberg"), default=[],
        help="make a table of Delta Lake or Iceberg of the same files: delta, iceberg (repeatable)",
    )  # fmt: skip
    made.add_argument("--overwrite", action="store_true", help="replace an export that is there")
    return tables.run(PROGRAM, "export", vars(made.parse_args(argv)))
