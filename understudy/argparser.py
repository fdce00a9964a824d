"""Command-line errors: one sentence on stderr, exit code 2, and the nearest known name.

argparse, because it costs 8 ms to import where click costs 52 and typer 107, and a server must answer within 400.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from control_api.spelling import hint


class Parser(argparse.ArgumentParser):
    """An argparse parser that reports an error in one sentence and suggests the nearest option."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        kwargs.setdefault("allow_abbrev", False)
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._arguments: list[str] = []

    def error(self, message: str) -> NoReturn:
        """Print one sentence and exit with 2."""
        unknown = "unrecognized arguments: "
        if message.startswith(unknown):
            argument = message[len(unknown) :].split(maxsplit=1)[0].partition("=")[0]
            meant = hint(argument, self._option_string_actions)
            is_option = argument.startswith("-")
            message = f"no such option: {argument}{meant}" if is_option else f"{argument!r} has no place here"
        with_value = re.fullmatch(r"argument (--[\w-]+): ignored explicit argument (.*)", message)
        if with_value:
            message = f"{with_value[1]} takes no value, but has {with_value[2]}"
        missing = re.fullmatch(r"the following arguments are required: (.*)", message)
        if missing and missing[1] != "VERB":
            positionals = [str(action.metavar or action.dest) for action in self._actions if not action.option_strings]
            message = f"needs {missing[1]}: {' '.join([self.prog, *positionals])}"
        if message == "the following arguments are required: VERB":
            verbs = next(action.choices for action in self._actions if action.metavar == "VERB")
            message = f"needs one of {', '.join(map(str, verbs or ()))}"
        chosen = re.fullmatch(r"argument VERB: invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if chosen and (option := self._unknown_option_before(chosen[1])):
            message = f"no such option: {option}{hint(option, self._option_string_actions)}"
        elif chosen:
            names = re.findall(r"[a-z-]+", chosen[2])
            meant = hint(chosen[1], names) or f" (there are {', '.join(names)})"
            message = f"no such verb: {chosen[1]}{meant}"
        refuse(self.prog, message)

    def parse_known_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> tuple[Any, list[str]]:  # type: ignore[override]  # argparse has overloads
        """Remember the arguments, so that an error can name an unknown option that argparse takes for the verb."""
        self._arguments = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def _unknown_option_before(self, argument: str) -> str | None:
        before = self._arguments[: self._arguments.index(argument)] if argument in self._arguments else []
        options = (each.partition("=")[0] for each in before if each.startswith("-"))
        return next((option for option in options if option not in self._option_string_actions), None)


def refuse(program: str, sentence: str, code: int = 2) -> NoReturn:
    """Print the sentence on stderr and exit with the code."""
    print(f"{program}: {sentence}", file=sys.stderr)
    sys.exit(code)


def client_config(parser: Parser) -> None:
    """Add the option for a secured cluster, which the clients of a running one share."""
    parser.add_argument(
        "--client-config", metavar="FILE", help="properties of a Kafka client, for TLS and SASL: security.protocol, ..."
    )


def whole_number(text: str) -> int:
    """Parse a number of at least 1 for argparse."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number < 1 << 62:  # so that a sum still fits into 64 bits
        raise argparse.ArgumentTypeError(f"{text} is not a number of at least 1")
    return number
