"""A small Kafka client for copying to and from a running cluster; it transfers batches unchanged.

Blocking, one connection per broker.
"""

import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Self

from pipeline.transfer.connection import Connection
from pipeline.transfer.security import Security, SecurityError
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.metadata import MetadataRequest, MetadataResponse
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.batch import batches
from protocol.topic_names import complaint_of

EARLIEST, LATEST = -2, -1
FETCH_BYTES: Final = 16 << 20  # arbitrary, large so that few requests are needed, and held in memory
_PAUSE_S: Final = 0.1  # retry.backoff.ms of Kafka's clients
_REQUEST_MS: Final = 30_000  # request.timeout.ms of Kafka's clients
_TRANSACTION_MS: Final = 60_000  # transaction.timeout.ms of Kafka's producer, which sends it without transactions, too
_MOST_THROTTLED: Final = 100  # times in turn: a quota that is never met again is an error; ours
_MOVING: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.KAFKA_STORAGE_ERROR,
    }
)  # fmt: skip
"""Transient errors of a partition that is being created, or whose leader changes."""
_DYNAMIC_TOPIC_CONFIG: Final = 1


class WireError(RuntimeError):
    """The cluster refused, or cannot be reached; the message is for the user."""


class Topic(NamedTuple):
    """A topic from Metadata: partition -> leader's node id."""

    name: str
    leaders: Mapping[int, int]


class Cluster:
    """A cluster, reached by one of its addresses `HOST:PORT[,...]`. `close` closes the connections."""

    def __init__(self, bootstrap: str, patience_s: float = 30.0, security: Security | None = None) -> None:
        """Connect, by default with the patience of request.timeout.ms.

        Raises:
            WireError: no broker answers, or it does not accept this client.
        """
        self._patience_s = patience_s
        self._security = security or Security()
        self._connections: dict[tuple[str, int], Connection] = {}
        self._nodes: dict[int, tuple[str, int]] = {}
        self._bootstrap = [_address(each) for each in bootstrap.split(",")]
        self.topics: dict[str, Topic] = {}
        self.topic_ids: Mapping[str, str] = {}
        """Topic -> id, if the last response has ids."""
        try:
            self.refresh()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections to all brokers."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def refresh(self) -> None:
        """Refresh topics and leaders."""
        self.learn(self.ask_any(ApiKey.METADATA, MetadataRequest(topics=None)))

    def learn(self, answer: MetadataResponse) -> None:
        """Store the brokers and topics of a response. Raises WireError for an invalid topic name."""
        for topic in answer.topics:
            if topic.name and complaint_of(topic.name) is not None:  # topic names become folder names
                raise WireError(f"a broker returned an invalid topic name: {topic.name!r}")
        self._nodes = {each.node_id: (each.host, each.port) for each in answer.brokers}
        self.topics = {
            topic.name: Topic(topic.name, {each.partition_index: each.leader_id for each in topic.partitions})
            for topic in answer.topics
            if topic.error_code is ErrorCode.NONE and topic.name
        }
        self.topic_ids = {
            topic.name: str(topic.topic_id)
            for topic in answer.topics
            if topic.name in self.topics and topic.topic_id is not None and topic.topic_id.int
        }

    def create(self, topics: Mapping[str, tuple[int, Mapping[str, str]]]) -> None:
        """Create topics: name -> partitions, settings. An existing topic stays unchanged. Raises WireError."""
        wanted = [
            CreatableTopic(
                name, count, -1, configs=[CreatableTopicConfig(key, text) for key, text in sorted(configs.items())]
            )
            for name, (count, configs) in topics.items()
        ]
        # Kafka's clients wait as long (request.timeout.ms), here and below.
        answer = self.ask_any(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=wanted, timeout_ms=_REQUEST_MS))
        for each in answer.topics:
            if each.error_code not in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
                why = each.error_message or each.error_code.name
                raise WireError(f"the topic {each.name} cannot be created: {why}")
        self.refresh()

    def configs(self, topics: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return the topics' own configurations."""
        resources = [DescribeConfigsResource(2, name, None) for name in topics]
        answer = self.ask_any(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=resources))
        return {
            each.resource_name: {
                config.name: config.value
                for config in each.configs
                if config.config_source == _DYNAMIC_TOPIC_CONFIG and config.value is not None
            }
            for each in answer.results
        }

    def offset(self, topic: str, partition: int, timestamp: int) -> int:
        """Return the log start (EARLIEST) or high watermark (LATEST). Raises WireError."""
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(topic, [ListOffsetsPartition(partition, timestamp)])]
        )
        answer = self._settled(
            topic, partition,
            lambda: self._at_leader(topic, partition, ApiKey.LIST_OFFSETS, request).topics[0].partitions[0],
        )  # fmt: skip
        return int(answer.offset)

    def fetch(self, topic: str, partition: int, offset: int) -> tuple[bytes, int]:
        """Return complete batches from the one with `offset` on (markers and aborted ones too), and the high watermark.

        Raises:
            WireError: the broker refused, or returns no data; or no leader answers.
        """
        piece = FetchPartition(partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES, current_leader_epoch=-1)
        # 500 ms: fetch.max.wait.ms of Kafka's consumer.
        request = FetchRequest(
            replica_id=-1, max_wait_ms=500, min_bytes=1, max_bytes=FETCH_BYTES, isolation_level=0, session_id=0,
            session_epoch=-1, topics=[FetchTopic(topic, [piece])],
        )  # fmt: skip
        answer = self._settled(
            topic, partition, lambda: self._unthrottled(topic, partition, request).responses[0].partitions[0]
        )
        records = answer.records
        if isinstance(records, list | tuple):
            records = b"".join(records)
        return bytes(records or b""), int(answer.high_watermark)

    def _settled(self, topic: str, partition: int, ask: Callable[[], Any]) -> Any:
        """Return the leader's response about a partition, retrying while the leader changes. Raises WireError.

        A broken connection is retried too: its broker may be gone, and another one becomes the leader.
        """
        for _ in self._tries():
            reason: OSError | None = None
            try:
                answer = ask()
            except ssl.SSLError as error:
                raise WireError(f"{topic}-{partition}: TLS failed: {error.reason or error}") from None
            except OSError as error:
                reason = error
            else:
                if answer.error_code not in _MOVING or topic not in self.topics:
                    break
            self.refresh_if_possible()
        if reason is not None:
            raise WireError(f"the leader of {topic}-{partition} does not answer: {reason.strerror or reason}")
        _check(answer.error_code, topic, partition)
        return answer

    def _unthrottled(self, topic: str, partition: int, request: FetchRequest) -> Any:
        """Return the response with the partition; over its quota a client gets none, and a time to wait (KIP-219)."""
        for _ in range(_MOST_THROTTLED):
            answer = self._at_leader(topic, partition, ApiKey.FETCH, request)
            if answer.responses:
                return answer
            time.sleep(answer.throttle_time_ms / 1000)  # noqa: TID251 - a command waits in real time
        raise WireError(f"{topic}-{partition}: the broker returns no data, as for a client over its quota")

    def append(self, topic: str, partition: int, batch: bytes | bytearray) -> ErrorCode | None:
        """Produce one batch once, acknowledged by all in-sync replicas; None: no leader is known.

        Raises:
            OSError: the connection broke.
            WireError: the broker does not accept this client.
        """
        if self._known_leader(topic, partition) is None:
            self.refresh_if_possible()
        node = self._known_leader(topic, partition)
        if node is None:
            return None
        data = TopicProduceData(topic, [PartitionProduceData(partition, bytes(batch))])
        request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=_REQUEST_MS, topic_data=[data])
        try:
            answer = self._connection(node).ask(ApiKey.PRODUCE, request).responses[0].partition_responses[0]
        except SecurityError as error:
            raise WireError(str(error)) from None
        return ErrorCode(answer.error_code)

    def producer_id(self) -> tuple[int, int]:
        """Return a new producer id and its epoch. Raises WireError."""
        # Any: without a transactional id it has no effect.
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_TRANSACTION_MS)
        for _ in self._tries():
            answer = self.ask_any(ApiKey.INIT_PRODUCER_ID, request)
            if answer.error_code is ErrorCode.NONE:
                return int(answer.producer_id), int(answer.producer_epoch)
        raise WireError(f"no producer id: {answer.error_code.name}")

    def delete(self, topics: Sequence[str]) -> None:
        """Delete topics, and wait until they are gone. Raises WireError."""
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name) for name in topics], timeout_ms=_REQUEST_MS)
        answer = self.ask_any(ApiKey.DELETE_TOPICS, request)
        for each in answer.responses:
            if each.error_code not in {ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
                raise WireError(f"the topic {each.name} cannot be deleted: {each.error_code.name}")
        for _ in self._tries():
            self.refresh()
            if not self.topics.keys() & set(topics):
                return
        raise WireError(f"{', '.join(topics)}: deleted, but still present after {self._patience_s:.0f} s")

    def wait_for_leaders(self, partitions: Sequence[tuple[str, int]]) -> None:
        """Wait until each of these partitions has a leader. Raises WireError."""
        for _ in self._tries():
            waiting = [f"{topic}-{number}" for topic, number in partitions if self._known_leader(topic, number) is None]
            if not waiting:
                return
            self.refresh()
        # What fits on a line.
        raise WireError(f"{', '.join(waiting[:5])} has no leader after {self._patience_s:.0f} s")

    def refresh_if_possible(self) -> None:
        """Do the same as `refresh`, if a broker answers."""
        with suppress(WireError):
            self.refresh()

    def _tries(self) -> Iterator[None]:
        """Yield for each useful retry, with pauses."""
        end_s = time.monotonic() + self._patience_s  # noqa: TID251 - a command waits in real time
        while True:
            yield
            if time.monotonic() >= end_s:  # noqa: TID251 - as above
                return
            time.sleep(_PAUSE_S)  # noqa: TID251 - as above

    def _known_leader(self, topic: str, partition: int) -> tuple[str, int] | None:
        known = self.topics.get(topic)
        return self._nodes.get(-1 if known is None else known.leaders.get(partition, -1))

    def _leader(self, topic: str, partition: int) -> tuple[str, int] | None:
        node = self._known_leader(topic, partition)
        if node is None:
            self.refresh()
            node = self._known_leader(topic, partition)
        return node

    def _at_leader(self, topic: str, partition: int, key: ApiKey, request: Any) -> Any:
        for _ in self._tries():
            node = self._leader(topic, partition)
            if node is not None:
                try:
                    return self._connection(node).ask(key, request)
                except OSError:
                    self._drop(node)
                    raise
            if topic not in self.topics:
                break
        raise WireError(f"{topic}-{partition} has no leader")

    def ask_any(self, key: ApiKey, request: Any, version: int | None = None) -> Any:
        """Send a request to the first broker that can be reached. Raises WireError."""
        reasons = []
        for address in [*self._nodes.values(), *self._bootstrap]:
            try:
                return self._connection(address).ask(key, request, version)
            except SecurityError as error:
                raise WireError(str(error)) from None
            except ssl.SSLError as error:  # TLS 1.3: a client's certificate is rejected after the handshake
                self._drop(address)
                raise WireError(f"{address[0]}:{address[1]}: TLS failed: {error.reason or error}") from None
            except OSError as error:
                self._drop(address)
                reasons.append(f"{address[0]}:{address[1]}: {error.strerror or error}")
        raise WireError(f"no broker answers at {'; '.join(reasons)}")

    def _connection(self, address: tuple[str, int]) -> Connection:
        if address not in self._connections:
            self._connections[address] = Connection(address, self._patience_s, self._security)
        return self._connections[address]

    def _drop(self, address: tuple[str, int]) -> None:
        if (connection := self._connections.pop(address, None)) is not None:
            connection.close()


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.strip().rpartition(":")
    if not host or not port.isdecimal():
        raise WireError(f"{text} is not HOST:PORT")
    return host.strip("[]"), int(port)


def _check(code: ErrorCode, topic: str, partition: int) -> None:
    if code is not ErrorCode.NONE:
        raise WireError(f"{topic}-{partition}: {code.name}")


def is_bootstrap(text: str) -> bool:
    """Return whether a text is the address of a cluster, `HOST:PORT[,...]`, rather than a directory."""
    addresses = [each.strip().rpartition(":") for each in text.split(",")]
    return "/" not in text and all(host and port.isdecimal() for host, _, port in addresses)


def batches_of(cluster: Cluster, topic: str, partition: int, start: int) -> Iterator[bytes]:
    """Yield everything from an offset to the current high watermark, in pieces of complete batches."""
    at, end = start, cluster.offset(topic, partition, LATEST)
    while at < end:
        piece, _ = cluster.fetch(topic, partition, at)
        whole, next_offset = _whole(piece)
        if not whole:
            raise WireError(f"{topic}-{partition}: the broker returned no complete batch from offset {at} on")
        yield whole
        at = next_offset


def _whole(piece: bytes) -> tuple[bytes, int]:
    """Return the complete batches of a fetched piece, and the offset after them."""
    stop, next_offset = 0, -1
    for batch in batches(piece):
        stop, next_offset = batch.end, batch.next_offset
    return piece[:stop], next_offset
