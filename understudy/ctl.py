"""`understudy ctl`: every verb of the control plane as a shell command, generated from the table of verbs.

Exit codes: 0 done, 1 the control plane refused or does not answer, 2 invalid command line.
"""

import argparse
import json
import os
import sys
from collections.abc import Container, Mapping, Sequence
from typing import Any

from understudy.argparser import Parser, refuse
from understudy.control_api.parameters import Parameter
from understudy.control_api.spelling import hint
from understudy.control_api.verb import Verb
from understudy.control_api.verbs import groups
from understudy.ctl_values import help_of, reader
from understudy.errors import ControlError, UnderstudyError
from understudy.text_table import lines
from understudy.transport import Address, Transport

PROGRAM = "understudy ctl"
UNAUTHORIZED = 401


def add(made: argparse.ArgumentParser, parameter: Parameter) -> None:
    """Add a parameter as an option, or as a positional argument if it is required."""
    text = help_of(parameter).replace("%", "%%")
    choices = parameter.choices or None
    if parameter.required:
        metavar = placeholder(parameter)
        made.add_argument(parameter.name, metavar=metavar, type=reader(parameter), choices=choices, help=text)
        return
    if parameter.kind == "flag":
        name, absent = option(parameter), argparse.SUPPRESS
        made.add_argument(name, dest=parameter.name, action="store_const", const=True, default=absent, help=text)
        return
    made.add_argument(
        option(parameter),
        dest=parameter.name,
        type=reader(parameter),
        choices=choices,
        metavar=None if choices else parameter.kind.upper(),
        action="append" if parameter.kind == "names" else "store",
        default=argparse.SUPPRESS,
        help=text,
    )


def placeholder(parameter: Parameter) -> str:
    """Placeholder of a required parameter in a usage line: NAME, or NAME[:PARTITIONS[:CONFIGS]]."""
    more = parameter.field.about.followed_by
    return parameter.name.upper() + "".join(f"[:{name.upper()}" for name in more) + "]" * len(more)


def split_arguments(verb: Verb, given: dict[str, Any]) -> None:
    """Split an argument such as orders:3:cleanup.policy=compact; an option of the same name wins."""
    for parameter in verb.parameters:
        names = parameter.field.about.followed_by
        if not names or parameter.name not in given:
            continue
        given[parameter.name], *more = given[parameter.name].split(":", len(names))
        others = {each.name: each for each in verb.parameters}
        for name, text in zip(names, more, strict=False):
            if text:
                given.setdefault(name, reader(others[name])(text))


def common() -> Parser:
    """Options that every verb takes."""
    made = Parser(add_help=False)
    made.add_argument("--control", metavar="URL", default=argparse.SUPPRESS, help="URL of the control plane")
    made.add_argument("--token", default=argparse.SUPPRESS, help="bearer token of the control plane")
    made.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print the answer as JSON")
    return made


def parser(given: Container[str] | None = None) -> Parser:
    """Parser of all verbs; with `given`, only verbs in it get options, to save time."""
    shared = common()
    made = Parser(
        prog=PROGRAM,
        parents=[shared],
        description="Control a running cluster through its control plane.",
        epilog="The URL defaults to UNDERSTUDY_CONTROL_URL, else to UNDERSTUDY_CONTROL_PORT (9099) on this machine; "
        "the token to UNDERSTUDY_CONTROL_TOKEN.",
    )
    first = made.add_subparsers(metavar="VERB", required=True, parser_class=Parser)
    for group, verbs in groups():
        rest = [verb.name.partition(" ")[2] for verb in verbs]
        about = ", ".join(rest) if all(rest) else verbs[0].help
        inner = first.add_parser(group, help=about, description=about, parents=[shared])
        if given is not None and group not in given:
            continue
        if not all(rest):
            shape(inner, verbs[0])
            continue
        second = inner.add_subparsers(metavar="VERB", required=True, parser_class=Parser)
        for name, verb in zip(rest, verbs, strict=True):
            shape(second.add_parser(name, help=verb.help, description=verb.help, parents=[shared]), verb)
    return made


def shape(made: argparse.ArgumentParser, verb: Verb) -> None:
    """Add the arguments of a verb's path, query and body to its parser."""
    for name in verb.places:
        made.add_argument(name, metavar=name.upper())
    for parameter in verb.parameters:
        add(made, parameter)
    if verb.is_file:
        made.add_argument("--output", "-o", metavar="FILE", default=argparse.SUPPRESS, help="file to write")
    made.set_defaults(verb=verb)


def option(parameter: Parameter) -> str:
    """The parameter's name on the command line."""
    return f"--{parameter.name.replace('_', '-')}"


def unknown(verb: Verb, argument: str) -> str:
    """Error message for an argument that the verb does not take."""
    options = [option(each) for each in verb.parameters if not each.required]
    if argument.startswith("-"):
        return f"no such option: {argument}{hint(argument, [*options, '--control', '--token', '--json'])}"
    takes = f"; its options are {', '.join(options)}" if options else ""
    return f"takes no further argument, such as {argument!r}{takes}"


def address(given: Mapping[str, Any]) -> Address:
    """Address of the control plane: from the command line, else from the environment variables of ctl or the server."""
    port = os.environ.get("UNDERSTUDY_CONTROL_PORT") or "9099"
    url = given.get("control") or os.environ.get("UNDERSTUDY_CONTROL_URL") or f"http://127.0.0.1:{port}"
    token = given.get("token") or os.environ.get("UNDERSTUDY_CONTROL_TOKEN")
    return Address(url if "://" in url else f"http://{url}", token)


def main(argv: Sequence[str]) -> int:
    """Run one verb."""
    known, more = parser(argv).parse_known_args(argv)
    given = vars(known)
    verb: Verb = given.pop("verb")
    if more:
        refuse(f"{PROGRAM} {verb.name}", unknown(verb, more[0].partition("=")[0]))
    effects = [each for each in verb.fields if each.inside == "do" and not each.field.about.goes_with]
    if effects and not any(each.name in given for each in effects):
        ways = ", ".join(map(option, effects))
        refuse(f"{PROGRAM} {verb.name}", f"needs an effect, one of {ways}")
    try:
        split_arguments(verb, given)
    except argparse.ArgumentTypeError as error:
        refuse(f"{PROGRAM} {verb.name}", str(error))
    where = address(given)
    try:
        answer = Transport(where).ask(verb.name, given)
    except UnderstudyError as error:
        unauthorized = isinstance(error, ControlError) and error.status == UNAUTHORIZED
        refuse(PROGRAM, token_missing(where) if unauthorized else str(error), 1)
    show(verb, answer, given)
    return 0


def token_missing(where: Address) -> str:
    """Error message if the control plane requires a token."""
    does = "requires a token" if where.token is None else "refuses this token"
    return f"{where.url} {does}; pass the server's --control-token with --token or in UNDERSTUDY_CONTROL_TOKEN"


def show(verb: Verb, answer: Any, given: Mapping[str, Any]) -> None:
    """Print an answer: bytes as they are, else a table, or JSON with --json."""
    if isinstance(answer, bytes):
        if "output" in given:
            from understudy import output_files

            try:
                output_files.write_new(given["output"], answer, "--output")
            except output_files.OutputFileError as error:
                refuse(f"{PROGRAM} {verb.name}", str(error), 1)
        else:
            sys.stdout.buffer.write(answer)
    elif given.get("json"):
        print(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        for line in lines(verb, answer):
            print(line)
