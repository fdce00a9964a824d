"""Generates the tables of docs/serve.md and docs/control.md from the tables in the code, between two marks.

Usage: python tools/generate_reference.py [--check].
"""

import json
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from understudy.control_api.fields import fields_of
from understudy.control_api.verb import Verb
from understudy.control_api.verbs import VERBS
from understudy.ctl import option, placeholder
from understudy.serve import OPTIONS

BEGIN, END = "<!-- made from the code: tools/generate_reference.py -->", "<!-- end -->"


def options() -> Iterator[str]:
    """One row for each option of `understudy serve`."""
    yield "| option | variable | meaning | default |"
    yield "|---|---|---|---|"
    for each in OPTIONS:
        name = f"--{each.name}" + (f" {each.metavar}" if each.metavar else "")
        again = " Repeatable." if each.repeatable else ""
        default = f"`{each.default}`" if each.default is not None else ""
        yield f"| {code(name)} | `{each.variable}` | {cell(each.help)}.{again} | {default} |"


def verbs() -> Iterator[str]:
    """One row for each verb: HTTP, Python and shell, and what it does."""
    yield "| HTTP | Python | shell: `understudy ctl` | what it does |"
    yield "|---|---|---|---|"
    for verb in VERBS:
        yield f"| {code(http(verb))} | {code(f'kafka.{verb.python}')} | {code(shell(verb))} | {cell(verb.help)} |"
    yield ""
    yield from examples()


def examples() -> Iterator[str]:
    """The calls of the rows that have an example, given in three ways."""
    for verb in VERBS:
        if verb.example is not None:
            yield from (f"{verb.help[0].upper()}{verb.help[1:]}.", "", "```", *example(verb), "```", "")


def example(verb: Verb) -> tuple[str, str, str]:
    """Return a verb's example over HTTP, in Python and in a shell. docs/steering.md has such lines too."""
    given = dict(verb.example or {})
    document = verb.document(given)
    over_http = f"{verb.method} {verb.target(given)}" + (f" {json.dumps(document)}" if document else "")
    attributes, _, rest = verb.python.partition("(")
    places = iter(verb.places)
    attributes = re.sub(r"\[\w+\]", lambda _: f"[{given[next(places)]!r}]", attributes)
    positional = [name for name in rest.rstrip(")").split(", ") if name in given]
    named = [each.name for each in verb.parameters if each.name in given and each.name not in positional]
    arguments = [*(repr(given[name]) for name in positional), *(f"{name}={given[name]!r}" for name in named)]
    in_python = f"kafka.{attributes}({', '.join(arguments)})".replace("'", '"')
    parts = [*verb.name.split(), *(str(given[name]) for name in verb.places)]
    parts += [as_word(given[each.name]) for each in verb.parameters if each.required]
    for each in verb.parameters:
        if not each.required and each.name in given:
            parts += [option(each)] if each.kind == "flag" else [option(each), as_word(given[each.name])]
    return over_http, in_python, f"understudy ctl {shlex.join(parts)}"


def as_word(value: Any) -> str:
    """A value on the command line."""
    if isinstance(value, dict) and all(isinstance(each, str) for each in value.values()):
        return ",".join(f"{name}={each}" for name, each in value.items())
    return json.dumps(value) if isinstance(value, dict) else str(value)


def http(verb: Verb) -> str:
    """Method and path, with the names of query and body."""
    query = "?" + "&".join(f"{name}=" for name in fields_of(verb.query)) if verb.query else ""
    fields = fields_of(verb.body) if verb.body else {}
    inner = ", ".join(name for name, field in fields.items() if not field.about.spread)
    return f"{verb.method} {verb.path}{query}" + (f" {{{inner}}}" if inner else "")


def shell(verb: Verb) -> str:
    """The parts of the command, and what has to follow them."""
    needed = [placeholder(each) for each in verb.parameters if each.required]
    return " ".join([verb.name, *(name.upper() for name in verb.places), *needed])


def code(text: str) -> str:
    """Code in a cell."""
    return f"`{text}`".replace("|", "\\|")


def cell(text: str) -> str:
    """Text in a cell."""
    return text.replace("|", "\\|").replace("<", "&lt;")


PAGES: Mapping[str, Callable[[], Iterator[str]]] = {"docs/serve.md": options, "docs/control.md": verbs}


def main(argv: list[str]) -> int:
    """Write the pages, or with --check report which are stale (exit code 1)."""
    stale = []
    for name, rows in PAGES.items():
        page = ROOT / name
        text = page.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        generated = "\n".join([before + BEGIN, "", *rows(), "", END]) + rest.partition(END)[2]
        if generated != text:
            stale.append(name)
            if "--check" not in argv:
                page.write_text(generated, encoding="utf-8")
    print("stale:" if stale and "--check" in argv else "written:", ", ".join(stale) or "nothing")
    return 1 if stale and "--check" in argv else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
