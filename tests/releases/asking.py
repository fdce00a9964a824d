"""A client that asks a cluster of any release: each request in the newest version that both sides know."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

from protocol.apis import ApiKey
from protocol.client.steps import run
from protocol.client.versions import negotiate, newest
from protocol.errors import ErrorCode
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.records import Record, build_batch
from tests.wire import Wire

GROUP, TRANSACTION = 0, 1
FOR_BROKERS = {ApiKey.ADD_PARTITIONS_TO_TXN: 3}  # from 4 on brokers alone may ask
_SETTLING = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.INVALID_REPLICATION_FACTOR,  # a broker that has just started and is not registered
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}


_NUMBERS = count(time.time_ns())
"""Of all names: one row for all clients, which may follow each other faster than the clock ticks."""


def wait(seconds: float) -> None:
    """Let the time of a real cluster pass."""
    threading.Event().wait(seconds)


class Absent(Exception):
    """The cluster has no such API, or none of the versions that are wanted."""


def adding(transactional_id: str, producer_id: int, producer_epoch: int, topic: str) -> AddPartitionsToTxnRequest:
    """AddPartitionsToTxn of the topic's partition 0."""
    topics = [AddPartitionsToTxnTopic(topic, [0])]
    transaction = AddPartitionsToTxnTransaction(transactional_id, producer_id, producer_epoch, topics=topics)
    return AddPartitionsToTxnRequest(transactions=[transaction])


def added(answer: AddPartitionsToTxnResponse) -> ErrorCode:
    """What became of it."""
    return answer.results_by_transaction[0].topic_results[0].results_by_partition[0].partition_error_code


class Client:
    """One connection; names of topics, groups and transactional ids are new at each call.

    `pause(seconds)` lets the cluster's time pass.
    """

    def __init__(self, address: str, patience_s: float = 20, pause: Callable[[float], object] = wait) -> None:
        self.address, self.patience_s, self.pause = address, patience_s, pause
        self.wire = Wire(address, "releases", patience_s)
        self.versions = run(negotiate("releases", "1", version=0), self.wire.call)

    def name(self, what: str) -> str:
        """A name that nothing had before."""
        return f"{what}-{next(_NUMBERS)}"

    def version(self, key: ApiKey, at_most: int = 99, at_least: int = 0) -> int:
        """The newest common version. Raises Absent."""
        version = newest(self.versions, key, at_least=at_least, at_most=min(at_most, FOR_BROKERS.get(key, at_most)))
        if version is None:
            raise Absent(key.title)
        return version

    def ask(self, key: ApiKey, request: Any, *, at_most: int = 99, at_least: int = 0) -> Any:
        """The answer in the newest common version."""
        return self.wire.call(key, self.version(key, at_most, at_least), request)

    def settled(self, ask: Callable[[], Any], code: Callable[[Any], ErrorCode]) -> Any:
        """Ask until the answer is none of those that a new topic or coordinator gives at first."""
        deadline = time.monotonic() + self.patience_s
        while True:
            answer = ask()
            if code(answer) not in _SETTLING or time.monotonic() > deadline:
                return answer

    # --- what most questions begin with ------------------------------------------------------------------------------

    def topic(self, configs: Mapping[str, str] | None = None) -> str:
        """A topic of one partition that has its leader."""
        name = self.name("topic")
        answer = self.settled(lambda: self.create(name, configs), lambda response: response.error_code)
        if answer.error_code is not ErrorCode.NONE:
            raise Absent(answer.error_code.name)
        # At most v10: from v11 on followers answer too, and so does a broker that does not lead yet.
        self.settled(lambda: self.fetch(name, max_wait_ms=0, at_most=10), lambda part: part.error_code)
        return name

    def create(self, name: str, configs: Mapping[str, str] | None = None, partitions: int = 1) -> Any:
        """The answer to a topic's creation."""
        settings = [CreatableTopicConfig(key, value) for key, value in (configs or {}).items()]
        request = CreateTopicsRequest([CreatableTopic(name, partitions, 1, configs=settings)], 10_000)
        return self.ask(ApiKey.CREATE_TOPICS, request).topics[0]

    def coordinator(self, key: str, kind: int) -> None:
        """Wait until the key has one."""
        request = FindCoordinatorRequest(key, kind, coordinator_keys=(key,))
        self.settled(
            lambda: self.ask(ApiKey.FIND_COORDINATOR, request), lambda answer: answer.coordinators[0].error_code
        )

    def producer(self, transactional_id: str | None = None, *, timeout_ms: int = 60_000, at_most: int = 99) -> Any:
        """The answer of InitProducerId: a fresh id and epoch."""
        if transactional_id is not None:
            self.coordinator(transactional_id, TRANSACTION)
        request = InitProducerIdRequest(transactional_id, timeout_ms)
        return self.settled(
            lambda: self.ask(ApiKey.INIT_PRODUCER_ID, request, at_most=at_most), lambda answer: answer.error_code
        )

    def add(self, transactional_id: str, producer: Any, topic: str) -> ErrorCode:
        """Add partition 0 of the topic to the transaction."""
        request = adding(transactional_id, producer.producer_id, producer.producer_epoch, topic)
        answer = self.settled(lambda: self.ask(ApiKey.ADD_PARTITIONS_TO_TXN, request), added)
        return added(answer)

    def ask_together(self, requests: Sequence[tuple[ApiKey, Any, int]]) -> list[Any]:
        """The answers to requests that come at once: each with its API and the newest version that is wanted."""
        self.wire.send_together([(key, self.version(key, at_most), request) for key, request, at_most in requests])
        return [self.wire.answer() for _ in requests]

    def produce(
        self,
        topic: str,
        producer: Any = None,
        sequence: int = 0,
        *,
        transactional_id: str | None = None,
        key: bytes | None = b"k",
        timestamp_ms: int | None = None,
        codec: int = 0,
        at_most: int = 11,
    ) -> Any:
        """One record; the partition's answer. From v12 on the leader adds partitions to a transaction by itself."""
        written_ms = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
        owner = (-1, -1, -1) if producer is None else (producer.producer_id, producer.producer_epoch, sequence)
        batch = build_batch(
            [Record(0, written_ms, key, b"value")],
            producer_id=owner[0],
            producer_epoch=owner[1],
            base_sequence=owner[2],
            transactional=transactional_id is not None,
            codec=codec,
        )
        data = TopicProduceData(topic, [PartitionProduceData(0, batch)])
        request = ProduceRequest(transactional_id, -1, 10_000, [data])
        return self.ask(ApiKey.PRODUCE, request, at_most=at_most).responses[0].partition_responses[0]

    def fetch(self, topic: str, offset: int = 0, *, max_wait_ms: int = 200, at_most: int = 12) -> Any:
        """The partition's part of the answer."""
        wanted = FetchTopic(topic, [FetchPartition(0, offset, 1 << 20)])
        request = FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1 << 20, topics=[wanted])
        return self.ask(ApiKey.FETCH, request, at_most=at_most).responses[0].partitions[0]


def result_of(part: object) -> str:
    """A partition's answer to Produce as text."""
    code = part.error_code  # type: ignore[attr-defined]
    return "NONE" if code is ErrorCode.NONE else f"{code.name} log start {part.log_start_offset}"  # type: ignore[attr-defined]


def delete_records(client: Client, topic: str) -> None:
    """All of a topic's."""
    partition = DeleteRecordsPartition(0, -1)
    client.ask(ApiKey.DELETE_RECORDS, DeleteRecordsRequest([DeleteRecordsTopic(topic, [partition])], 5000))
