"""Rules for fields that differ between any two clusters: generated ids, addresses, and times.

A rule is declared for a field name (or an API's field) and makes its value comparable. Fields without a rule are
compared unchanged: numbers, texts, order.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

NULL_IDS = {-1, "", "AAAAAAAAAAAAAAAAAAAAAA", None}
"""Values that mean "none", which are compared unchanged."""


@dataclass
class Names:
    """Names for one cluster's own ids: `producer-1` is the first producer id that it allocated in this history.

    `prefix` begins every name of the history; `base_ms` is the base of its record timestamps; `symbols` has the names
    by kind and by the cluster's own id.
    """

    prefix: str = ""
    base_ms: int = 0
    symbols: dict[str, dict[Any, str]] = field(default_factory=dict)

    def name(self, kind: str, value: Any) -> Any:
        """Return the name of an id; a new id gets the next free name."""
        if value in NULL_IDS:
            return value
        of_kind = self.symbols.setdefault(kind, {})
        return of_kind.setdefault(value, f"{kind}-{len(of_kind) + 1}")

    def text(self, value: str) -> str:
        """Replace the history's prefix and the cluster's own ids in a text."""
        value = value.replace(self.prefix, "") if self.prefix else value
        for kind in ("member", "topic", "cluster", "directory"):
            for cluster_id, name in self.symbols.get(kind, {}).items():
                value = value.replace(str(cluster_id), name)
        value = TOPIC_IN_TEXT.sub(lambda match: match[1] + str(self.name("topic", match[2])), value)
        value = TIME_IN_TEXT.sub(lambda match: str(self.moment(int(match[0]))), value)
        return PRODUCER_IN_TEXT.sub(lambda match: match[1] + str(self.name("producer", int(match[2]))), value)

    def moment(self, value: Any) -> Any:
        """Make a time comparable: relative to the history's start if set by a client, `now` if by a broker's clock."""
        if not isinstance(value, int) or value < 0:
            return value
        since = value - self.base_ms
        if 0 <= since < CLIENT_SPAN_MS:
            return f"+{since}"
        return "now" if abs(since) < CLOCKS_MS else value


PRODUCER_IN_TEXT = re.compile(r"((?:producerId|producer id|producer|Producer)[ =:]+(?:id )?)(\d+)\b")
TOPIC_IN_TEXT = re.compile(r"(share group parameters has invalid partitionId - \S* )([\w-]{22})(?![\w-])")
"""A message with a topic id that perhaps no response has contained before."""
TIME_IN_TEXT = re.compile(r"\b[12]\d{12}\b")
LAST_MS = 4_000_000_000_000
"""Times after the year 2096 were not computed from the clock, but are overflows."""
CLIENT_SPAN_MS = 600_000
"""Span of a history's record timestamps: ten minutes, one hour before it began."""
CLOCKS_MS = 30 * 86_400_000
"""How far a broker's time may be from the history's start: its clock, plus or minus a setting. 0 is further away.

Ours, a month: longer than the settings of histories.
"""

Rule = Callable[[Names, Any], Any]


def _named(kind: str) -> Rule:
    return lambda names, value: names.name(kind, value)


def _moment(names: Names, value: Any) -> Any:
    return names.moment(value)


def _of_its_own(_names: Names, value: Any) -> Any:
    return value if value in NULL_IDS else "its own"


def _from_now(_names: Names, value: Any) -> Any:
    """Express a time in minutes from now: equal for both clusters' tokens, though requests are seconds apart."""
    if not isinstance(value, int) or not 0 < value < LAST_MS:
        return value
    # Rounded.
    return f"in {(value - int(time.time() * 1000) + 30_000) // 60_000} min"


def _later(names: Names, value: Any) -> Any:
    """Make the expiry of a token comparable, or a batch's latest timestamp, which is not in the future."""
    of_token = isinstance(value, int) and value > time.time() * 1000 + 60_000
    return _from_now(names, value) if of_token else names.moment(value)


RULES: dict[str, Rule] = {
    # Ids that a cluster generates or counts.
    "producer_id": _named("producer"),
    "previous_producer_id": _named("producer"),
    "next_producer_id": _named("producer"),
    "topic_id": _named("topic"),
    "member_id": _named("member"),
    "leader": _named("member"),
    "cluster_id": _named("cluster"),
    "token_id": _named("token"),
    "client_instance_id": _named("instance"),
    "hmac": _named("hmac"),
    "session_id": lambda names, value: value if value == 0 else names.name("session", value),
    "replica_directory_id": _named("directory"),
    "metadata_hash": lambda _names, value: value and "its own",  # of topics with their ids
    # Addresses and disks.
    "port": _of_its_own,
    "log_dir": _of_its_own,
    "total_bytes": _of_its_own,
    "usable_bytes": _of_its_own,
    # Times.
    "log_append_time_ms": _moment,
    "timestamp": _moment,
    "timestamp_ms": _moment,
    "base_timestamp_ms": _moment,
    "transaction_start_time_ms": _moment,
    "last_timestamp": _moment,
    "last_update_ms": _moment,
    "start_ms": _moment,
    # Times of delegation tokens, in minutes from now.
    "issue_timestamp": _from_now,
    "issue_timestamp_ms": _from_now,
    "expiry_timestamp": _from_now,
    "expiry_timestamp_ms": _from_now,
    "max_timestamp": _from_now,
    "max_timestamp_ms": _later,
    "commit_timestamp_ms": _moment,
    "expire_timestamp_ms": _moment,
    "assignment_timestamp_ms": lambda _names, value: value and "then",
    "current_state_timestamp_ms": _moment,
    "last_fetch_timestamp": _moment,
    "last_caught_up_timestamp": _moment,
}

UNORDERED: dict[tuple[str, str], tuple[str, ...]] = {
    # Kafka returns these in the order of a hash map; clients cannot rely on it.
    ("DescribeConfigs", "configs"): ("name",),
    ("CreateTopics", "configs"): ("name",),
    ("DeleteTopics", "responses"): ("name", "error_code", "error_message", "topic_id"),  # shuffled
    ("DeleteRecords", "topics"): ("name",),
    ("DeleteRecords", "partitions"): ("partition_index",),
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
    # From maps and sets whose order differs in each process: the hash of an enum constant is its address.
    ("DescribeAcls", "resources"): ("resource_type", "resource_name", "pattern_type"),
    ("DescribeAcls", "acls"): ("principal", "host", "operation", "permission_type"),
    ("DeleteAcls", "matching_acls"): (
        *("resource_type", "resource_name", "pattern_type"),
        *("principal", "host", "operation", "permission_type"),
    ),
    ("DescribeUserScramCredentials", "credential_infos"): ("mechanism",),
    ("DescribeDelegationToken", "tokens"): ("token_id",),
    ("ConsumerGroupDescribe", "groups"): ("group_id",),
    ("ConsumerGroupDescribe", "members"): ("member_id",),
    ("ConsumerGroupDescribe", "subscribed_topic_names"): (),
    ("ConsumerGroupDescribe", "topic_partitions"): ("topic_name",),
    # From immutable maps, whose order differs in each process, and from maps that are read while they change.
    ("StreamsGroupHeartbeat", "active_partitions"): ("topic", "partitions"),
    ("StreamsGroupHeartbeat", "standby_partitions"): ("topic", "partitions"),
    ("StreamsGroupDescribe", "groups"): ("group_id",),
    ("StreamsGroupDescribe", "members"): ("member_id",),
    ("ShareGroupDescribe", "groups"): ("group_id",),
    ("ShareGroupDescribe", "members"): ("member_id",),
    ("ShareGroupDescribe", "subscribed_topic_names"): (),
    ("ShareGroupDescribe", "topic_partitions"): ("topic_name",),
    ("ShareGroupHeartbeat", "topic_partitions"): ("topic_id",),
    ("DescribeShareGroupOffsets", "partitions"): ("partition_index",),
    ("DescribeShareGroupOffsets", "topics"): ("topic_name",),
    ("AlterShareGroupOffsets", "partitions"): ("partition_index",),
    ("AlterShareGroupOffsets", "responses"): ("topic_name",),
    ("DeleteShareGroupOffsets", "responses"): ("topic_name",),
    ("__consumer_offsets", "initializing"): ("topic_name",),
    ("__consumer_offsets", "initialized"): ("topic_name",),
    ("__consumer_offsets", "deleting"): ("topic_name",),
    ("ReadShareGroupState", "results"): ("topic_id",),
    ("ReadShareGroupState", "partitions"): ("partition",),
    ("ShareFetch", "responses"): ("topic_id",),
    ("ShareFetch", "partitions"): ("partition_index",),
    ("ShareAcknowledge", "responses"): ("topic_id",),
    ("ShareAcknowledge", "partitions"): ("partition_index",),
    ("ConsumerGroupHeartbeat", "topic_partitions"): ("topic_id",),
    ("JoinGroup", "members"): ("member_id",),
    ("DescribeGroups", "members"): ("member_id",),
    ("__consumer_offsets", "members"): ("member_id",),
    ("__consumer_offsets", "assigned_partitions"): ("topic_id",),
    ("__consumer_offsets", "partitions_pending_revocation"): ("topic_id",),
    ("__consumer_offsets", "topic_partitions"): ("topic_id",),
}
"""(API, field) of unordered lists -> the fields that sort them; empty for plain values."""


def _without_ids(item: Any) -> str:
    return str({key: inner for key, inner in item.items() if key not in RULES} if isinstance(item, dict) else item)


def comparable(names: Names, api: str, value: Any, name: str = "") -> Any:
    """Apply the rules to plain values."""
    if isinstance(value, dict):
        return {key: comparable(names, api, inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        order = UNORDERED.get((api, name))
        if order is None:
            return [comparable(names, api, inner, name) for inner in value]
        # Fields without a rule first, so that new ids get their names in the same order on both clusters.
        items = [comparable(names, api, inner, name) for inner in sorted(value, key=_without_ids)]
        return sorted(items, key=lambda item: [str(item.get(key)) for key in order] if order else item)
    if rule := RULES.get(name):
        return rule(names, value)
    return names.text(value) if isinstance(value, str) else value
