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


def words(text: str) -> list[str]:
    """The words of the dialect in a text."""
    return PATTERN.findall(text)


@functools.cache
def places() -> dict[str, list[str]]:
    """Area -> each of these words, with its path and line."""
    by_area: dict[str, list[str]] = {}
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for path in listed.stdout.splitlines():
        at = area(path)
        if at is not None and (ROOT / path).is_file():
            lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
            by_area.setdefault(at, []).extend(
                f"{path}:{number}: {word}" for number, line in enumerate(lines, 1) for word in words(line)
            )
    return by_area


@pytest.mark.parametrize("at", sorted(CEILINGS))
def test_the_old_dialect_only_falls(at: str) -> None:
    """Lower the ceiling in the commit that takes words away."""
    counted = places().get(at, [])
    assert len(counted) <= CEILINGS[at], "say it plainly:\n" + "\n".join(counted)


def test_every_area_has_a_ceiling() -> None:
    """A new one begins with none of these words."""
    assert {at for at, counted in places().items() if counted} <= CEILINGS.keys()


def test_the_words_are_counted_where_they_stand() -> None:
    """Within names and sentences; not within longer words."""
    assert len(words("Told anew, be it by whoever says it; nobody shall.")) == 7
    assert words("is_told(said_so)") == ["told", "said"]
    assert not words("a swords' tale: understands, folder, tolder")
