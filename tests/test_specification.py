"""docs/specification: citations of it lead to a rule, and name their document."""

import ast
import functools
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.differential import rows
from tests.test_house import files, place, python_files, tree
from tools.specification import (
    ANCHOR,
    CITATION,
    DOCUMENTS,
    FOLDER,
    RULE,
    SCENARIO,
    SECTION,
    anchors,
    citations,
    link,
    main,
    resolve,
    slug,
)

ROOT = Path(__file__).resolve().parent.parent
HISTORIES = ROOT / "tests" / "differential" / "histories"
PACKAGES = (
    "broker",
    "storage",
    "protocol",
    "pipeline",
    "comparison",
    "proxy",
    "registry",
    "simulator",
    "understudy",
    "tools",
    "benchmarks",
)
PAGES = sorted(FOLDER.rglob("*.md"))
LINK = re.compile(r"\[([^\]\[]*)\]\(([^)#]*)#([^)]+)\)")
LIKE_AN_ID = re.compile(rf"(?<![\w./{{-])(?:(?!0\.){SECTION}(?:\s{RULE})?|{SCENARIO}|{RULE})(?![\w/-])")
OTHER_NAMES = {"S3"}
"""Also the name of something else: object stores."""
ABOUT_IDS = {ROOT / "tools" / "specification.py", Path(__file__).resolve()}
"""Files that speak of ids as such."""


def texts() -> Iterator[tuple[Path, str]]:
    """Every file that can be read."""
    for path in files():
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def lost(text: str) -> list[str]:
    """The ids that a text cites and the specification does not have."""
    return [str(citation) for citation in citations(text) if resolve(citation) is None]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The docstrings and comments of a file, with their lines; none of a file without ids: most are not taken apart."""
    source = path.read_text(encoding="utf-8")
    if not bare(source):
        return
    documented = {
        node.value.lineno
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    }
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and token.start[0] in documented):
            yield token.start[0], token.string


@functools.cache
def known(place: str) -> bool:
    """Whether that is an id of some document, such as ``D.2``, ``PRD-17`` or ``V11``."""
    end = slug(place)
    return any(name == end or name.endswith(f"-{end}") for names in anchors().values() for name in names)


def bare(text: str) -> list[str]:
    """Ids of the specification that a text names without their document."""
    cited = [match.span() for match in CITATION.finditer(text)]
    return [
        match[0]
        for match in LIKE_AN_ID.finditer(text)
        if not any(start <= match.start() < end for start, end in cited)
        and match[0] not in OTHER_NAMES
        and known(match[0])
    ]


@pytest.mark.slow
def test_every_citation_leads_to_its_rule() -> None:
    """In code, tests, SQL, JSON and pages alike."""
    cited = [(path, citation) for path, text in texts() for citation in citations(text)]
    assert len(cited) > 1500
    assert {citation.document for _, citation in cited} == set(DOCUMENTS)
    unknown = [f"{path.relative_to(ROOT)}: {citation}" for path, citation in cited if resolve(citation) is None]
    assert unknown == []


def test_a_citation_that_leads_nowhere_is_noticed() -> None:
    """Alone, at the end of a row, and over the end of a line."""
    doc = DOCUMENTS[0]
    assert lost(f"see {doc} D.2 V11 and {doc} PRD-17") == []
    assert lost(f"see {doc} D.2 V99") == [f"{doc} D.2 V99"]
    assert lost(f"{doc} B.7 T13 and T99, {doc} F.7.3, F.7.99") == [f"{doc} B.7 T99", f"{doc} F.7.99"]
    assert lost(f"({doc}\n    PRD-99), {doc} D.2\nto D.99") == [f"{doc} PRD-99", f"{doc} D.99"]
    assert lost(f"{DOCUMENTS[3]} 3 I09 and I99") == [f"{DOCUMENTS[3]} 3 I99"]


@pytest.mark.slow
@pytest.mark.parametrize("folder", [*PACKAGES, "tests"])
def test_no_id_is_without_its_document_in_docstrings_and_comments(folder: str) -> None:
    """``core D.2 V11``, not ``V11``: a reader does not have to guess the document."""
    bare_ids = {
        f"{place(path, line + text[: text.index(name)].count(chr(10)))}: {name}"
        for path in set(python_files(folder)) - ABOUT_IDS
        for line, text in prose(path)
        for name in bare(text)
    }
    assert sorted(bare_ids) == []


@pytest.mark.slow
def test_no_rule_is_named_alone_to_users() -> None:
    """A string that is an id, alone or in front of a KIP, names its document."""
    named = re.compile(rf"(?:{SECTION} )?{RULE}(?:(?:, | to | before ).*)?")
    alone = [
        f"{place(path, node.lineno)}: {node.value}"
        for path in python_files("broker", "storage")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and named.fullmatch(node.value)
        if bare(node.value)
    ]
    assert alone == []
    assert named.fullmatch("S9 before KIP-360")
    assert bare("S9 before KIP-360") == ["S9"]


def test_an_id_without_its_document_is_noticed() -> None:
    """A rule, a section, a scenario, an item, beside some that are cited in full and names that look like ids."""
    doc = DOCUMENTS[0]
    assert bare("R7: complete the join phase (A.5 R7.4), as in PRD-17; see F.2.3") == [
        "R7",
        "A.5 R7.4",
        "PRD-17",
        "F.2.3",
    ]
    assert bare(f"{doc} D.2 V11 to V13, D.3 and PRD-17; RE2, KIP-98, UTF-16, TV2, S3, V99") == []


def test_every_scenario_is_in_the_specification() -> None:
    """Those that the ledger of rows counts, and no other."""
    for document, kinds in rows.ROWS.items():
        counted = {slug(f"{kind}-{n:02}") for kind, (low, high) in kinds.items() for n in range(low, high + 1)}
        written = {
            name for name in anchors()[document] if re.fullmatch(r"[a-z][a-z0-9]+-\d\d", name) and name[1] != "-"
        }
        assert counted == written


def test_every_scenario_that_a_test_names_is_in_the_specification() -> None:
    """Each row id in a test's name, such as ``test_PRD_17_...``, is in the specification."""
    kinds = {kind for part in rows.ROWS.values() for kind in part}
    cited_rows = []
    for path in python_files("tests"):
        name = path.relative_to(ROOT).as_posix()
        for test in rows.TEST.findall(path.read_text(encoding="utf-8")):
            named = [kind for kind, _ in rows.NAMED.findall(test) if kind in kinds]
            cited = rows.ids(rows.part_of(name), test) or rows.ids(None, test)
            cited_rows += cited
            assert bool(named) == bool(cited), f"{name} {test}"
    assert len(set(cited_rows)) > 400
    assert [row for row in cited_rows if row.partition(" ")[2].lower() not in anchors()[row.partition(" ")[0]]] == []


def test_the_page_of_rows_links_those_that_did_not_pass_on_both() -> None:
    """To its anchor, in the specification's order."""
    page = (ROOT / "docs" / "inside" / "rows.md").read_text(encoding="utf-8")
    linked = re.findall(r"\[(\w+ [A-Z0-9]+-\d+)\]\((../specification[^)]+)\)", page)
    listed = [each for each in rows.rows(rows.recorded()) if each.status != rows.BOTH or each.why]
    assert sorted(linked) == sorted((f"{each.part} {each.id}", link(each.part, each.id)) for each in listed)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(FOLDER)))
def test_links_in_the_specification_lead_to_what_they_name(page: Path) -> None:
    """The anchor exists on the page that is named, and is the one of the id in the link's text."""
    wrong = []
    for text, target, name in LINK.findall(page.read_text(encoding="utf-8")):
        there = (page.parent / target).resolve() if target else page
        if f'<a id="{name}"></a>' not in there.read_text(encoding="utf-8"):
            wrong.append(f"[{text}] leads to #{name}, which is not there")
        elif CITATION.fullmatch(text) or re.fullmatch(rf"{SECTION}(?: {RULE})?", text):
            named = text.partition(" ")[2] if CITATION.fullmatch(text) else text
            if slug(named) != name:
                wrong.append(f"[{text}] leads to #{name}")
    assert wrong == []


def test_every_section_and_every_numbered_rule_has_an_anchor() -> None:
    """Headings with a number, and rows whose first cell is an id."""
    missing = []
    for page in PAGES:
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), start=1):
            numbered = re.match(rf"#+ {SECTION}|\| (?:{RULE}|{SCENARIO})(?: \([^)]*\))? \|", line)
            if numbered and not ANCHOR.search(line):
                missing.append(place(page, number))
    assert missing == []


def test_every_correction_names_what_proved_it() -> None:
    """A recorded history, a test, or another section."""
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    notes = re.findall(r"\*\(corrected(.*?)\)\*", text, re.IGNORECASE | re.DOTALL)
    histories = {name for note in notes for name in re.findall(r"\[`([\w-]+)`\]", note)}
    tests = {name for note in notes for name in re.findall(r"(?<!\[)`(test_\w+)`", note)}
    assert len(notes) >= 14
    assert len(histories) >= 12
    assert [name for name in histories if not (HISTORIES / f"{name}.json").exists()] == []
    source = "".join(path.read_text(encoding="utf-8") for path in python_files("tests"))
    assert [name for name in tests if f"def {name}(" not in source] == []
    assert [note for note in notes if not (re.search(r"`[\w-]+`", note) or any(citations(note)))] == []


def test_the_specification_is_not_about_who_wrote_it() -> None:
    """It does not mention machines and files outside the repository."""
    outside = re.compile(r"held.?out|\bworktree|/work\b", re.IGNORECASE)
    assert [page for page in PAGES if outside.search(page.read_text(encoding="utf-8"))] == []


def test_a_citation_prints_its_row_or_its_whole_section(capsys: pytest.CaptureFixture[str]) -> None:
    """A rule prints its row; a section its heading and tables, up to the next heading of its level."""
    assert main(["transactions", "C.4", "O8"]) == 0
    place, row = capsys.readouterr().out.splitlines()
    assert (place.partition(":")[0], row[:6]) == ("docs/specification/transactions/c-requests.md", "| O8 |")
    assert main(["transactions", "C.4"]) == 0
    _, heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.startswith("## C.4 ")
    assert row in lines
    assert not any(line.startswith("## ") for line in lines)
    assert main(["transactions", "C.99"]) == 1
