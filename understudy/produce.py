"""`understudy produce TOPIC`: sends lines of standard input, or of a file, as records over the wire."""

import importlib
from collections.abc import Sequence

from understudy import server_path
from understudy.argparser import Parser, client_config

PROGRAM = "understudy produce"
_EPILOG = """examples:
  echo hello | understudy produce orders
  understudy produce orders --key 42 --header source=shop --file orders.txt

A topic that does not exist is created, if the cluster allows it. Without --partition, the key decides as in Kafka's
producer; records without a key go to each partition in turn.
exit codes: 0 all records are in the topic, 1 the cluster refused or does not answer, 2 invalid command line"""


def main(argv: Sequence[str]) -> int:
    """Parse the command line and produce."""
    parser = Parser(prog=PROGRAM, description="Produce a record for each line of standard input.", epilog=_EPILOG)
    parser.add_argument("topic", metavar="TOPIC", help="the topic")
    bootstrap_server(parser)
    parser.add_argument("--key", metavar="K", help="key of each record (default: null)")
    parser.add_argument(
        "--header",
        metavar="N=V",
        action="append",
        default=[],
        dest="headers",
        help="header of each record (repeatable)",
    )
    parser.add_argument("--partition", metavar="P", type=int, help="partition of each record")
    parser.add_argument("--file", metavar="F", help="read the lines of this file instead of standard input")
    client_config(parser)
    arguments = vars(parser.parse_args(argv))
    server_path.enter()
    code: int = importlib.import_module("pipeline.commands.produce").main(arguments)
    return code


def bootstrap_server(parser: Parser) -> None:
    """Add the option that `produce` and `consume` share."""
    parser.add_argument(
        "--bootstrap-server", metavar="HOST:PORT[,...]", default="127.0.0.1:9092",
        help="brokers to connect to first (default 127.0.0.1:9092)",
    )  # fmt: skip
