"""The `understudy` command: the first argument names the module that handles the others."""

import importlib
import os
import signal
import sys
from collections.abc import Sequence

from control_api.spelling import hint
from understudy.argparser import refuse
from understudy.server_path import is_compiled
from understudy.version import __version__

# Command -> (module with a `main(argv) -> int`, help). A module is imported only when its command is run.
COMMANDS = {
    "serve": ("understudy.serve", "serve a Kafka cluster from this process"),
    "shared": ("understudy.shared", "share one server between the test processes of a machine and user"),
    "produce": ("understudy.produce", "send lines to a topic"),
    "consume": ("understudy.consume", "print the records of a topic"),
    "proxy": ("understudy.proxy", "run in front of a Kafka cluster: faults, journal, explanations"),
    "ctl": ("understudy.ctl", "control a running cluster through its control plane"),
    "scenario": ("understudy.replay.command", "turn the journal of a run into a scenario that plays it back"),
    "compare": (
        "understudy.compare",
        "send the same requests to a Kafka cluster and to Understudy, and report differences",
    ),
    "simulate": ("understudy.simulate", "run a cluster and its clients on virtual time, with faults, from a seed"),
    "audit": ("understudy.audit", "check a data directory for corruption, loss and inconsistencies"),
    "conformance": ("understudy.conformance", "report protocol violations and latencies of clients, from a journal"),
    "exam": ("understudy.exam.command", "examine a client library: scripted faults, a verdict for each scenario"),
    "report": ("understudy.report", "report on a data directory: sizes, keys, retention, lag"),
    "export": ("understudy.export", "export topics to Parquet files without loss"),
    "load": ("understudy.load", "load an export into a data directory or a cluster"),
    "completion": ("understudy.completion", "print a completion script for bash, zsh or fish"),
}

_INTERRUPTED = 128 + signal.SIGINT
"""The exit code of shells for SIGINT."""
USAGE = "usage: understudy [--version] [--help] COMMAND ..."


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the process's exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if argv is None and arguments[:1] == ["simulate"]:
        from understudy.simulate import restart_with_fixed_hash

        restart_with_fixed_hash(arguments)
    code = 0
    try:
        code = run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output, such as `head`, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise Python reports it again at exit
    except KeyboardInterrupt:  # Ctrl-C in a command without cleanup
        return _INTERRUPTED
    return code


def run(arguments: Sequence[str]) -> int:
    """Run the command that the first argument names."""
    first = arguments[0] if arguments else "--help"
    if first in {"--help", "-h", "help"}:
        width = max(map(len, COMMANDS))
        lines = [f"  {name:{width}}  {text}" for name, (_, text) in COMMANDS.items()]
        print(USAGE, "", *lines, "", "understudy COMMAND --help shows its options.", sep="\n")
        return 0
    if first in {"--version", "-V"}:
        print(f"understudy {__version__} ({'compiled' if is_compiled() else 'pure Python'})")
        return 0
    if first == "journal-writer" and getattr(sys, "frozen", False):  # the server of the binary starts the binary again
        importlib.import_module("broker.steering.journal.writer").main()
        return 0
    if first not in COMMANDS:
        kind = "option" if first.startswith("-") else "command"
        refuse("understudy", f"no such {kind}: {first}{hint(first, [*COMMANDS, '--version', '--help'])}")
    try:
        command = importlib.import_module(COMMANDS[first][0])
    except ModuleNotFoundError:
        if not getattr(sys, "frozen", False):
            raise
        refuse("understudy", f"{first} is not part of the self-contained binary; install Python and understudy-kafka")
    code: int = command.main(arguments[1:])
    return code
