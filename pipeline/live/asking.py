"""Queries the brokers of a running cluster: bounds of logs, producers, transactions, committed offsets.

Each broker gets one request for all its partitions. Brokers before 2.8 do not serve DescribeProducers, those before 3.0
neither ListTransactions nor DescribeTransactions: then the rows are missing, and `Answers.has_transactions` is false.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pipeline.transfer.wire import FETCH_BYTES, Cluster
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.list_groups import ListGroupsRequest
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.list_transactions import ListTransactionsRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.offset_fetch import OffsetFetchRequest

Place = tuple[str, int]
_WITH_TOPIC_IDS: Final = 12  # version of Metadata
_ABOUT_TRANSACTIONS: Final = (ApiKey.DESCRIBE_PRODUCERS, ApiKey.LIST_TRANSACTIONS, ApiKey.DESCRIBE_TRANSACTIONS)


@dataclass(slots=True)
class Answers:
    """The results of one step as rows, named as in `pipeline.live.tables`."""

    partitions: list[dict[str, Any]] = field(default_factory=list)
    producers: list[dict[str, Any]] = field(default_factory=list)
    transactions: list[dict[str, Any]] = field(default_factory=list)
    commits: list[dict[str, Any]] = field(default_factory=list)
    has_transactions: bool = True
    """Whether every broker has reported all its transactions."""


class LiveCluster(Cluster):
    """A cluster that is queried repeatedly."""

    _versions: dict[int, int] | None = None

    def refresh(self) -> None:
        """Do the same as `Cluster.refresh`, and get topic ids, with a version that brokers serve since 3.1."""
        if self._versions is None:
            answer = self.ask_any(ApiKey.API_VERSIONS, ApiVersionsRequest())
            self._versions = {each.api_key: each.max_version for each in answer.api_keys}
        has_ids = self._versions.get(ApiKey.METADATA, 0) >= _WITH_TOPIC_IDS
        version = _WITH_TOPIC_IDS if has_ids else None
        answer = self.ask_any(ApiKey.METADATA, MetadataRequest(topics=None, allow_auto_topic_creation=False), version)
        self.learn(answer)

    def serves(self, key: ApiKey) -> bool:
        """Return whether the brokers serve an API."""
        return key in (self._versions or {})

    @property
    def lists_transactions(self) -> bool:
        """Return whether the brokers can report producers and transactions."""
        return all(map(self.serves, _ABOUT_TRANSACTIONS))

    def bounds(self, places: Sequence[Place], timestamp: int, *, committed: bool = False) -> dict[Place, int]:
        """Return each partition's log start (EARLIEST), high watermark (LATEST) or (`committed`) last stable offset."""
        offsets: dict[Place, int] = {}
        for node, topics in self._by_leader(places):
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=int(committed),
                topics=[
                    ListOffsetsTopic(topic, [ListOffsetsPartition(each, timestamp) for each in numbers])
                    for topic, numbers in topics.items()
                ],
            )
            for topic in self.ask_node(node, ApiKey.LIST_OFFSETS, request).topics:
                for each in topic.partitions:
                    if each.error_code is ErrorCode.NONE:
                        offsets[topic.name, each.partition_index] = each.offset
        return offsets

    def pieces(self, wanted: Mapping[Place, int]) -> Iterator[tuple[Place, bytes]]:
        """Send one fetch to each leader, and yield the data from these offsets on; the last batch may be incomplete."""
        for node, topics in self._by_leader(list(wanted)):
            request = FetchRequest(
                replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=FETCH_BYTES, isolation_level=0, session_id=0,
                session_epoch=-1,
                topics=[
                    FetchTopic(topic, [
                        FetchPartition(each, fetch_offset=wanted[topic, each], partition_max_bytes=FETCH_BYTES)
                        for each in numbers
                    ])
                    for topic, numbers in topics.items()
                ],
            )  # fmt: skip
            for answer in self.ask_node(node, ApiKey.FETCH, request).responses:
                for each in answer.partitions:
                    if each.error_code is ErrorCode.NONE and each.records:
                        raw = each.records
                        yield (
                            (answer.topic, each.partition_index),
                            b"".join(raw) if isinstance(raw, list | tuple) else bytes(raw),
                        )

    def producers(self, places: Sequence[Place]) -> Iterator[tuple[Place, list[dict[str, Any]] | None]]:
        """Return the producers with state on each partition; None: the broker does not report them."""
        for node, topics in self._by_leader(places):
            request = DescribeProducersRequest([TopicRequest(topic, numbers) for topic, numbers in topics.items()])
            for topic in self.ask_node(node, ApiKey.DESCRIBE_PRODUCERS, request).topics:
                for each in topic.partitions:
                    is_known = each.error_code is ErrorCode.NONE
                    rows = [_producer(one) for one in each.active_producers]
                    yield (topic.name, each.partition_index), rows if is_known else None

    def transactions(self) -> tuple[list[dict[str, Any]], bool]:
        """Return the transactions of all coordinators, a row per partition, and whether they are complete."""
        open_transactions, is_all = [], True
        for node in sorted(self._nodes):
            listed = self.ask_node(node, ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest())
            is_all &= listed.error_code is ErrorCode.NONE
            names = [each.transactional_id for each in listed.transaction_states]
            if not names:
                continue
            answer = self.ask_node(node, ApiKey.DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest(names))
            for each in answer.transaction_states:
                is_all &= each.error_code in {ErrorCode.NONE, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND}
                if each.error_code is ErrorCode.NONE:
                    open_transactions += _transaction(each, node)
        return open_transactions, is_all

    def commits(self) -> list[dict[str, Any]]:
        """Return the committed offsets of all groups."""
        committed = []
        for node in sorted(self._nodes):
            for group in self.ask_node(node, ApiKey.LIST_GROUPS, ListGroupsRequest()).groups:
                request = OffsetFetchRequest(group_id=group.group_id, topics=None)
                answer = self.ask_node(node, ApiKey.OFFSET_FETCH, request)
                committed += [
                    {"group_id": group.group_id, "topic": topic.name, "partition": each.partition_index,
                     "committed_offset": each.committed_offset}
                    for topic in answer.topics
                    for each in topic.partitions
                    if each.error_code is ErrorCode.NONE and each.committed_offset >= 0
                ]  # fmt: skip
        return committed

    def compacted(self, topics: Sequence[str]) -> set[str]:
        """Return the topics that are compacted, and those whose configuration is not reported."""
        resources = [DescribeConfigsResource(2, name, ["cleanup.policy"]) for name in topics]
        compacted_topics = set(topics)
        for each in self.ask_any(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=resources)).results:
            if each.error_code is ErrorCode.NONE and not any("compact" in (one.value or "") for one in each.configs):
                compacted_topics.discard(each.resource_name)
        return compacted_topics

    def ask_node(self, node: int, key: ApiKey, request: Any, version: int | None = None) -> Any:
        """Send a request to one broker. A broken connection is reopened for the next request. Raises OSError."""
        address = self._nodes[node]
        try:
            return self._connection(address).ask(key, request, version)
        except OSError:
            self._drop(address)
            raise

    def _by_leader(self, places: Sequence[Place]) -> Iterator[tuple[int, dict[str, list[int]]]]:
        """Group partitions by leader and topic; those without a leader are left out."""
        nodes: dict[int, dict[str, list[int]]] = {}
        for topic, number in places:
            leader = self.topics[topic].leaders.get(number, -1) if topic in self.topics else -1
            if leader in self._nodes:
                nodes.setdefault(leader, {}).setdefault(topic, []).append(number)
        yield from sorted(nodes.items())


def _producer(each: Any) -> dict[str, Any]:
    return {
        "producer_id": each.producer_id,
        "producer_epoch": each.producer_epoch,
        "last_sequence": each.last_sequence,
        "last_timestamp_ms": each.last_timestamp,
        "coordinator_epoch": each.coordinator_epoch,
        "transaction_offset": each.current_txn_start_offset,
    }


def _transaction(each: Any, node: int) -> list[dict[str, Any]]:
    row = {
        "transactional_id": each.transactional_id,
        "producer_id": each.producer_id,
        "producer_epoch": each.producer_epoch,
        "state": each.transaction_state,
        "timeout_ms": each.transaction_timeout_ms,
        "start_ms": each.transaction_start_time_ms,
        "coordinator": node,
    }
    touched = [(topic.topic, number) for topic in each.topics for number in topic.partitions]
    return [{**row, "topic": topic, "partition": number} for topic, number in touched or [(None, None)]]
