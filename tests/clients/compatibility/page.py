"""docs/compatibility.md, as the nightly run writes it."""

from collections.abc import Mapping

from broker.releases import NAMES
from tests.clients.compatibility.matrix import CLIENTS, GOOD
from tests.clients.targets import ROOT

PAGE = ROOT / "docs" / "compatibility.md"
HEAD = """# Clients of many releases with clusters of many releases

Written by the run that proves it, every night: `tests/clients/compatibility`. Each client plays four things against
Understudy with [`--as-version`](old-brokers.md): it produces (compressed), produces idempotently, reads in a group and
commits, and runs an aborted and a committed transaction that writes and takes offsets along; the Java clients describe
a topic's settings as well. "ok" is all of it. Otherwise the cell says what failed, and how.

The same was played against real brokers: of the releases whose name is bold. Where that came out otherwise, the cell
says so too: "(Kafka: ...)".

"""


def played_releases() -> tuple[str, ...]:
    """All that can be played."""
    return NAMES


def drawn(found: Mapping[str, Mapping[str, str]], recorded: Mapping[str, Mapping[str, str]]) -> str:
    """The page: a row for each release, a column for each client."""
    rows = [f"| as | {' | '.join(CLIENTS)} |", f"|{'---|' * (len(CLIENTS) + 1)}"]
    for name in played_releases():
        cells = [_cell(found[client][name], recorded.get(client, {}).get(name)) for client in CLIENTS]
        real = all(name in recorded.get(client, {}) for client in CLIENTS)
        rows.append(f"| {f'**{name}**' if real else name} | {' | '.join(cells)} |")
    return HEAD + "\n".join(rows) + "\n"


def _cell(ours: str, real: str | None) -> str:
    text = "ok" if ours == GOOD else ours
    return text if real in (ours, None) else f"{text} (Kafka: {real})"
