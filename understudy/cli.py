"""The `understudy` command: a word, then what that word's own module makes of the rest."""

import importlib
import sys
from collections.abc import Sequence

from understudy.parser import nearest, refuse
from understudy.version import __version__

# Word -> (module with a `main(argv) -> int`, what it does). A module is imported only when its word is said.
COMMANDS = {
    "serve": ("understudy.serve", "serve a Kafka cluster from this process"),
    "ctl": ("understudy.ctl", "steer a running cluster through its control plane"),
    "compare": ("understudy.compare", "ask a Kafka of yours and this one the same, and tell what differs"),
    "audit": ("understudy.audit", "look for what went wrong in a data directory"),
    "conformance": ("understudy.conformance", "tell how clients kept to the protocol, from a journal"),
    "report": ("understudy.report", "tell what lies in a data directory: sizes, keys, retention, lag"),
    "export": ("understudy.export", "copy topics to Parquet, nothing lost"),
    "load": ("understudy.load", "load an export into a data directory or a cluster"),
    "completion": ("understudy.completion", "print a completion script for bash, zsh or fish"),
}

USAGE = "usage: understudy [--version] [--help] COMMAND ..."


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the process's exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    first = words[0] if words else "--help"
    if first in {"--help", "-h", "help"}:
        width = max(map(len, COMMANDS))
        lines = [f"  {name:{width}}  {text}" for name, (_, text) in COMMANDS.items()]
        print(USAGE, "", *lines, "", "understudy COMMAND --help tells more.", sep="\n")
        return 0
    if first in {"--version", "-V"}:
        print(f"understudy {__version__}")
        return 0
    if first not in COMMANDS:
        kind = "option" if first.startswith("-") else "command"
        refuse("understudy", f"no such {kind}: {first}{nearest(first, [*COMMANDS, '--version', '--help'])}")
    command = importlib.import_module(COMMANDS[first][0])
    code: int = command.main(words[1:])
    return code
