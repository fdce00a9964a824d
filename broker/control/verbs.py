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
    groups,
    journal,
    log,
    metrics,
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

    ``body`` is the JSON schema of the request body, if it has one; ``query`` that of each query parameter; ``media``
    is the type of the answer.
    """

    method: str
    path: str
    run: Callable[[Asked], Awaitable[Any]]
    body: Mapping[str, Any] | None = None
    query: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    media: str = "application/json"

    @property
    def summary(self) -> str:
        """The first line of the function's docstring."""
        return (self.run.__doc__ or "").strip().splitlines()[0]


_PARTITION = "/v1/topics/{topic}/partitions/{partition}"
_TRANSACTION = "/v1/transactions/{transactional_id}"
_GROUP = "/v1/groups/{group}"

VERBS: tuple[Verb, ...] = (
    Verb("GET", "/v1/health", cluster.health),
    Verb("GET", "/v1/cluster", cluster.describe),
    Verb("POST", "/v1/reset", cluster.reset, cluster.RESET),
    Verb("GET", "/v1/clock", clock.read),
    Verb("POST", "/v1/clock/advance", clock.advance, clock.ADVANCE),
    Verb("POST", "/v1/clock/freeze", clock.freeze),
    Verb("POST", "/v1/clock/thaw", clock.thaw),
    Verb("GET", "/metrics", metrics.read, media="text/plain"),
    Verb("GET", "/v1/topics", log.topics),
    Verb("GET", "/v1/topics/{topic}", log.topic),
    Verb("GET", _PARTITION, log.partition),
    Verb("POST", f"{_PARTITION}/leader", log.move_leader, log.LEADER),
    Verb("POST", f"{_PARTITION}/isr", log.change_isr, log.ISR),
    Verb("DELETE", f"{_PARTITION}/producers/{{producer_id}}", log.forget_producer),
    Verb("GET", f"{_PARTITION}/records", records.read, query=records.READ),
    Verb("POST", "/v1/topics/{topic}/records", records.write, records.WRITE),
    Verb("POST", "/v1/retention/run", cluster.run_retention),
    Verb("POST", "/v1/compaction/run", cluster.run_compaction),
    Verb("POST", "/v1/brokers", brokers.add, brokers.ADD),
    Verb("DELETE", "/v1/brokers/{broker}", brokers.remove),
    Verb("POST", "/v1/brokers/{broker}/kill", brokers.kill),
    Verb("POST", "/v1/brokers/{broker}/stop", brokers.stop),
    Verb("POST", "/v1/brokers/{broker}/start", brokers.start),
    Verb("POST", "/v1/brokers/{broker}/pause", brokers.pause),
    Verb("POST", "/v1/brokers/{broker}/resume", brokers.resume),
    Verb("POST", "/v1/coordinators/move", coordinators.move, coordinators.MOVE),
    Verb("GET", "/v1/transactions", transactions.read_all),
    Verb("GET", _TRANSACTION, transactions.read),
    Verb("GET", f"{_TRANSACTION}/why", why.why),
    Verb("POST", f"{_TRANSACTION}/hold", transactions.hold, transactions.HOLD),
    Verb("POST", f"{_TRANSACTION}/release", transactions.release),
    Verb("POST", f"{_TRANSACTION}/abort", transactions.abort),
    Verb("PUT", f"{_TRANSACTION}/producer", transactions.set_epoch, transactions.EPOCH),
    Verb("GET", "/v1/groups", groups.read_all),
    Verb("GET", _GROUP, groups.read),
    Verb("POST", f"{_GROUP}/rebalance", groups.rebalance),
    Verb("POST", f"{_GROUP}/members/{{member}}/evict", groups.evict),
    Verb("POST", "/v1/snapshots", snapshots.take),
    Verb("POST", "/v1/snapshots/{snapshot}/restore", snapshots.restore),
    Verb("GET", "/v1/versions", versions.read),
    Verb("PUT", "/v1/versions", versions.write, versions.SET),
    Verb("POST", "/v1/faults", faults.add, faults.FAULT),
    Verb("GET", "/v1/faults", faults.read_all, query=faults.QUERY_LIST),
    Verb("DELETE", "/v1/faults", faults.clear),
    Verb("GET", "/v1/faults/{fault}", faults.read, query=faults.QUERY_SHOW),
    Verb("DELETE", "/v1/faults/{fault}", faults.remove),
    Verb("GET", "/v1/journal", journal.read, query=journal.QUERY),
    Verb("DELETE", "/v1/journal", journal.clear),
    Verb("POST", "/v1/journal/rotate", journal.rotate),
    Verb("GET", "/v1/journal.pcap", journal.capture, query=journal.QUERY, media="application/vnd.tcpdump.pcap"),
)
