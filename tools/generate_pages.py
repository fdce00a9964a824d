"""Generates the parts of docs/GAPS.md, docs/debugging.md and others that come from the code, each between two marks.

Usage: python tools/generate_pages.py [--check]. The rows of APIs that differ from Kafka's come from the handlers: the
sentences of their docstrings that begin with "Not done:" or "Differs from Kafka:".
"""

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from broker.coordination.group.classic import states as group_states
from broker.coordination.transaction import states as transaction_states
from broker.handlers import APIS
from broker.request.api import ServedVersions
from comparison.command import ledger
from comparison.known_differences import KNOWN
from tests.differential import row_tables
from tools import release_tables

MARK = re.compile(r"(<!-- made from the code: tools/generate_pages\.py (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
ELSEWHERE = re.compile(r"GAPS\.md, |\(no plugins\)|[12][05]0,000|ControllerId")
"""What the page describes in another part: details of a part, plugins, limits on clients, the controller's id."""
BAR = "\\|"
SENTENCE = re.compile(r"(?:Not done|Differs from Kafka): .*?\.(?=\s|$)")


def remarks(served: ServedVersions) -> list[str]:
    """Return what differs from Kafka, by the handler's docstring, if no other part of the page describes it."""
    text = " ".join((sys.modules[served.api.handle.__module__].__doc__ or "").split())
    sentences = [sentence for sentence in SENTENCE.findall(text) if not sentence.startswith("Not done: nothing")]
    own = [sentence for sentence in sentences if not ELSEWHERE.search(sentence)]
    return [sentence.removeprefix("Differs from Kafka: ").replace("Not done:", "Missing:") for sentence in own]


def apis() -> str:
    """Return a row for each difference, with the APIs of the broker listener that have it, in key order."""
    rows: dict[str, list[str]] = {}
    for api in sorted(APIS, key=lambda api: api.key):
        for remark in remarks(api):
            rows.setdefault(remark[0].upper() + remark[1:], []).append(api.key.title)
    lines = [f"| {', '.join(titles)} | {remark.replace('|', BAR)} |" for remark, titles in rows.items()]
    return "\n".join(["| API | what differs |", "|---|---|", *lines])


def divergences() -> str:
    """Return the table of known differences."""
    head = ("id", "API", "field", "Kafka", "Understudy", "why", "since")
    rows = [(e.id, e.api, f"`{e.field}`", e.kafka, e.understudy, e.why, e.since) for e in KNOWN]
    return ledger([head, *rows])


def mermaid(diagram: Callable[[], str]) -> Callable[[], str]:
    """Wrap a diagram in a code block."""
    return lambda: f"```mermaid\n{diagram()}\n```"


PARTS: Mapping[str, Callable[[], str]] = {
    "apis": apis,
    "divergences": divergences,
    "transaction": mermaid(transaction_states.state_diagram),
    "group": mermaid(group_states.state_diagram),
    "releases": release_tables.releases,
    "behaviours": release_tables.behaviours,
    "defaults": release_tables.defaults,
    "removed": release_tables.removed,
    "ranges": release_tables.apis,
    "rows": row_tables.rows_table,
    "mistakes": row_tables.mistakes_table,
    "histories": row_tables.histories_table,
    "kinds": row_tables.kinds_table,
    "triples": row_tables.triples_table,
}
PAGES = ("docs/GAPS.md", "docs/debugging.md", "docs/old-releases.md", "docs/inside/rows.md", "docs/inside/releases.md")


def drawn(text: str) -> str:
    """Return a page with its parts regenerated."""
    return MARK.sub(lambda mark: f"{mark[1]}\n{PARTS[mark[2]]()}\n\n{mark[3]}", text)


def main(argv: list[str]) -> int:
    """Write the pages, or with --check report stale ones (exit code 1)."""
    stale = []
    for name in PAGES:
        text = (ROOT / name).read_text(encoding="utf-8")
        generated = drawn(text)
        if generated != text:
            stale.append(name)
            if "--check" not in argv:
                (ROOT / name).write_text(generated, encoding="utf-8")
    print("stale:" if stale and "--check" in argv else "written:", ", ".join(stale) or "nothing")
    return 1 if stale and "--check" in argv else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
