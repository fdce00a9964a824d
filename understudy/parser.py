"""The command line's manners: one sentence on stderr, exit code 2, and the nearest name.

argparse, because it costs 8 ms to import where click costs 52 and typer 107, and a server must answer within 400.
"""

import argparse
import re
import sys
from collections.abc import Iterable
from typing import NoReturn


def nearest(wanted: str, names: Iterable[str]) -> str:
    """The words "(did you mean X?)" with the known name that looks most like `wanted`, or nothing."""
    import difflib

    found = difflib.get_close_matches(wanted, list(names), n=1, cutoff=0.6)
    return f" (did you mean {found[0]}?)" if found else ""


class Parser(argparse.ArgumentParser):
    """An argparse parser that says what is wrong in one sentence and knows its own options' names."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        kwargs.setdefault("allow_abbrev", False)
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        """Print one sentence and exit with 2."""
        unknown = "unrecognized arguments: "
        if message.startswith(unknown):
            word = message[len(unknown) :].split(maxsplit=1)[0].partition("=")[0]
            hint = nearest(word, self._option_string_actions)
            message = f"no such option: {word}{hint}"
        lacking = re.fullmatch(r"the following arguments are required: (.*)", message)
        if lacking and lacking[1] != "VERB":
            words = [str(action.metavar or action.dest) for action in self._actions if not action.option_strings]
            message = f"needs {lacking[1]}: {' '.join([self.prog, *words])}"
        if message == "the following arguments are required: VERB":
            verbs = next(action.choices for action in self._actions if action.metavar == "VERB")
            message = f"needs one of {', '.join(map(str, verbs or ()))}"
        chosen = re.fullmatch(r"argument VERB: invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if chosen:
            known = re.findall(r"[a-z-]+", chosen[2])
            hint = nearest(chosen[1], known) or f" (there are {', '.join(known)})"
            message = f"no such verb: {chosen[1]}{hint}"
        refuse(self.prog, message)


def refuse(program: str, sentence: str, code: int = 2) -> NoReturn:
    """Say the sentence on stderr and leave with the code."""
    print(f"{program}: {sentence}", file=sys.stderr)
    sys.exit(code)
