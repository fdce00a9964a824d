"""docs/compatibility.md, as the nightly run writes it."""

from collections.abc import Mapping, Sequence

from broker.releases import NAMES
from tests.clients.compatibility.players import GOOD, KINDS
from tests.clients.targets import ROOT

PAGE = ROOT / "docs" / "compatibility.md"
HEAD = """# Client compatibility

A nightly test run writes this page: `tests/clients/compatibility`. Each client runs four scenarios against
Understudy with [`--as-version`](old-brokers.md): it produces (compressed), produces idempotently, reads in a group and
commits, and runs an aborted and a committed transaction that writes records and offsets; the Java clients also describe
a topic's settings. "ok" means that all of them passed. Otherwise the cell has the failed scenario and the error.

The same scenarios ran against real brokers of the releases in bold. If the result was different there, the cell has
it too: "(Kafka: ...)".

"""
TITLES = {
    "java": ("Java", "Each column is a release of `kafka-clients`.", "kafka-clients "),
    "librdkafka": (
        "librdkafka",
        (
            "2.3 and the newest through confluent-kafka for Python; 1.9 is librdkafka 1.9.2 through confluent-kafka-go "
            "1.9.2, which\ncontains it as a static library (Python's wheels of that version end with Python 3.10)."
        ),
        "",
    ),
    "go": (
        "Sarama and franz-go",
        (
            "Current versions, configured for the release: Sarama with `Config.Version`, franz-go with "
            "`kgo.MaxVersions`. Without that,\nSarama assumes 2.8, and franz-go asks the broker. A "
            "transaction of franz-go also reads: it is a `GroupTransactSession`."
        ),
        "",
    ),
    "scripts": (
        "kafka-python, aiokafka and KafkaJS",
        "Current versions. They describe a topic's settings too.",
        "",
    ),
    "streams": (
        "Kafka Streams",
        (
            "Counts records by key, with the `processing.guarantee` of the column: it crashes in the middle of "
            "its first\ntransaction and restarts, and every step of every count must exist exactly once."
        ),
        "Streams ",
    ),
}
"""Kind of clients -> its title, what to know of it, and what its columns need not repeat."""


def drawn(found: Mapping[str, Mapping[str, str]], recorded: Mapping[str, Mapping[str, str]]) -> str:
    """The page: for each kind of clients a table with a row for each release, a column for each client."""
    return (
        HEAD
        + "\n".join(_table(kind, clients, found, recorded) for kind, clients in KINDS.items())
        + _sum(found, recorded)
    )


def _table(
    kind: str,
    clients: Sequence[str],
    found: Mapping[str, Mapping[str, str]],
    recorded: Mapping[str, Mapping[str, str]],
) -> str:
    title, text, known = TITLES[kind]
    rows = [
        f"| as | {' | '.join(client.removeprefix(known) for client in clients)} |",
        f"|{'---|' * (len(clients) + 1)}",
    ]
    for name in NAMES:
        cells = [_cell(found[client][name], recorded.get(client, {}).get(name)) for client in clients]
        real = all(name in recorded.get(client, {}) for client in clients)
        rows.append(f"| {f'**{name}**' if real else name} | {' | '.join(cells)} |")
    return f"## {title}\n\n{text}\n\n" + "\n".join(rows) + "\n"


def _cell(ours: str, real: str | None) -> str:
    text = "ok" if ours == GOOD else ours
    return text if real in (ours, None) else f"{text} (Kafka: {real})"


def _sum(found: Mapping[str, Mapping[str, str]], recorded: Mapping[str, Mapping[str, str]]) -> str:
    cells = [(ours, recorded.get(client, {}).get(name)) for client, row in found.items() for name, ours in row.items()]
    played = sum(real is not None for _, real in cells)
    alike = sum(real == ours for ours, real in cells)
    return f"\n{len(cells)} cells. {played} also ran against real brokers; {alike} of these had the same result.\n"
