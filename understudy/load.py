"""`understudy load IN --to DIR|BOOTSTRAP`: loads an export into a data directory or a running cluster."""

from collections.abc import Sequence

from understudy import spark_command
from understudy.argparser import client_config
from understudy.export import choices

PROGRAM = "understudy load"


def main(argv: Sequence[str]) -> int:
    """Parse the command line and run the pipeline's command."""
    parser = spark_command.parser(
        PROGRAM, "Load an export: with the same offsets into a data directory, or as new records into a cluster."
    )
    parser.add_argument("source", metavar="IN", help="an export: a folder or a URI")
    parser.add_argument("--to", metavar="DIR|BOOTSTRAP", required=True, help="a data directory, or HOST:PORT")
    choices(parser)
    spark_command.spark_above(parser)
    parser.add_argument("--codec", default="none", help="none, gzip, snappy, lz4 or zstd (default none)")
    parser.add_argument("--speed", metavar="FACTOR", help="produce at this multiple of the original pace")
    parser.add_argument(
        "--config", metavar="KEY=VALUE", action="append", default=[], help="a topic setting (repeatable)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the records of topics that are not empty")
    parser.add_argument("--resume", action="store_true", help="continue an interrupted load into a running cluster")
    client_config(parser)
    parser.add_argument("--unchecked", action="store_true", help="skip the verification of checksums")
    return spark_command.run(PROGRAM, "load", vars(parser.parse_args(argv)))
