"""Documentation of each setting, in a sentence or two. Imported only when a client asks for documentation.

The names are those of the tables; a test holds the two together.
"""

from broker.settings.docs import (
    cluster,
    groups,
    logs,
    network,
    remote,
    removed,
    replication,
    resources,
    sasl,
    security,
    share_groups,
    topic,
    transactions,
)

BROKER: dict[str, str] = {
    **removed.BROKER,
    **cluster.TEXTS,
    **groups.TEXTS,
    **logs.TEXTS,
    **network.TEXTS,
    **remote.TEXTS,
    **replication.TEXTS,
    **sasl.TEXTS,
    **security.TEXTS,
    **share_groups.TEXTS,
    **transactions.TEXTS,
}
TOPIC: dict[str, str] = {**removed.TOPIC, **topic.TEXTS}
GROUP: dict[str, str] = resources.GROUP
CLIENT_METRICS: dict[str, str] = resources.CLIENT_METRICS
