"""Generates the tables of docs/serve.md and docs/control.md from the tables in the code, between two marks.

Usage: python tools/generate_reference.py [--check].
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from control_api.calls import call
from control_api.fields import fields_of
from control_api.verb import Verb
from control_api.verbs import VERBS
from tools.marked import replaced
from understudy.ctl import placeholder
from understudy.serve import OPTIONS

MARK = "<!-- made from the code: tools/generate_reference.py -->"


def options() -> Iterator[str]:
    """Return a row for each option of `understudy serve`."""
    yield "| option | variable | meaning | default |"
    yield "|---|---|---|---|"
    for each in OPTIONS:
        name = f"--{each.name}" + (f" {each.metavar}" if each.metavar else "")
        again = " Repeatable." if each.repeatable else ""
        default = f"`{each.default}`" if each.default is not None else ""
        yield f"| {code(name)} | `{each.variable}` | {cell(each.help)}.{again} | {default} |"


def verbs() -> Iterator[str]:
    """Return a row for each verb: HTTP, Python and shell, and its description."""
    yield "| HTTP | Python | shell: `understudy ctl` | what it does |"
    yield "|---|---|---|---|"
    for verb in VERBS:
        yield f"| {code(http(verb))} | {code(f'kafka.{verb.python}')} | {code(shell(verb))} | {cell(verb.help)} |"
    yield ""
    yield from examples()


def examples() -> Iterator[str]:
    """Return the calls of the rows that have an example, in three forms."""
    for verb in VERBS:
        if verb.example is not None:
            yield from (f"{verb.help[0].upper()}{verb.help[1:]}.", "", "```", *example(verb), "```", "")


def example(verb: Verb) -> tuple[str, str, str]:
    """Return a verb's example over HTTP, in Python and in a shell. docs/faults-and-time.md has such lines too."""
    return call(verb, verb.example or {})


def http(verb: Verb) -> str:
    """Return method and path, with the names of query and body."""
    query = "?" + "&".join(f"{name}=" for name in fields_of(verb.query)) if verb.query else ""
    fields = fields_of(verb.body) if verb.body else {}
    inner = ", ".join(name for name, field in fields.items() if not field.about.spread)
    return f"{verb.method} {verb.path}{query}" + (f" {{{inner}}}" if inner else "")


def shell(verb: Verb) -> str:
    """Return the parts of the command, and what must follow them."""
    needed = [placeholder(each) for each in verb.parameters if each.required]
    return " ".join([verb.name, *(name.upper() for name in verb.places), *needed])


def code(text: str) -> str:
    """Format code for a cell."""
    return f"`{text}`".replace("|", "\\|")


def cell(text: str) -> str:
    """Escape text for a cell."""
    return text.replace("|", "\\|").replace("<", "&lt;")


PAGES: Mapping[str, Callable[[], Iterator[str]]] = {"docs/serve.md": options, "docs/control.md": verbs}


def main(argv: list[str]) -> int:
    """Write the pages, or with --check report stale ones (exit code 1)."""
    stale = []
    for name, rows in PAGES.items():
        page = ROOT / name
        text = page.read_text(encoding="utf-8")
        generated = replaced(text, MARK, "\n".join(rows()))
        if generated != text:
            stale.append(name)
            if "--check" not in argv:
                page.write_text(generated, encoding="utf-8")
    print("stale:" if stale and "--check" in argv else "written:", ", ".join(stale) or "nothing")
    return 1 if stale and "--check" in argv else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
