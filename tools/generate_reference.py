"""Writes the tables of docs/serve.md and docs/control.md from the tables in the code, between two marks.

Usage: python tools/generate_reference.py [--check].
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from understudy.serve import OPTIONS
from understudy.verbs import VERBS, Verb

BEGIN, END = "<!-- made from the code: tools/generate_reference.py -->", "<!-- end -->"


def options() -> Iterator[str]:
    """One row for each option of `understudy serve`."""
    yield "| option | variable | meaning | default |"
    yield "|---|---|---|---|"
    for option in OPTIONS:
        if option.hidden:
            continue
        name = f"--{option.name}" + (f" {option.metavar}" if option.metavar else "")
        again = " Repeatable." if option.repeatable else ""
        default = f"`{option.default}`" if option.default is not None else ""
        yield f"| {code(name)} | `{option.variable}` | {cell(option.help)}.{again} | {default} |"


def verbs() -> Iterator[str]:
    """One row for each verb: the three doors, and what it does."""
    yield "| HTTP | Python | shell: `understudy ctl` | what it does |"
    yield "|---|---|---|---|"
    for verb in VERBS:
        yield f"| {code(http(verb))} | {code(f'kafka.{verb.python}')} | {code(shell(verb))} | {cell(verb.help)} |"


def http(verb: Verb) -> str:
    """Method and path, with the names of query and body."""
    query = "?" + "&".join(f"{row.name}=" for row in verb.query) if verb.query else ""
    inner = [row.name for row in verb.body if "." not in row.place and row.place != "*"]
    inner += sorted({row.place.partition(".")[0] for row in verb.body if "." in row.place})
    return f"{verb.method} {verb.path}{query}" + (f" {{{', '.join(inner)}}}" if inner else "")


def shell(verb: Verb) -> str:
    """The words, and what has to follow them."""
    needed = [*verb.places, *(row.name for row in (*verb.query, *verb.body) if row.required)]
    return " ".join([verb.words, *(name.upper() for name in needed)])


def code(text: str) -> str:
    """Code in a cell."""
    return f"`{text}`".replace("|", "\\|")


def cell(text: str) -> str:
    """Text in a cell."""
    return text.replace("|", "\\|").replace("<", "&lt;")


PAGES: Mapping[str, Callable[[], Iterator[str]]] = {"docs/serve.md": options, "docs/control.md": verbs}


def main(argv: list[str]) -> int:
    """Write the pages, or with --check say which are stale (exit code 1)."""
    stale = []
    for name, rows in PAGES.items():
        page = ROOT / name
        text = page.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        made = "\n".join([before + BEGIN, "", *rows(), "", END]) + rest.partition(END)[2]
        if made != text:
            stale.append(name)
            if "--check" not in argv:
                page.write_text(made, encoding="utf-8")
    print("stale:" if stale and "--check" in argv else "written:", ", ".join(stale) or "nothing")
    return 1 if stale and "--check" in argv else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
