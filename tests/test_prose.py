"""Plain English: words of the house's old dialect are counted, area by area, and their number may only fall.

Docstrings, messages, names and pages are read by strangers from the Kafka world. Each word below hid a plainer one:
`told` returned, reported or logged; `said` given; `whoever` a noun; `anew` again; `be it` a condition.
"""

import functools
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DIALECT = {
    "told": r"tells?|told|telling",
    "said": r"said|says?",
    "whoever": r"whoever|whatever|whichever",
    "nobody": r"nobody|somebody",
    "anew": r"anew",
    "be it": r"be it",
    "shall": r"shall",
    "stands": r"stands?|stood",
    "words": r"words?",
    "wish": r"wish|wishes",
    "lacks": r"lacks?|lacking",
    "lent": r"lent|lend",
    "room": r"rooms?",
    "door": r"doors?",
}
PATTERN = re.compile(rf"(?<![a-z])(?:{'|'.join(DIALECT.values())})(?![a-z])", re.IGNORECASE)
CEILINGS = {
    "benchmarks": 0,
    "broker": 1,
    "comparison": 2,
    "docs": 0,
    "examples": 0,
    "pipeline": 1,
    "protocol": 0,
    "proxy": 0,
    "registry": 0,
    "storage": 0,
    "tests": 8,
    "tools": 0,
    "top level": 0,
    "understudy": 1,
}
"""Area -> how many of these words it has at most. Lower a number when it has fallen; never raise one."""
OWN = {"tests/test_prose.py"}


def area(path: str) -> str | None:
    """The area that a file belongs to; None: it is not ours to word (the specification has its own history)."""
    if path in OWN or path.startswith("docs/specification/") or not path.endswith((".py", ".md", ".html", ".sql")):
        return None
    return path.partition("/")[0] if "/" in path else "top level"


def count(text: str) -> int:
    """How many words of the dialect a text has."""
    return len(PATTERN.findall(text))


@functools.cache
def counts() -> dict[str, int]:
    """Area -> how many there are."""
    found: dict[str, int] = {}
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for path in listed.stdout.splitlines():
        at = area(path)
        if at is not None and (ROOT / path).is_file():
            found[at] = found.get(at, 0) + count((ROOT / path).read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("at", sorted(CEILINGS))
def test_the_old_dialect_only_falls(at: str) -> None:
    """Lower the ceiling in the commit that takes words away."""
    assert counts().get(at, 0) <= CEILINGS[at], (
        f"{at}: say it plainly; `git diff | grep -iE 'told|said|nobody|stands'` shows where"
    )


def test_every_area_has_a_ceiling() -> None:
    """A new one begins with none of these words."""
    assert {at for at, number in counts().items() if number} <= CEILINGS.keys()


def test_the_words_are_counted_where_they_stand() -> None:
    """Within names and sentences; not within longer words."""
    assert count("Told anew, be it by whoever says it; nobody shall.") == 7
    assert count("is_told(said_so)") == 2
    assert count("a swords' tale: understands, folder, tolder") == 0
