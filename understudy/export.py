"""`understudy export DIR|BOOTSTRAP OUT`: exports topics to Parquet files with a manifest, without loss."""

from collections.abc import Sequence

from understudy import spark_command
from understudy.argparser import Parser, client_config

PROGRAM = "understudy export"


def choices(parser: Parser) -> None:
    """Add the options that select records, which `export` and `load` share."""
    parser.add_argument(
        "--topic", metavar="NAME", action="append", default=[],
        help="only this topic, or those of a pattern such as 'orders*' (repeatable; default: all but internal ones)",
    )  # fmt: skip
    parser.add_argument("--offsets", metavar="FROM:TO", help="only these offsets, TO not included")
    parser.add_argument(
        "--since", metavar="TIME", help="only records from this time on: milliseconds or 2026-11-22T10:00:00"
    )
    parser.add_argument("--until", metavar="TIME", help="only records before this time")
    parser.add_argument(
        "--sample", metavar="SHARE", help="only this share of the keys, such as 10%%; the choice is deterministic"
    )
    parser.add_argument("--where", metavar="SQL", help="only records that match this SQL condition")
    parser.add_argument(
        "--mask", metavar="COLUMN=SQL", action="append", default=[],
        help="replace key, value, headers or timestamp_ms by an expression, such as 'key=sha2(key,256)' (repeatable)",
    )  # fmt: skip
    parser.add_argument(
        "--topic-map", metavar="OLD=NEW", action="append", default=[], help="rename a topic (repeatable)"
    )


def main(argv: Sequence[str]) -> int:
    """Parse the command line and run the pipeline's command."""
    options = spark_command.parser(PROGRAM, "Export topics to Parquet files, with offsets, timestamps and headers.")
    options.add_argument("source", metavar="DIR|BOOTSTRAP", help="a data directory, or HOST:PORT of a running cluster")
    options.add_argument("out", metavar="OUT", help="a folder, or a URI such as s3://bucket/copy")
    choices(options)
    spark_command.spark_above(options)
    options.add_argument(
        "--producers", action="store_true", help="also export producer ids, sequences, aborted records and markers"
    )
    options.add_argument(
        "--isolation", choices=("read_committed", "read_uncommitted"), default="read_committed",
        help="isolation level (default read_committed)",
    )  # fmt: skip
    options.add_argument(
        "--register", metavar="KIND", dest="register_as", action="append", choices=("delta", "iceberg"), default=[],
        help="register the files as a Delta Lake or Iceberg table (repeatable)",
    )  # fmt: skip
    options.add_argument(
        "--schema-ids", action="store_true", help="columns with the schema ids and GUIDs of keys and values"
    )
    options.add_argument(
        "--schema-registry", metavar="URL", help="decode keys and values with the schemas of this registry, into JSON"
    )
    for side in ("key", "value"):
        options.add_argument(
            f"--{side}-schema", metavar="[TOPIC=]FILE", action="append", default=[],
            help=f"decode {side}s with a schema: FILE.avsc, FILE.json, FILE.proto or FILE.proto#Message (repeatable)",
        )  # fmt: skip
    options.add_argument("--overwrite", action="store_true", help="replace an existing export")
    options.add_argument(
        "--append", action="store_true", help="continue an existing export with what was written since"
    )
    client_config(options)
    return spark_command.run(PROGRAM, "export", vars(options.parse_args(argv)))
