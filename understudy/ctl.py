"""`understudy ctl`: every verb of the control plane from a shell, made from the table of verbs.

Exit codes: 0 done, 1 the control plane refused or does not answer, 2 the command line makes no sense.
"""

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from understudy.errors import UnderstudyError
from understudy.parser import Parser, nearest, refuse
from understudy.table import lines
from understudy.transport import Address, Transport
from understudy.verbs import DO, Param, Verb, groups

PROGRAM = "understudy ctl"

UNITS_MS = {"": 1, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def duration_ms(text: str) -> int:
    """Milliseconds, or a number with its unit: 250ms, 90s, 15m, 2h, 7d."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d|)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"needs milliseconds, 90s, 15m, 2h or 7d, not {text!r}")
    return round(float(found[1]) * UNITS_MS[found[2]])


def document(text: str, about: str = "") -> Any:
    """JSON; `about` says of what."""
    try:
        return json.loads(text)
    except ValueError as error:
        told = f" ({about})" if about else ""
        raise argparse.ArgumentTypeError(f"needs JSON{told}, not {text!r}: {error}") from error


def whole(text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"needs a whole number, not {text!r}") from None


def fraction(text: str) -> float:
    """A number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"needs a number, not {text!r}") from None


def perhaps(text: str) -> int | None:
    """A whole number, or null."""
    if text.lower() in {"null", "none", "nobody"}:
        return None
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"needs a whole number or null, not {text!r}") from None


def numbers(text: str) -> list[int]:
    """Whole numbers: 1,2 or [1, 2]."""
    inner = text.strip().removeprefix("[").removesuffix("]").strip()
    try:
        return [int(each) for each in inner.split(",")] if inner else []
    except ValueError:
        raise argparse.ArgumentTypeError(f"needs whole numbers such as 1,2, not {text!r}") from None


def action(text: str) -> Any:
    """What happens after applying: JSON, or error=CODE, disconnect=close, disconnect=reset, drop, delay_ms=N."""
    if text.startswith("{"):
        return document(text)
    name, _, value = text.partition("=")
    makers: Mapping[str, Callable[[str], Any]] = {
        "error": str,
        "disconnect": str,
        "drop": lambda _: True,
        "delay_ms": duration_ms,
    }
    if name not in makers:
        raise argparse.ArgumentTypeError(f"knows {', '.join(makers)}, not {name!r}{nearest(name, makers)}")
    return {name: makers[name](value or ("close" if name == "disconnect" else ""))}


TYPES: Mapping[str, Callable[[str], Any]] = {
    "text": str,
    "names": str,
    "int": whole,
    "maybe": perhaps,
    "ints": numbers,
    "float": fraction,
    "ms": duration_ms,
    "json": document,
    "action": action,
}


def add(made: argparse.ArgumentParser, row: Param, *, positional: bool) -> None:
    """A parameter as an option, or as a word of its own where it is required and short to say."""
    text = row.help.replace("%", "%%")
    kind = partial(document, about=row.help) if row.kind == "json" else TYPES.get(row.kind, str)
    if positional:
        choices = row.choices or None
        made.add_argument(row.name, metavar=row.name.upper(), type=kind, choices=choices, help=text)
        return
    if row.kind == "flag":
        name, unsaid = option(row), argparse.SUPPRESS
        made.add_argument(name, dest=row.name, action="store_const", const=True, default=unsaid, help=text)
        return
    made.add_argument(
        option(row),
        dest=row.name,
        type=kind,
        choices=row.choices or None,
        metavar=None if row.choices else row.kind.upper(),
        action="append" if row.kind == "names" else "store",
        default=argparse.SUPPRESS,
        help=text,
    )


def common() -> Parser:
    """The options that every verb takes."""
    made = Parser(add_help=False)
    made.add_argument("--control", metavar="URL", default=argparse.SUPPRESS, help="the control plane")
    made.add_argument("--token", default=argparse.SUPPRESS, help="its bearer token")
    made.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print the answer as JSON")
    return made


def parser() -> Parser:
    """The parser of all verbs."""
    shared = common()
    made = Parser(
        prog=PROGRAM,
        parents=[shared],
        description="Steer a running cluster through its control plane.",
        epilog="The control plane is looked for at UNDERSTUDY_CONTROL_URL, else on this machine at "
        "UNDERSTUDY_CONTROL_PORT (9099); its token at UNDERSTUDY_CONTROL_TOKEN.",
    )
    first = made.add_subparsers(metavar="VERB", required=True, parser_class=Parser)
    for word, verbs in groups():
        if verbs[0].words == word:
            shape(first.add_parser(word, help=verbs[0].help, description=verbs[0].help, parents=[shared]), verbs[0])
            continue
        about = ", ".join(verb.words.partition(" ")[2] for verb in verbs)
        inner = first.add_parser(word, help=about, description=about, parents=[shared])
        second = inner.add_subparsers(metavar="VERB", required=True, parser_class=Parser)
        for verb in verbs:
            name = verb.words.partition(" ")[2]
            shape(second.add_parser(name, help=verb.help, description=verb.help, parents=[shared]), verb)
    return made


def shape(made: argparse.ArgumentParser, verb: Verb) -> None:
    """Give a verb's parser what its path, query and body need."""
    for name in verb.places:
        made.add_argument(name, metavar=name.upper())
    for row in (*verb.query, *verb.body):
        add(made, row, positional=row.required)
    if verb.media == "bytes":
        made.add_argument("--output", "-o", metavar="FILE", default=argparse.SUPPRESS, help="write it there")
    made.set_defaults(verb=verb)


def option(row: Param) -> str:
    """How it is called on the command line."""
    return f"--{row.name.replace('_', '-')}"


def unknown(verb: Verb, word: str) -> str:
    """What is wrong with a word that the verb does not take."""
    options = [option(row) for row in (*verb.query, *verb.body) if not row.required]
    if word.startswith("-"):
        return f"no such option: {word}{nearest(word, [*options, '--control', '--token', '--json'])}"
    takes = f"; its options are {', '.join(options)}" if options else ""
    return f"takes no further word, such as {word!r}{takes}"


def address(said: Mapping[str, Any]) -> Address:
    """Where the control plane is: as said, else as the environment says, which may be the server's own."""
    port = os.environ.get("UNDERSTUDY_CONTROL_PORT") or "9099"
    url = said.get("control") or os.environ.get("UNDERSTUDY_CONTROL_URL") or f"http://127.0.0.1:{port}"
    token = said.get("token") or os.environ.get("UNDERSTUDY_CONTROL_TOKEN")
    return Address(url if "://" in url else f"http://{url}", token)


def main(argv: Sequence[str]) -> int:
    """Run one verb."""
    known, more = parser().parse_known_args(argv)
    said = vars(known)
    verb: Verb = said.pop("verb")
    if more:
        refuse(f"{PROGRAM} {verb.words}", unknown(verb, more[0].partition("=")[0]))
    if verb.words == "faults add" and not any(row.name in said for row in DO):
        ways = ", ".join(option(row) for row in DO if row.name != "where")
        refuse(f"{PROGRAM} {verb.words}", f"needs what is to be done, one of {ways}")
    try:
        answer = Transport(address(said)).ask(verb.words, said)
    except UnderstudyError as error:
        refuse(PROGRAM, str(error), 1)
    if isinstance(answer, bytes):
        if "output" in said:
            with open(said["output"], "wb") as out:  # noqa: PTH123 - a path as the user wrote it
                out.write(answer)
        else:
            sys.stdout.buffer.write(answer)
    elif said.get("json"):
        print(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        for line in lines(verb, answer):
            print(line)
    return 0
