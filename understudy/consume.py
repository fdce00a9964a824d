"""`understudy consume TOPIC`: prints the records of a topic, read over the wire."""

import importlib
from collections.abc import Sequence

from understudy import server_path
from understudy.argparser import Parser, client_config, whole_number
from understudy.produce import bootstrap_server

PROGRAM = "understudy consume"
_EPILOG = r"""examples:
  understudy consume orders                        print what arrives from now on, until Ctrl-C
  understudy consume orders --from-beginning       print all records, and exit
  understudy consume orders --from-beginning --follow --format '%p %o %k: %s\n'

format: as in kcat, %t topic, %p partition, %o offset, %k key, %s value, %h headers, %T timestamp in milliseconds,
%K and %S size of key and value in bytes, %% a percent sign, \n newline, \t tab; or `json`, a JSON document per line
exit codes: 0 done, 1 the cluster refused or does not answer, or the topic has fewer records than --count,
2 invalid command line"""


def main(argv: Sequence[str]) -> int:
    """Parse the command line and consume."""
    parser = Parser(prog=PROGRAM, description="Print the committed records of a topic.", epilog=_EPILOG)
    parser.add_argument("topic", metavar="TOPIC", help="the topic")
    bootstrap_server(parser)
    parser.add_argument(
        "--from-beginning", action="store_true",
        help="read all records, then exit; in a group, this applies to partitions without a committed offset",
    )  # fmt: skip
    parser.add_argument(
        "--follow", action="store_true", help="wait for further records (the default without --from-beginning)"
    )
    parser.add_argument("--count", metavar="N", type=whole_number, help="exit after N records")
    parser.add_argument(
        "--group", metavar="G", help="read as a member of this consumer group, and commit (KIP-848: Kafka 4.0 or newer)"
    )
    parser.add_argument("--format", metavar="FORMAT", default=r"%s\n", help=r"what to print (default '%%s\n')")
    client_config(parser)
    arguments = vars(parser.parse_args(argv))
    server_path.enter()
    code: int = importlib.import_module("pipeline.commands.consume").main(arguments)
    return code
