"""The tables: one row per setting, by area. Kafka 4.4's names, types, defaults, constraints and update modes."""

from broker.settings.model import Row
from broker.settings.tables import (
    client_metrics,
    cluster,
    group,
    groups,
    logs,
    network,
    remote,
    replication,
    sasl,
    security,
    share_groups,
    topic,
    transactions,
)


def by_name(*tables: tuple[Row, ...]) -> dict[str, Row]:
    """Return the rows of some tables by their names."""
    return {row.name: row for table in tables for row in table}


BROKER = by_name(
    cluster.ROWS,
    groups.ROWS,
    logs.ROWS,
    network.ROWS,
    remote.ROWS,
    replication.ROWS,
    sasl.ROWS,
    security.ROWS,
    share_groups.ROWS,
    transactions.ROWS,
)
TOPIC = by_name(topic.ROWS)
GROUP = by_name(group.ROWS)
CLIENT_METRICS = by_name(client_metrics.ROWS)
