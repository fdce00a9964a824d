"""The part of docs/clients.md that the nightly run writes."""

import json
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from confluent_kafka import libversion

from broker.settings.releases import NAMES
from tests.clients.compatibility.matrix import spans
from tests.clients.compatibility.players import GOOD, KINDS, PYTHON
from tests.clients.drivers import HERE
from tests.clients.targets import ROOT
from tools.marked import replaced

PAGE = ROOT / "docs" / "clients.md"
MARK = "<!-- made by the nightly run: tests/clients/compatibility -->"
HEAD = """A nightly test run (`tests/clients/compatibility`) writes this part. It runs each client with
[`--as-version`](old-releases.md), in four scenarios: the client produces (compressed), produces idempotently, reads in
a group and commits, and runs an aborted and a committed transaction that writes records and offsets. The clients in
Java, kafka-python, aiokafka and KafkaJS also describe a topic's settings. "ok" means that all scenarios passed.
Otherwise the table contains the failed scenario and the error.

The same scenarios ran against real brokers of all these releases. If the result was different there, the table also
contains that result: "(Kafka: ...)".

"""
TITLES = {
    "java": ("Java", "Each line is a release of `kafka-clients`.", "kafka-clients "),
    "librdkafka": (
        "librdkafka",
        (
            "The last line is {librdkafka}; it and 2.3 run through confluent-kafka for Python. 1.9 is librdkafka "
            "1.9.2 through\nconfluent-kafka-go 1.9.2, which contains it as a static library (Python's wheels of that "
            "version end with Python 3.10)."
        ),
        "",
    ),
    "go": (
        "Sarama and franz-go",
        (
            "Sarama {sarama} and franz-go {franz-go}, configured for the release: Sarama with `Config.Version`, "
            "franz-go with\n`kgo.MaxVersions`. Without that, Sarama assumes 2.8, and franz-go asks the broker. A "
            "transaction of franz-go also\nreads: it is a `GroupTransactSession`."
        ),
        "",
    ),
    "scripts": (
        "kafka-python, aiokafka and KafkaJS",
        "kafka-python {kafka-python}, aiokafka {aiokafka} and KafkaJS {kafkajs}.",
        "",
    ),
    "streams": (
        "Kafka Streams",
        (
            "An application counts records by key, with the `processing.guarantee` of the line. It crashes in the "
            "middle of its\nfirst transaction and restarts; every step of every count must exist exactly once."
        ),
        "Streams ",
    ),
}
"""Kind of clients -> its title, what to know of it (with places for versions), and what its lines need not repeat."""


def drawn(results: Mapping[str, Mapping[str, str]], recorded: Mapping[str, Mapping[str, str]]) -> str:
    """The page: for each kind of clients a table with a line for each client."""
    versions = _versions()
    return replaced(
        PAGE.read_text(encoding="utf-8"),
        MARK,
        HEAD
        + "\n".join(_table(kind, clients, results, recorded, versions) for kind, clients in KINDS.items())
        + _sum(results, recorded),
    )


def _versions() -> dict[str, str]:
    """Client -> the version that is played: as pinned for Go and JavaScript, as installed for Python."""
    go = (HERE / "go" / "go.mod").read_text(encoding="utf-8")
    javascript = json.loads((HERE / "js" / "package.json").read_text(encoding="utf-8"))
    return {
        **dict(re.findall(r"/(sarama|franz-go) v(\S+)", go)),
        **{name: version(name) for name in PYTHON},
        "kafkajs": javascript["dependencies"]["kafkajs"],
        "librdkafka": libversion()[0],
    }


def _table(
    kind: str,
    clients: Sequence[str],
    played: Mapping[str, Mapping[str, str]],
    recorded: Mapping[str, Mapping[str, str]],
    versions: Mapping[str, str],
) -> str:
    title, text, known = TITLES[kind]
    rows = ["| client | result by release |", "|---|---|"]
    for client in clients:
        cells = {name: _cell(played[client][name], recorded.get(client, {}).get(name)) for name in NAMES}
        results = "; ".join(f"{span}: {result}" for span, result in spans(cells))
        rows.append(f"| {client.removeprefix(known)} | {results} |")
    return f"### {title}\n\n{text.format_map(versions)}\n\n" + "\n".join(rows) + "\n"


def _cell(ours: str, real: str | None) -> str:
    text = "ok" if ours == GOOD else ours
    return text if real in (ours, None) else f"{text} (Kafka: {real})"


def _sum(results: Mapping[str, Mapping[str, str]], recorded: Mapping[str, Mapping[str, str]]) -> str:
    cells = [
        (ours, recorded.get(client, {}).get(name)) for client, row in results.items() for name, ours in row.items()
    ]
    played = sum(real is not None for _, real in cells)
    alike = sum(real == ours for ours, real in cells)
    return f"\n{len(cells)} cells. {played} also ran against real brokers; {alike} of these had the same result.\n"
