"""`understudy ctl`: every verb of the control plane as a shell command, generated from the table of verbs.

Exit codes: 0 done, 1 the control plane refused or does not answer, 2 invalid command line.
"""

import argparse
import io
import json
import os
import sys
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from control_api import scenario_file
from control_api.parameters import Parameter
from control_api.spelling import hint
from control_api.verb import Verb
from control_api.verbs import groups
from understudy.argparser import Parser, refuse
from understudy.ctl_values import duration_ms, help_of, reader
from understudy.errors import ControlError, UnderstudyError
from understudy.repeating import EVERY_MS, Lines, can_follow, can_watch, follow, watch
from understudy.text_table import decoded, lines, noted
from understudy.transport import Address, Transport

if TYPE_CHECKING:
    from rich.console import Console

PROGRAM = "understudy ctl"
UNAUTHORIZED = 401
REPEATS = {
    "watch": "redraw the response until Ctrl-C (on a terminal)",
    "follow": "print new rows as they arrive, until Ctrl-C; with --json, one document per line",
}
EVERY = "pause of --watch (2s) and --follow (500ms)"
_LONGEST_MS = 86_400_000  # a day, as for `audit`
RECORDS, RUNS = "scenario record", "scenario run"
DESCRIBED = ("topics show", "groups show", "transactions show")
"""Verbs that Kafka's own tools call `describe`."""


def add(parser: argparse.ArgumentParser, parameter: Parameter) -> None:
    """Add a parameter as an option, or as a positional argument if it is required."""
    text = help_of(parameter).replace("%", "%%")
    choices = parameter.choices or None
    if parameter.required:
        metavar = placeholder(parameter)
        parser.add_argument(parameter.name, metavar=metavar, type=reader(parameter), choices=choices, help=text)
        return
    if parameter.kind == "flag":
        name, absent = option(parameter), argparse.SUPPRESS
        parser.add_argument(name, dest=parameter.name, action="store_const", const=True, default=absent, help=text)
        return
    parser.add_argument(
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
    """Return the placeholder of a required parameter in a usage line: NAME, or NAME[:PARTITIONS[:CONFIGS]]."""
    if parameter.name == "steps":
        return "FILE"
    more = parameter.field.about.followed_by
    return parameter.name.upper() + "".join(f"[:{name.upper()}" for name in more) + "]" * len(more)


def split_arguments(verb: Verb, arguments: dict[str, Any]) -> None:
    """Split an argument such as orders:3:cleanup.policy=compact; an option with the same name takes precedence."""
    for parameter in verb.parameters:
        names = parameter.field.about.followed_by
        if not names or parameter.name not in arguments:
            continue
        arguments[parameter.name], *more = arguments[parameter.name].split(":", len(names))
        others = {each.name: each for each in verb.parameters}
        for name, text in zip(names, more, strict=False):
            if text:
                arguments.setdefault(name, reader(others[name])(text))


def common() -> Parser:
    """Return a parser with the options of every verb."""
    parser = Parser(add_help=False)
    parser.add_argument("--control", metavar="URL", default=argparse.SUPPRESS, help="URL of the control plane")
    parser.add_argument(
        "--cluster", metavar="ID", default=argparse.SUPPRESS, help="id of a cluster that was made there"
    )
    parser.add_argument("--token", default=argparse.SUPPRESS, help="bearer token of the control plane")
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print the response as JSON")
    return parser


def build_parser(names: Container[str] | None = None) -> Parser:
    """Return a parser of all verbs; with `names`, only verbs of these groups get options, to save time."""
    shared = common()
    parser = Parser(
        prog=PROGRAM,
        parents=[shared],
        description="Control a running cluster through its control plane.",
        epilog="The URL defaults to UNDERSTUDY_CONTROL_URL, else to UNDERSTUDY_CONTROL_PORT (9099) on this machine; "
        "the token to UNDERSTUDY_CONTROL_TOKEN.",
    )
    first = parser.add_subparsers(metavar="VERB", required=True, parser_class=Parser)
    for group, verbs in groups():
        rest = [verb.name.partition(" ")[2] for verb in verbs]
        about = ", ".join(rest) if all(rest) else verbs[0].help
        inner = first.add_parser(group, help=about, description=about, parents=[shared])
        if names is not None and group not in names:
            continue
        if not all(rest):
            shape(inner, verbs[0])
            continue
        second = inner.add_subparsers(metavar="VERB", required=True, parser_class=Parser)
        for name, verb in zip(rest, verbs, strict=True):
            aliases = ["describe"] if verb.name in DESCRIBED else []
            verb_parser = second.add_parser(
                name, aliases=aliases, help=verb.help, description=verb.help, parents=[shared]
            )
            shape(verb_parser, verb)
    return parser


def shape(parser: argparse.ArgumentParser, verb: Verb) -> None:
    """Add the arguments of a verb's path, query and body to its parser."""
    for name in verb.places:
        parser.add_argument(name, metavar=name.upper())
    if verb.name == RUNS:
        parser.add_argument("steps", metavar="FILE", help="scenario file, as `scenario record` writes it")
    else:
        for parameter in verb.parameters:
            add(parser, parameter)
    if verb.is_file or verb.name == RECORDS:
        parser.add_argument("--output", "-o", metavar="FILE", default=argparse.SUPPRESS, help="file to write")
    for name, text in REPEATS.items():
        if repeats(verb, name):
            parser.add_argument(f"--{name}", action="store_true", default=argparse.SUPPRESS, help=text)
    if can_watch(verb):
        parser.add_argument("--every", type=duration_ms, metavar="MS", default=argparse.SUPPRESS, help=EVERY)
    parser.set_defaults(verb=verb)


def scenario(path: str) -> scenario_file.Scenario:
    """Read a scenario file, or a list of steps; exits with an explanation if it is invalid."""
    try:
        if path.lstrip().startswith("["):
            return scenario_file.parse("the command line", path)
        return scenario_file.read(path)
    except scenario_file.ScenarioError as error:
        refuse(f"{PROGRAM} {RUNS}", str(error))


def in_file(error: UnderstudyError, file: scenario_file.Scenario) -> str:
    """Return the rejection of a step, with its line in the file."""
    field = str(error.field if isinstance(error, ControlError) else "").split(".")
    if not isinstance(error, ControlError) or field[0] != "steps" or len(field) == 1:
        return str(error)
    return f"{file.path}, line {file.lines[int(field[1])]}, {error.detail}"


def repeats(verb: Verb, name: str) -> bool:
    """Return whether a verb has `--watch` or `--follow`."""
    return can_watch(verb) if name == "watch" else can_follow(verb)


def option(parameter: Parameter) -> str:
    """Return the parameter's name on the command line."""
    return f"--{parameter.name.replace('_', '-')}"


def unknown(verb: Verb, argument: str) -> str:
    """Return the error message for an argument that the verb does not take."""
    options = [option(parameter) for parameter in verb.parameters if not parameter.required and verb.name != RUNS]
    if argument.startswith("-"):
        return f"no such option: {argument}{hint(argument, [*options, '--control', '--cluster', '--token', '--json'])}"
    takes = f"; its options are {', '.join(options)}" if options else ""
    return f"takes no further argument, such as {argument!r}{takes}"


def address(arguments: Mapping[str, Any]) -> Address:
    """Return the control plane's address: from the command line, else from environment variables of ctl or server."""
    port = os.environ.get("UNDERSTUDY_CONTROL_PORT") or "9099"
    url = arguments.get("control") or os.environ.get("UNDERSTUDY_CONTROL_URL") or f"http://127.0.0.1:{port}"
    token = arguments.get("token") or os.environ.get("UNDERSTUDY_CONTROL_TOKEN")
    server = Address(url if "://" in url else f"http://{url}", token)
    return server.of_cluster(arguments["cluster"]) if "cluster" in arguments else server


def check_texts(verb: Verb, texts: object) -> None:
    """Refuse bytes of the command line, the environment or a file that are not UTF-8: nothing can be sent with them."""
    try:
        json.dumps(texts, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        refuse(f"{PROGRAM} {verb.name}", "an argument is not UTF-8 text")


def main(argv: Sequence[str]) -> int:
    """Run one verb."""
    known, more = build_parser(argv).parse_known_args(argv)
    arguments = vars(known)
    verb: Verb = arguments.pop("verb")
    if more:
        refuse(f"{PROGRAM} {verb.name}", unknown(verb, more[0].partition("=")[0]))
    effects = [field for field in verb.fields if field.inside == "do" and not field.field.about.goes_with]
    if effects and not any(effect.name in arguments for effect in effects):
        ways = ", ".join(map(option, effects))
        refuse(f"{PROGRAM} {verb.name}", f"needs an effect, one of {ways}")
    try:
        split_arguments(verb, arguments)
    except argparse.ArgumentTypeError as error:
        refuse(f"{PROGRAM} {verb.name}", str(error))
    where = address(arguments)
    transport = Transport(where)
    file = scenario(arguments["steps"]) if verb.name == RUNS else None
    if file is not None:
        arguments["steps"] = file.steps
    check_texts(verb, [arguments, where.url, where.token])
    if isinstance(sys.stdout, io.TextIOWrapper):  # what its encoding does not have is escaped
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        if not repeat(verb, arguments, transport):
            show(verb, transport.ask(verb.name, arguments), arguments)
    except UnderstudyError as error:
        unauthorized = isinstance(error, ControlError) and error.status == UNAUTHORIZED
        text = str(error) if file is None else in_file(error, file)
        refuse(PROGRAM, token_missing(where) if unauthorized else text, 1)
    return 0


def repeat(verb: Verb, arguments: Mapping[str, Any], transport: Transport) -> bool:
    """Run `--watch` or `--follow` until Ctrl-C; False where neither was asked for."""
    if "watch" not in arguments and "follow" not in arguments:
        return False
    name = "follow" if "follow" in arguments else "watch"
    every_ms = min(arguments.get("every", EVERY_MS[name]), _LONGEST_MS)
    if name == "watch" and not sys.stdout.isatty():
        other = "; --follow prints a line for each new one" if can_follow(verb) else ""
        refuse(f"{PROGRAM} {verb.name}", f"--watch redraws a terminal, and the output goes elsewhere{other}")
    with suppress(KeyboardInterrupt):
        if name == "watch":
            watch(terminal(), verb, lambda: transport.ask(verb.name, arguments), every_ms)
        lines = lines_for(verb, as_json="json" in arguments)
        for rows in follow(verb, partial(transport.ask, verb.name), arguments, partial(time.sleep, every_ms / 1000)):
            shown = {"records read": decoded, "journal list": noted}.get(verb.name) if "json" not in arguments else None
            print_lines(lines.of(rows if shown is None else list(map(shown, rows))))
    return True


def lines_for(verb: Verb, *, as_json: bool) -> Lines:
    """The form of followed rows: JSON, text for people at a terminal, or text for programs."""
    if as_json or not sys.stdout.isatty():
        return Lines(verb.columns, as_json=as_json)
    from understudy import terminal as people

    return Lines(people.columns_to_follow(verb, terminal().width), shown=people.plain_cell)


def print_lines(lines: Iterable[tuple[str, Mapping[str, Any] | None]]) -> None:
    """Print lines and flush, since a program may be waiting for a line; on a terminal, rows with errors in red."""
    out = terminal() if sys.stdout.isatty() else None
    for line, row in lines:
        if out is None:
            print(line, flush=True)
        else:
            bad = row is not None and row.get("error") is not None
            out.print(line, style="bold" if row is None else "red" if bad else "", markup=False, soft_wrap=True)


def terminal() -> "Console":
    """Return the terminal that stdout is; imports rich only for a terminal."""
    from understudy.terminal import console

    return console()


def token_missing(where: Address) -> str:
    """Return the error message if the control plane requires a token."""
    does = "requires a token" if where.token is None else "refuses this token"
    return f"{where.url} {does}; pass the server's --control-token with --token or in UNDERSTUDY_CONTROL_TOKEN"


def show(verb: Verb, answer: Any, arguments: Mapping[str, Any]) -> None:
    """Print a response: bytes unchanged, JSON with --json, else text, on a terminal in colours and columns."""
    if verb.name == RECORDS and "output" in arguments:
        answer = f"{json.dumps(answer, indent=1, ensure_ascii=False)}\n".encode()
    if isinstance(answer, bytes):
        if "output" in arguments:
            from understudy import output_files

            try:
                output_files.write_new(arguments["output"], answer, "--output")
            except output_files.OutputFileError as error:
                refuse(f"{PROGRAM} {verb.name}", str(error), 1)
        else:
            sys.stdout.buffer.write(answer)
    elif arguments.get("json"):
        print(json.dumps(answer, indent=2, ensure_ascii=False))
    elif sys.stdout.isatty():
        from understudy import terminal as people

        people.show(people.console(), verb, answer)
    else:
        for line in lines(verb, answer):
            print(line)
