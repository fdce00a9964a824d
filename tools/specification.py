"""Citations of docs/specification: finds the ids that a text cites, and their places.

Usage: python tools/specification.py core D.2 V11 prints the place of an id and its text: a row, or a
whole section. A citation is a document, a
section, and perhaps a rule of it (``groups A.5 R7``); or a document and a scenario (``core PRD-17``). More places may
follow, joined by a comma, "and" or "to". docs/specification/README.md explains the ids.
"""

import functools
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "specification"
DOCUMENTS = ("core", "groups", "transactions", "conformance")

SECTION = r"(?:appendix [1-3]\b|(?:[A-I]|0)(?:\.\d+)+)"
RULE = r"[A-Z]{1,2}\d{1,2}(?:\.\d+)*"
SCENARIO = r"(?!KIP-|SHA-|UTF-)[A-Z]+\d*-\d{2}"
_PLACE = rf"(?:{SECTION}(?:\s+{RULE})?|{SCENARIO})(?![\w-])"
_CHAPTER = rf"\d(?:\.\d)?(?:\s+{RULE})?(?![\w.-])"  # of conformance, whose chapters are numbers
_JOINED = r"(?:,\s+(?:and\s+)?|\s+and\s+|\s+to\s+)"
_NEXT = rf"(?:{_PLACE}|{RULE}(?![\w-]))"
CITATION = re.compile(
    rf"\b(?:(?P<document>core|groups|transactions)\s+(?P<place>{_PLACE})(?P<more>(?:{_JOINED}{_NEXT})*)"
    rf"|(?P<conformance>conformance)\s+(?P<chapter>{_CHAPTER})(?P<rules>(?:{_JOINED}{RULE}(?![\w-]))*))"
)
ANCHOR = re.compile(r'<a id="([^"]+)"></a>')


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation of one id in a text.

    Attributes:
        document: one of `DOCUMENTS`.
        place: the rest, such as ``D.2 V11`` or ``PRD-17``.
        start: its position in the text, in characters; for an id that shares a prefix, that of its own part.
        end: where it ends.
    """

    document: str
    place: str
    start: int
    end: int

    def __str__(self) -> str:
        return f"{self.document} {self.place}"


@dataclass(frozen=True, slots=True)
class Anchor:
    """The location of an id: a page, relative to docs/specification, and a line, counted from 1."""

    page: str
    name: str
    line: int


def slug(place: str) -> str:
    """Return the name of a place's anchor: ``D.2 V11`` is ``d-2-v11``."""
    return re.sub(r"[^a-z0-9]+", "-", place.lower()).strip("-")


@functools.cache
def anchors() -> Mapping[str, Mapping[str, Anchor]]:
    """Return document -> anchor's name -> anchor.

    Raises:
        ValueError: two places of a document have the same anchor.
    """
    by_document: dict[str, dict[str, Anchor]] = {document: {} for document in DOCUMENTS}
    for path in sorted(FOLDER.glob("*/*.md")):
        names, page = by_document[path.parent.name], path.relative_to(FOLDER).as_posix()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            for name in ANCHOR.findall(line):
                if name in names:
                    raise ValueError(f"{page}:{number}: {name} is also in {names[name].page}:{names[name].line}")
                names[name] = Anchor(page, name, number)
    return by_document


def citations(text: str) -> Iterator[Citation]:
    """Yield every id that a text cites, in the order of the text."""
    for match in CITATION.finditer(text):
        document = match["document"] or match["conformance"]
        first, rest = ("place", "more") if match["document"] else ("chapter", "rules")
        yield Citation(document, " ".join(match[first].split()), match.start(), match.end(first))
        head = re.match(rf"{SECTION}|{_CHAPTER}", match[first])
        section = re.sub(rf"\s+{RULE}$", "", head[0]) if head else ""
        for each in re.finditer(rf"{_JOINED}({_NEXT})", match[rest]):
            named, place = re.match(SECTION, each[1]), " ".join(each[1].split())
            section = named[0] if named else section
            alone = named or re.match(SCENARIO, place)
            start = match.start(rest) + each.start(1)
            yield Citation(document, place if alone else f"{section} {place}", start, start + len(each[1]))


def resolve(citation: Citation) -> Anchor | None:
    """Return the anchor of a cited id; ``None`` if the specification does not have it."""
    return anchors()[citation.document].get(slug(citation.place))


def link(document: str, place: str) -> str:
    """Return the link to an id for pages in docs/inside/, such as ``../specification/core/d-produce.md#d-2-v11``.

    Raises:
        KeyError: the specification does not have it.
    """
    anchor = anchors()[document][slug(place)]
    return f"../{FOLDER.name}/{anchor.page}#{anchor.name}"


def text_of(anchor: Anchor) -> str:
    """Return the line of an id without its anchors; of a heading, its section up to the next heading of its level."""
    lines = (FOLDER / anchor.page).read_text(encoding="utf-8").splitlines()[anchor.line - 1 :]
    level = len(lines[0]) - len(lines[0].lstrip("#"))
    if level:
        ends = (at for at, line in enumerate(lines) if at and re.match(rf"#{{1,{level}}} ", line))
        lines = lines[: next(ends, len(lines))]
    else:
        lines = lines[:1]
    return "\n".join(ANCHOR.sub("", line).strip() for line in lines).strip()


def main(argv: list[str]) -> int:
    """Print the place and the text of each cited id; return 1 if one of them does not exist."""
    cited = list(citations(" ".join(argv)))
    for citation in cited:
        anchor = resolve(citation)
        if anchor is None:
            print(f"{citation}: the specification has no such id")
            return 1
        print(f"docs/specification/{anchor.page}:{anchor.line}", text_of(anchor), sep="\n")
    if not cited:
        print("which id? For example: core D.2 V11")
    return 0 if cited else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
