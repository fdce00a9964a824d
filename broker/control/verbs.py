"""The one table of verbs: method, path, function. Routes and the OpenAPI document are made from it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from broker.control import (
    brokers,
    clock,
    cluster,
    coordinators,
    faults,
    group_why,
    groups,
    journal,
    log,
    metrics,
    producer_why,
    producers,
    records,
    snapshots,
    transactions,
    versions,
    why,
)
from broker.control.asked import Asked


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing that the cluster can be told or asked.

    ``answer`` names the answer's schema in ``answers.SCHEMAS``; empty where it is no JSON. ``body`` is the schema
    of the request body, if it has one; ``query`` that of each query parameter; ``media`` is the type of the answer.
    """

    method: str
    path: str
    run: Callable[[Asked], Awaitable[Any]]
    answer: str = ""
    body: Mapping[str, Any] | None = None
    query: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    media: str = "application/json"

    @property
    def summary(self) -> str:
        """The first line of the function's docstring."""
        return (self.run.__doc__ or "").strip().splitlines()[0]


_PARTITION = "/v1/topics/{topic}/partitions/{partition}"
_TRANSACTION = "/v1/transactions/{transactional_id}"
_PRODUCER = "/v1/producers/{producer_id}"
_GROUP = "/v1/groups/{group}"

VERBS: tuple[Verb, ...] = (
    Verb("GET", "/v1/health", cluster.health, "Status"),
    Verb("GET", "/v1/cluster", cluster.describe, "Cluster"),
    Verb("POST", "/v1/reset", cluster.reset, "Status", cluster.RESET),
    Verb("GET", "/v1/clock", clock.read, "Clock"),
    Verb("POST", "/v1/clock/advance", clock.advance, "Clock", clock.ADVANCE),
    Verb("POST", "/v1/clock/freeze", clock.freeze, "Clock"),
    Verb("POST", "/v1/clock/thaw", clock.thaw, "Clock"),
    Verb("GET", "/metrics", metrics.read, media="text/plain"),
    Verb("GET", "/v1/topics", log.topics, "Topics"),
    Verb("GET", "/v1/topics/{topic}", log.topic, "Topic"),
    Verb("GET", _PARTITION, log.partition, "Partition"),
    Verb("POST", f"{_PARTITION}/leader", log.move_leader, "Partition", log.LEADER),
    Verb("POST", f"{_PARTITION}/isr", log.change_isr, "Partition", log.ISR),
    Verb("DELETE", f"{_PARTITION}/producers/{{producer_id}}", log.forget_producer, "ProducerForgotten"),
    Verb("GET", f"{_PARTITION}/records", records.read, "Records", query=records.READ),
    Verb("POST", "/v1/topics/{topic}/records", records.write, "Written", records.WRITE),
    Verb("GET", "/v1/producers", producers.read_all, "Producers"),
    Verb("GET", _PRODUCER, producers.read, "ProducerLife"),
    Verb("GET", f"{_PRODUCER}/why", producer_why.why, "Why"),
    Verb("POST", "/v1/retention/run", cluster.run_retention, "RetentionRun"),
    Verb("POST", "/v1/compaction/run", cluster.run_compaction, "CompactionRun"),
    Verb("POST", "/v1/brokers", brokers.add, "Broker", brokers.ADD),
    Verb("DELETE", "/v1/brokers/{broker}", brokers.remove, "BrokerRemoved"),
    Verb("POST", "/v1/brokers/{broker}/kill", brokers.kill, "BrokerState"),
    Verb("POST", "/v1/brokers/{broker}/stop", brokers.stop, "BrokerState"),
    Verb("POST", "/v1/brokers/{broker}/start", brokers.start, "BrokerState"),
    Verb("POST", "/v1/brokers/{broker}/pause", brokers.pause, "BrokerState"),
    Verb("POST", "/v1/brokers/{broker}/resume", brokers.resume, "BrokerState"),
    Verb("POST", "/v1/coordinators/move", coordinators.move, "CoordinatorMoved", coordinators.MOVE),
    Verb("GET", "/v1/transactions", transactions.read_all, "Transactions"),
    Verb("GET", _TRANSACTION, transactions.read, "Transaction"),
    Verb("GET", f"{_TRANSACTION}/why", why.why, "Why"),
    Verb("POST", f"{_TRANSACTION}/hold", transactions.hold, "Held", transactions.HOLD),
    Verb("POST", f"{_TRANSACTION}/release", transactions.release, "Released"),
    Verb("POST", f"{_TRANSACTION}/abort", transactions.abort, "Transaction"),
    Verb("PUT", f"{_TRANSACTION}/producer", transactions.set_epoch, "Transaction", transactions.EPOCH),
    Verb("GET", "/v1/groups", groups.read_all, "Groups"),
    Verb("GET", _GROUP, groups.read, "Group"),
    Verb("GET", f"{_GROUP}/why", group_why.why, "Why"),
    Verb("POST", f"{_GROUP}/rebalance", groups.rebalance, "GroupInShort"),
    Verb("POST", f"{_GROUP}/members/{{member}}/evict", groups.evict, "GroupInShort"),
    Verb("GET", "/v1/snapshots", snapshots.read_all, "Snapshots"),
    Verb("POST", "/v1/snapshots", snapshots.take, "SnapshotTaken"),
    Verb("POST", "/v1/snapshots/{snapshot}/restore", snapshots.restore, "SnapshotRestored"),
    Verb("GET", "/v1/versions", versions.read, "Versions"),
    Verb("PUT", "/v1/versions", versions.write, "Versions", versions.SET),
    Verb("POST", "/v1/faults", faults.add, "Fault", faults.FAULT),
    Verb("GET", "/v1/faults", faults.read_all, "Faults", query=faults.QUERY_LIST),
    Verb("DELETE", "/v1/faults", faults.clear, "Removed"),
    Verb("GET", "/v1/faults/{fault}", faults.read, "Fault", query=faults.QUERY_SHOW),
    Verb("DELETE", "/v1/faults/{fault}", faults.remove, "Fault"),
    Verb("GET", "/v1/journal", journal.read, "Journal", query=journal.QUERY),
    Verb("DELETE", "/v1/journal", journal.clear, "Removed"),
    Verb("POST", "/v1/journal/rotate", journal.rotate, "JournalFile"),
    Verb("GET", "/v1/journal.pcap", journal.capture, query=journal.QUERY, media="application/vnd.tcpdump.pcap"),
)
