"""Makes the blocking client (understudy/client) from the asynchronous one (understudy/aio), line by line.

Usage: python tools/generate_client.py [--check]. A comment `# sync: code` becomes code in the blocking twin.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE, TARGET = ROOT / "understudy" / "aio", ROOT / "understudy" / "client"
HEADER = "# Made from understudy/aio/{name} by tools/generate_client.py: change it there.\n"

# In this order; the first column is a regular expression.
REPLACEMENTS = (
    (r"^from understudy\.waiting import .*\n", ""),
    (r"from collections\.abc import Awaitable, ", "from collections.abc import "),
    (r"Awaitable\[Any\]", "Any"),
    (r"Pending\[(\w+)\]", r"\1"),
    (r"return Pending\((.*)\)$", r"return \1"),
    (r"await in_thread\(([\w.]+), (.*)\)$", r"\1(\2)"),
    (r"await in_thread\(([\w.]+)\)$", r"\1()"),
    (r"async def __a(enter|exit)__", r"def __\1__"),
    (r"async def ", "def "),
    (r"await ", ""),
    (r"\bAsync([A-Z])", r"\1"),
    (r"\ba(start|connect)\b", r"\1"),
    (r"understudy\.aio", "understudy.client"),
    (r"steered from Python without blocking, on asyncio or trio", "steered from Python, waiting for each answer"),
    (r"^`understudy\.client` is made from this package by tools/generate_client\.py\. ", ""),
)


def blocking(text: str) -> str:
    """The blocking twin of one module."""
    lines = []
    for line in text.splitlines(keepends=True):
        marked = re.match(r"( *)# sync: ?(.*\n)", line)
        if marked:
            lines.append((marked[1] + marked[2]) if marked[2].strip() else "\n")
            continue
        for pattern, replacement in REPLACEMENTS:
            line = re.sub(pattern, replacement, line, flags=re.MULTILINE)  # noqa: PLW2901 - one pass after the other
        lines.append(line)
    text = "".join(lines)
    return text.replace("TYPE_CHECKING\nfrom typing import Any", "TYPE_CHECKING, Any")


def main(argv: list[str]) -> int:
    """Write the twins, or with --check say which are stale (exit code 1)."""
    stale = []
    for source in sorted(SOURCE.glob("*.py")):
        target = TARGET / source.name
        text = HEADER.format(name=source.name) + blocking(source.read_text(encoding="utf-8"))
        if target.exists() and target.read_text(encoding="utf-8") == text:
            continue
        stale.append(source.name)
        if "--check" not in argv:
            TARGET.mkdir(exist_ok=True)
            target.write_text(text, encoding="utf-8")
    print("stale:" if stale and "--check" in argv else "written:", ", ".join(stale) or "nothing")
    return 1 if stale and "--check" in argv else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
