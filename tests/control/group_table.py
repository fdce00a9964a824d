"""The table in docs/troubleshooting.md: each way in which a consumer gets nothing, its sentence, and its test."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
_ROW = re.compile(
    r"\| (?P<way>[^|]+) \| ``(?P<sentence>.+?)\s?`` \| `(?P<test>\w+)`(?: \(\*(?P<where>why|report)\*\))? \|"
)


class Row(NamedTuple):
    """What happened, the sentence, also as a pattern, and whether `why` and the report have it."""

    way: str
    sentence: str
    pattern: str
    explained: bool
    reported: bool


def rows() -> dict[str, Row]:
    """Name of the function that brings it about -> its row."""
    table = {}
    for line in (ROOT / "docs" / "troubleshooting.md").read_text().splitlines():
        if line.startswith("| ") and "``" in line:
            match = _ROW.fullmatch(line)
            assert match is not None, line
            pattern = ".*".join(map(re.escape, match["sentence"].split("...")))
            assert match["test"] not in table, line
            table[match["test"]] = Row(
                match["way"], match["sentence"], pattern, match["where"] != "report", match["where"] != "why"
            )
    return table
