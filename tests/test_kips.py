"""``docs/inside/kips.md`` names only tests that exist, and proves everything but what is a client's matter."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "inside" / "kips.md").read_text(encoding="utf-8")
CLIENTS_MATTER = ("enable.idempotence", "new exceptions")


def test_every_proof_exists() -> None:
    """A name in the page is the name of a test."""
    known = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        known |= set(re.findall(r"^\s*(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    named = re.findall(r"`(test_\w+)`", PAGE)
    assert len(named) > 80
    assert sorted(set(named) - known) == []


def test_every_sentence_has_a_proof() -> None:
    """The last column is empty for clients' matters alone."""
    rows = [
        line
        for line in PAGE.splitlines()
        if line.startswith("| ") and not line.startswith(("| statement", "| proposal"))
    ]
    unproven = [row for row in rows if not row.rstrip().endswith("` |")]
    assert [row for row in unproven if not any(subject in row for subject in CLIENTS_MATTER)] == []
    assert len(unproven) == len(CLIENTS_MATTER)
