"""A small Kafka client: what copying to and from a running cluster needs, batches as they are.

Blocking, plaintext, one connection per broker. It asks in versions that every broker since 2.4 and until 4.x serves.
"""

import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

from protocol.apis import ApiKey
from protocol.codec import decode_response, encode_request
from protocol.errors import ErrorCode
from protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.metadata import MetadataRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.batch import batches

CLIENT_ID: Final = "understudy"
EARLIEST, LATEST = -2, -1
FETCH_BYTES: Final = 16 << 20
_VERSIONS: Final = {
    ApiKey.METADATA: 9,
    ApiKey.LIST_OFFSETS: 5,
    ApiKey.FETCH: 11,
    ApiKey.PRODUCE: 8,
    ApiKey.CREATE_TOPICS: 5,
    ApiKey.DESCRIBE_CONFIGS: 2,
}
_DYNAMIC_TOPIC_CONFIG: Final = 1


class WireError(RuntimeError):
    """The cluster refused, or is not there; the message is for the user."""


class Topic(NamedTuple):
    """A topic as Metadata tells it: partition -> leader's node id."""

    name: str
    leaders: Mapping[int, int]


class Cluster:
    """A cluster, reached by one of its addresses `HOST:PORT[,...]`. `close` hangs up."""

    def __init__(self, bootstrap: str, patience_s: float = 30.0) -> None:
        """Connect. Raises WireError: nobody listens there."""
        self._patience_s = patience_s
        self._connections: dict[tuple[str, int], _Connection] = {}
        self._nodes: dict[int, tuple[str, int]] = {}
        self._bootstrap = [_address(each) for each in bootstrap.split(",")]
        self.topics: dict[str, Topic] = {}
        self.refresh()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up on every broker."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def refresh(self) -> None:
        """Ask again which topics there are and who leads."""
        answer = self._ask_any(ApiKey.METADATA, MetadataRequest(topics=None))
        self._nodes = {each.node_id: (each.host, each.port) for each in answer.brokers}
        self.topics = {
            topic.name: Topic(topic.name, {each.partition_index: each.leader_id for each in topic.partitions})
            for topic in answer.topics
            if topic.error_code is ErrorCode.NONE and topic.name
        }

    def create(self, topics: Mapping[str, tuple[int, Mapping[str, str]]]) -> None:
        """Create topics: name -> partitions, settings. One that is there stays as it is. Raises WireError."""
        wanted = [
            CreatableTopic(
                name, count, -1, configs=[CreatableTopicConfig(key, text) for key, text in sorted(configs.items())]
            )
            for name, (count, configs) in topics.items()
        ]
        answer = self._ask_any(ApiKey.CREATE_TOPICS, CreateTopicsRequest(topics=wanted, timeout_ms=30_000))
        for each in answer.topics:
            if each.error_code not in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
                why = each.error_message or each.error_code.name
                raise WireError(f"the topic {each.name} cannot be created: {why}")
        self.refresh()

    def configs(self, topics: Sequence[str]) -> dict[str, dict[str, str]]:
        """The settings that topics have of their own."""
        asked = [DescribeConfigsResource(2, name, None) for name in topics]
        answer = self._ask_any(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=asked))
        return {
            each.resource_name: {
                config.name: config.value
                for config in each.configs
                if config.config_source == _DYNAMIC_TOPIC_CONFIG and config.value is not None
            }
            for each in answer.results
        }

    def offset(self, topic: str, partition: int, timestamp: int) -> int:
        """The log's start (EARLIEST) or high watermark (LATEST). Raises WireError."""
        asked = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(topic, [ListOffsetsPartition(partition, timestamp)])]
        )
        answer = self._at_leader(topic, partition, ApiKey.LIST_OFFSETS, asked).topics[0].partitions[0]
        _check(answer.error_code, topic, partition)
        return int(answer.offset)

    def fetch(self, topic: str, partition: int, offset: int) -> tuple[bytes, int]:
        """Whole batches from the one that holds `offset` on, aborted ones and markers too; and the high watermark."""
        piece = FetchPartition(partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES, current_leader_epoch=-1)
        asked = FetchRequest(
            replica_id=-1, max_wait_ms=500, min_bytes=1, max_bytes=FETCH_BYTES, isolation_level=0, session_id=0,
            session_epoch=-1, topics=[FetchTopic(topic, [piece])],
        )  # fmt: skip
        answer = self._at_leader(topic, partition, ApiKey.FETCH, asked).responses[0].partitions[0]
        _check(answer.error_code, topic, partition)
        records = answer.records
        if isinstance(records, list | tuple):
            records = b"".join(records)
        return bytes(records or b""), int(answer.high_watermark)

    def produce(self, topic: str, partition: int, batch: bytes | bytearray) -> int:
        """Append one batch, acknowledged by all in-sync replicas; its offset. Raises WireError."""
        data = TopicProduceData(topic, [PartitionProduceData(partition, bytes(batch))])
        asked = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=30_000, topic_data=[data])
        answer = self._at_leader(topic, partition, ApiKey.PRODUCE, asked).responses[0].partition_responses[0]
        _check(answer.error_code, topic, partition)
        return int(answer.base_offset)

    def _at_leader(self, topic: str, partition: int, key: ApiKey, request: Any) -> Any:
        known = self.topics.get(topic)
        node = self._nodes.get(-1 if known is None else known.leaders.get(partition, -1))
        if node is None:
            self.refresh()
            known = self.topics.get(topic)
            node = self._nodes.get(-1 if known is None else known.leaders.get(partition, -1))
        if node is None:
            raise WireError(f"{topic}-{partition} has no leader")
        return self._connection(node).ask(key, request)

    def _ask_any(self, key: ApiKey, request: Any) -> Any:
        reasons = []
        for address in [*self._nodes.values(), *self._bootstrap]:
            try:
                return self._connection(address).ask(key, request)
            except OSError as error:
                reasons.append(f"{address[0]}:{address[1]}: {error}")
        raise WireError(f"no broker answers: {'; '.join(reasons)}")

    def _connection(self, address: tuple[str, int]) -> "_Connection":
        if address not in self._connections:
            self._connections[address] = _Connection(address, self._patience_s)
        return self._connections[address]


class _Connection:
    def __init__(self, address: tuple[str, int], patience_s: float) -> None:
        self._socket = socket.create_connection(address, timeout=patience_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._count = 0

    def ask(self, key: ApiKey, request: Any) -> Any:
        """Send and wait. Raises OSError."""
        self._count += 1
        version = _VERSIONS[key]
        self._socket.sendall(encode_request(key, version, self._count, CLIENT_ID, request))
        (size,) = struct.unpack(">i", self._receive(4))
        return decode_response(key, version, self._receive(size))[1]

    def _receive(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(min(size - len(parts), 1 << 20))
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts += part
        return bytes(parts)

    def close(self) -> None:
        self._socket.close()


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.strip().rpartition(":")
    if not host or not port.isdecimal():
        raise WireError(f"{text} is not HOST:PORT")
    return host.strip("[]"), int(port)


def _check(code: ErrorCode, topic: str, partition: int) -> None:
    if code is not ErrorCode.NONE:
        raise WireError(f"{topic}-{partition}: {code.name}")


def is_bootstrap(text: str) -> bool:
    """Whether a word names a cluster, `HOST:PORT[,...]`, rather than a directory."""
    addresses = [each.strip().rpartition(":") for each in text.split(",")]
    return "/" not in text and all(host and port.isdecimal() for host, _, port in addresses)


def batches_of(cluster: Cluster, topic: str, partition: int) -> Iterator[bytes]:
    """Everything between a log's start and its high watermark as of now, in pieces of whole batches."""
    at, end = cluster.offset(topic, partition, EARLIEST), cluster.offset(topic, partition, LATEST)
    while at < end:
        piece, _ = cluster.fetch(topic, partition, at)
        whole, next_offset = _whole(piece)
        if not whole:
            raise WireError(f"{topic}-{partition}: the broker gave no whole batch from offset {at} on")
        yield whole
        at = next_offset


def _whole(piece: bytes) -> tuple[bytes, int]:
    """The whole batches of a fetched piece, and the offset after them."""
    stop, next_offset = 0, -1
    for batch in batches(piece):
        stop, next_offset = batch.end, batch.next_offset
    return piece[:stop], next_offset
