"""Generates the parts of GAPS.md, docs/states.md and other pages that come from the code, each between two marks.

Usage: python tools/generate_pages.py [--check]. The rows of served APIs come from the handlers: their versions, and the
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
from broker.request.api import AnyApi
from comparison.command import ledger
from comparison.known_differences import KNOWN
from protocol.apis import ApiKey
from tests.differential import row_tables
from tools import release_tables

# APIs of Kafka 4.3's broker listener that are not served here: Kafka's versions, and their subject.
NOT_SERVED: Mapping[ApiKey, tuple[str, str]] = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: ("0-1", "consumer groups (KIP-848)"),
    ApiKey.CONSUMER_GROUP_DESCRIBE: ("0-1", "consumer groups (KIP-848)"),
    ApiKey.SHARE_GROUP_HEARTBEAT: ("1", "share groups (KIP-932)"),
    ApiKey.SHARE_GROUP_DESCRIBE: ("1", "share groups (KIP-932)"),
    ApiKey.SHARE_FETCH: ("1-2", "share groups (KIP-932)"),
    ApiKey.SHARE_ACKNOWLEDGE: ("1-2", "share groups (KIP-932)"),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: ("0", "share groups (KIP-932), between brokers"),
    ApiKey.READ_SHARE_GROUP_STATE: ("0", "share groups (KIP-932), between brokers"),
    ApiKey.WRITE_SHARE_GROUP_STATE: ("0-1", "share groups (KIP-932), between brokers"),
    ApiKey.DELETE_SHARE_GROUP_STATE: ("0", "share groups (KIP-932), between brokers"),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: ("0-1", "share groups (KIP-932), between brokers"),
    ApiKey.STREAMS_GROUP_HEARTBEAT: ("0-1", "streams groups (KIP-1071)"),
    ApiKey.STREAMS_GROUP_DESCRIBE: ("0-1", "streams groups (KIP-1071)"),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: ("0-1", "share groups (KIP-932)"),
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: ("0", "share groups (KIP-932)"),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: ("0", "share groups (KIP-932)"),
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: ("0", "streams groups (KIP-1331)"),
}
MARK = re.compile(r"(<!-- made from the code: tools/generate_pages\.py (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
SENTENCE = re.compile(r"(?:Not done|Differs from Kafka): .*?\.(?=\s|$)")


def versions(api: AnyApi) -> str:
    """Format a range such as ``3-13``; a single version is one number."""
    low, high = api.versions
    return str(low) if low == high else f"{low}-{high}"


def differences(api: AnyApi) -> str:
    """Return the remarks of the handler's docstring."""
    text = " ".join((sys.modules[api.handle.__module__].__doc__ or "").split())
    sentences = [sentence for sentence in SENTENCE.findall(text) if sentence != "Not done: nothing."]
    return " ".join(sentences).replace("|", "\\|") or "Nothing."


def apis() -> str:
    """Return a row for each API of the broker listener, in key order."""
    rows = {int(api.key): f"| {api.key:d} | {api.key.title} | {versions(api)} | {differences(api)} |" for api in APIS}
    for key, (theirs, feature) in NOT_SERVED.items():
        if key not in rows:
            rows[int(key)] = f"| {key:d} | {key.title} | - | Not served (Kafka: {theirs}): {feature}. |"
    head = ["| key | API | versions | what differs |", "|---|---|---|---|"]
    return "\n".join([*head, *(rows[key] for key in sorted(rows))])


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
PAGES = ("docs/GAPS.md", "docs/states.md", "docs/divergences.md", "docs/rows.md", "docs/releases.md")


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
