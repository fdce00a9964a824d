"""What may differ between two clusters by its nature: ids that each draws, its address, and the time of day.

A rule is declared for a field's name (or an API's field), and says how its value is made comparable. Whatever has no
rule is compared as it is: numbers, texts, order.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

NOBODY = {-1, "", "AAAAAAAAAAAAAAAAAAAAAA", None}
"""Values that say "none": they are compared as they are."""


@dataclass
class Names:
    """What one cluster's own ids are called: `producer-1` is the first producer id that it gave in this history.

    `prefix` stands before every name that the history made up; `base_ms` is the time that its records count from.
    """

    prefix: str = ""
    base_ms: int = 0
    given: dict[str, dict[Any, str]] = field(default_factory=dict)

    def name(self, kind: str, value: Any) -> Any:
        """The name of an id, the next free one if it is new."""
        if value in NOBODY:
            return value
        known = self.given.setdefault(kind, {})
        return known.setdefault(value, f"{kind}-{len(known) + 1}")

    def text(self, value: str) -> str:
        """A text with the history's prefix and the cluster's own ids taken out."""
        value = value.replace(self.prefix, "") if self.prefix else value
        for known in ("member", "topic", "cluster", "directory"):
            for own, name in self.given.get(known, {}).items():
                value = value.replace(str(own), name)
        value = TIME_IN_TEXT.sub(lambda found: str(self.moment(int(found[0]))), value)
        return PRODUCER_IN_TEXT.sub(lambda found: found[1] + str(self.name("producer", int(found[2]))), value)

    def moment(self, value: Any) -> Any:
        """A time: a client's is told from the history's beginning, one that a broker read off its clock is `now`."""
        if not isinstance(value, int) or value < 0:
            return value
        since = value - self.base_ms
        return f"+{since}" if 0 <= since < CLIENT_SPAN_MS else "now"


PRODUCER_IN_TEXT = re.compile(r"((?:producerId|producer id|producer|Producer)[ =:]+(?:id )?)(\d+)\b")
TIME_IN_TEXT = re.compile(r"\b[12]\d{12}\b")
CLIENT_SPAN_MS = 600_000
"""Records of a history bear times of ten minutes, an hour before it began."""

Rule = Callable[[Names, Any], Any]


def _named(kind: str) -> Rule:
    return lambda names, value: names.name(kind, value)


def _moment(names: Names, value: Any) -> Any:
    return names.moment(value)


def _of_its_own(_names: Names, value: Any) -> Any:
    return value if value in NOBODY else "its own"


RULES: dict[str, Rule] = {
    # Ids that a cluster draws or counts.
    "producer_id": _named("producer"),
    "previous_producer_id": _named("producer"),
    "next_producer_id": _named("producer"),
    "topic_id": _named("topic"),
    "member_id": _named("member"),
    "leader": _named("member"),
    "cluster_id": _named("cluster"),
    "session_id": lambda names, value: value if value == 0 else names.name("session", value),
    "replica_directory_id": _named("directory"),
    # Where it lives.
    "port": _of_its_own,
    "log_dir": _of_its_own,
    "total_bytes": _of_its_own,
    "usable_bytes": _of_its_own,
    # When it happened.
    "log_append_time_ms": _moment,
    "timestamp": _moment,
    "timestamp_ms": _moment,
    "base_timestamp_ms": _moment,
    "max_timestamp_ms": _moment,
    "transaction_start_time_ms": _moment,
    "last_timestamp": _moment,
    "last_update_ms": _moment,
    "start_ms": _moment,
    "commit_timestamp_ms": _moment,
    "current_state_timestamp_ms": _moment,
    "last_fetch_timestamp": _moment,
    "last_caught_up_timestamp": _moment,
}

UNORDERED: dict[tuple[str, str], tuple[str, ...]] = {
    # Kafka answers these out of a hash map; a client cannot rely on their order.
    ("DescribeConfigs", "configs"): ("name",),
    ("CreateTopics", "configs"): ("name",),
    ("DescribeProducers", "active_producers"): ("producer_id",),
    ("DescribeTransactions", "topics"): ("topic",),
    ("DescribeTransactions", "partitions"): (),
    ("ListTransactions", "transaction_states"): ("transactional_id",),
    ("Metadata", "topics"): ("name",),
    ("Metadata", "brokers"): ("node_id",),
    ("Metadata", "isr_nodes"): (),
    ("DescribeCluster", "brokers"): ("broker_id",),
    ("DescribeTopicPartitions", "isr_nodes"): (),
    ("ListPartitionReassignments", "replicas"): (),
    ("OffsetFetch", "partitions"): ("partition_index",),
    ("OffsetFetch", "topics"): ("name", "topic_id"),
    ("Produce", "responses"): ("name", "topic_id"),
    ("Produce", "partition_responses"): ("index",),
    ("ListGroups", "groups"): ("group_id",),
    ("ListConfigResources", "config_resources"): ("resource_name",),
    ("DescribeLogDirs", "topics"): ("name",),
    ("DescribeLogDirs", "partitions"): ("partition_index",),
    ("AddPartitionsToTxn", "topic_results"): ("name",),
    ("AddPartitionsToTxn", "results_by_topic_v3_and_below"): ("name",),
    ("AddPartitionsToTxn", "results_by_partition"): ("partition_index",),
    ("JoinGroup", "members"): ("member_id",),
    ("DescribeGroups", "members"): ("member_id",),
    ("__consumer_offsets", "members"): ("member_id",),
}
"""(API, field) of lists without an order, and the fields that sort them; none where they hold plain values."""


def _without_ids(item: Any) -> str:
    return str({key: inner for key, inner in item.items() if key not in RULES} if isinstance(item, dict) else item)


def comparable(names: Names, api: str, value: Any, name: str = "") -> Any:
    """Plain values after the rules."""
    if isinstance(value, dict):
        return {key: comparable(names, api, inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        order = UNORDERED.get((api, name))
        if order is None:
            return [comparable(names, api, inner, name) for inner in value]
        # By what has no rule first, so that ids which are new here get their names in the same order on both sides.
        items = [comparable(names, api, inner, name) for inner in sorted(value, key=_without_ids)]
        return sorted(items, key=lambda item: [str(item.get(key)) for key in order] if order else item)
    if rule := RULES.get(name):
        return rule(names, value)
    return names.text(value) if isinstance(value, str) else value
