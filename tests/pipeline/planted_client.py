"""The client of a plant in a journal: topic, group, member and transactional id have the plant's name.

A plant is a row: what the client sends, step by step. Each step returns a number, that of its request if it sends one.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from protocol.errors import ErrorCode
from protocol.log_records.transaction import TransactionState
from protocol.types import uuid_text
from tests.pipeline.fault_files import Planting, Shelf, topic_id_of
from tests.pipeline.journal_lines import Answer, Wire, Wiring, assignment

CLEAN_TOPIC = "wire-clean"
"""A topic of the traffic that is in order."""


class Client:
    """Sends on one connection, which begins with its first request. Its producer has an id of its own."""

    def __init__(
        self, wiring: Wiring, name: str, producer: int, client_id: str | None = None, *, greets: bool = True
    ) -> None:
        self.wiring, self.name, self.producer = wiring, name, producer
        self._client_id, self._greets = client_id or name, greets

    @cached_property
    def wire(self) -> Wire:
        """Its connection."""
        return self.wiring.connect(self._client_id, greets=self._greets)

    @cached_property
    def silent(self) -> "Client":
        """The same client on a connection that does not begin with ApiVersions."""
        return Client(self.wiring, self.name, self.producer, greets=False)

    @cached_property
    def second(self) -> "Client":
        """The same client on a second connection."""
        return Client(self.wiring, self.name, self.producer)

    @cached_property
    def other(self) -> "Client":
        """Another client."""
        return Client(self.wiring, self.name, self.producer, f"{self.name}-2")

    @property
    def where(self) -> Planting:
        """The directory beside the journal."""
        return self.wiring.where

    @property
    def log(self) -> Shelf:
        """The log of partition 0."""
        return self.where.shelf(self.name)

    @property
    def topic_id(self) -> str:
        """Its topic's id, as text."""
        return uuid_text(topic_id_of(self.name))

    def ready(self) -> int:
        """Connect, and send nothing yet; the connection's number."""
        return self.wire.number

    def wait(self, seconds: float) -> int:
        """Send nothing for so long; the time in microseconds."""
        self.wiring.now_us += round(seconds * 1_000_000)
        return self.wiring.now_us

    def wait_for_the_next_second(self) -> int:
        """Send nothing until a second begins; the time in microseconds."""
        return self.wait(1 - self.wiring.now_us % 1_000_000 / 1_000_000)

    def get_a_quota(self) -> int:
        """Be one of the clients with a quota; how many there are."""
        self.where.throttled.append(self._client_id)
        return len(self.where.throttled)

    def changed(self, number: int, *path: str | int, **fields: Any) -> int:
        """Give the answer of a request other fields, at a path in it."""
        return self._give(number, "response", *path, **fields)

    def with_request(self, number: int, *path: str | int, **fields: Any) -> int:
        """Give a request other fields, at a path in it."""
        return self._give(number, "request", *path, **fields)

    def _give(self, number: int, *path: str | int, **fields: Any) -> int:
        at: Any = self.wiring.lines[number - 1]
        for part in path:
            at = at[part]
        at.update(fields)
        return number

    def failed(self, error: str, number: int) -> int:
        """Have an answer whose error has been changed listed with it."""
        self.wiring.lines[number - 1].update(error=error, error_codes=[int(ErrorCode[error])])
        return number

    def call(self, api: str, request: Mapping[str, Any], response: Answer, version: int = 9, **options: Any) -> int:
        """Send any request."""
        return self.wire.call(api, request, response, version=version, **options)

    # ------------------------------------------------------------------ producers

    def init(self, epoch: int = 0, *, named: bool = True, had: int | None = None, timeout_ms: int = 60_000) -> int:
        """InitProducerId, which grants an epoch; `had`: the epoch before."""
        before = (-1, -1) if had is None else (self.producer, had)
        name = self.name if named else None
        return self.wire.init(name, (self.producer, epoch), had=before, timeout_ms=timeout_ms)

    def add(self, topic: str | None = None, epoch: int = 0) -> int:
        """AddPartitionsToTxn of partition 0."""
        return self.wire.add(self.name, (self.producer, epoch), topic or self.name, 0)

    def end(self, epoch: int = 0, *, granted: int | None = None, **options: Any) -> int:
        """EndTxn; with the epoch that it grants, of version 5."""
        if granted is not None:
            options = {"granted": (self.producer, granted), "version": 5} | options
        return self.wire.end(self.name, (self.producer, epoch), **options)

    def _batch(self, sequence: int | None, epoch: int, named: bool) -> dict[str, Any]:
        name = {"name": self.name} if named else {}
        return name if sequence is None else {"who": (self.producer, epoch), "sequence": sequence, **name}

    def produce(
        self, sequence: int | None = None, epoch: int = 0, *, named: bool = False,
        answer: Mapping[str, Any] | None = None, **options: Any,
    ) -> int:  # fmt: skip
        """Produce of a batch; with a sequence, of an idempotent producer. `answer`: other fields of the partition."""
        number = self.wire.produce(self.name, **self._batch(sequence, epoch, named), **options)
        return self.changed(number, "responses", 0, "partition_responses", 0, **answer) if answer else number

    def append(self, sequence: int | None = None, epoch: int = 0, *, named: bool = False, **options: Any) -> int:
        """Append a batch to the log, and Produce it."""
        self.wire.append(self.log, **self._batch(sequence, epoch, named), **options)
        return len(self.wiring.lines)

    def write(self, count: int = 3, *, transactional: bool = False, idempotent: bool = False) -> int:
        """Append a batch to the log, by no request of the journal; its offset."""
        producer = self.producer if transactional or idempotent else -1
        return self.log.data(count, producer=producer, transactional=transactional)

    def mark(self, *, committed: bool, epoch: int = 0) -> int:
        """Append the marker of its transaction to the log; its offset."""
        return self.log.marker(self.producer, epoch, committed=committed)

    def coordinator(self, state: TransactionState, epoch: int = 0, *, topic: str | None = None, **options: Any) -> int:
        """A record of its transactional id, with partition 0 of the topic; the end of the coordinator's log."""
        partitions = [(topic or self.name, 0)] if state == TransactionState.ONGOING else []
        self.where.transaction(self.name, self.producer, epoch, state, partitions, **options)
        return self.where.shelf("__transaction_state").next_offset

    # ------------------------------------------------------------------ consumers

    def fetch(
        self, offset: int = 0, *batches: tuple[int, int], answer: Mapping[str, Any] | None = None, **options: Any
    ) -> int:
        """Fetch of partition 0. `answer`: other fields of the partition."""
        number = self.wire.fetch(self.name, offset, batches, **options)
        return self.changed(number, "responses", 0, "partitions", 0, **answer) if answer else number

    def list_offsets(self, asked_ms: int, offset: int, *, time_ms: int = -1, index: int = 0, epoch: int = 0) -> int:
        """ListOffsets of partition 0."""
        request = {"replica_id": -1, "isolation_level": 0, "topics": [
            {"name": self.name, "partitions": [{"partition_index": 0, "timestamp": asked_ms}]}]}  # fmt: skip
        part = {"partition_index": index, "error_code": "NONE", "timestamp": time_ms, "offset": offset,
                "leader_epoch": epoch}  # fmt: skip
        return self.call("ListOffsets", request, {"topics": [{"name": self.name, "partitions": [part]}]}, 7)

    def fetch_offset(self, offset: int) -> int:
        """OffsetFetch of partition 0."""
        request = {"groups": [{"group_id": self.name, "topics": [{"name": self.name, "partition_indexes": [0]}]}]}
        part = {"partition_index": 0, "committed_offset": offset, "error_code": "NONE"}
        topics = [{"name": self.name, "partitions": [part]}]
        return self.call("OffsetFetch", request, {"groups": [
            {"group_id": self.name, "error_code": "NONE", "topics": topics}]})  # fmt: skip

    # ------------------------------------------------------------------ members

    def join(self, generation: int = 1, member: str | None = None, *, sent_id: str | None = None, **answer: Any) -> int:
        """JoinGroup."""
        number = self.wire.join(self.name, member or self.name, generation, sent_id=sent_id)
        return self.changed(number, **answer)

    def sync(self, generation: int, *own: int, other: Sequence[int] = ()) -> int:
        """SyncGroup of the leader; the partitions of this member and of another one."""
        owned = {self.name: self.assignment(*own).encode()}
        owned |= {"other": self.assignment(*other).encode()} if other else {}
        return self.wire.sync(self.name, self.name, generation, owned)

    def assignment(self, *partitions: int) -> str:
        """An assignment of partitions of its topic, as a journal shows it."""
        return assignment(self.name, *partitions).decode()

    def heartbeat(self, generation: int = 1, error: str = "NONE", member: str | None = None) -> int:
        """Heartbeat."""
        return self.wire.heartbeat(self.name, member or self.name, generation, error)

    def leave(self, member: str | None = None, *, error: str = "NONE") -> int:
        """LeaveGroup of one member."""
        members = [{"member_id": member or self.name, "group_instance_id": None}]
        got = {"error_code": "NONE", "members": [{**members[0], "error_code": error}]}
        return self.call("LeaveGroup", {"group_id": self.name, "members": members}, got, 4)

    def commit(self, offset: int, generation: int = 1, error: str = "NONE", member: str | None = None) -> int:
        """OffsetCommit for partition 0."""
        return self.wire.commit(self.name, member or self.name, generation, self.name, offset, error)

    def commit_in_transaction(self, offset: int, member: str = "", generation: int = -1, version: int = 5) -> int:
        """TxnOffsetCommit for partition 0."""
        who = (self.producer, 0)
        return self.wire.commit_in_transaction(
            self.name, who, self.name, member, generation, self.name, offset, version
        )

    def beat(
        self, epoch: int, granted: int, *, member: str = "m", owned: Any = None, error: str | None = None, **answer: Any
    ) -> int:
        """ConsumerGroupHeartbeat, answered with an epoch. `owned`: the partitions of a member that names its topic."""
        request = {"group_id": self.name, "member_id": member, "member_epoch": epoch}
        if owned is not None:
            request |= {"topic_partitions": owned, "subscribed_topic_names": [self.name]}
        got = {"error_code": "NONE", "member_id": member, "member_epoch": granted, "heartbeat_interval_ms": 5000}
        return self.call("ConsumerGroupHeartbeat", request, {"error_code": error} if error else got | answer, 1)

    def partitions(self, *numbers: int) -> list[dict[str, Any]]:
        """Partitions of its topic, by the topic's id."""
        return [{"topic_id": self.topic_id, "partitions": list(numbers)}]

    # ------------------------------------------------------------------ administrators

    def metadata(
        self, *, copies: int = 1, controller_id: int = 1, topic: Mapping[str, Any] | None = None, **partition: Any
    ) -> int:
        """Metadata of its topic, with one partition on brokers 1 and 2. `topic`: other fields of the topic."""
        part = {"error_code": "NONE", "partition_index": 0, "leader_id": 1, "leader_epoch": 3, "replica_nodes": [1, 2],
                "isr_nodes": [1, 2], "offline_replicas": [], **partition}  # fmt: skip
        described = {"error_code": "NONE", "name": self.name, "is_internal": False,
                     "topic_id": f"{self.name[:20]:A<22}", "partitions": [part] * copies, **(topic or {})}  # fmt: skip
        brokers = [{"node_id": each, "host": "h", "port": 9} for each in (1, 2)]
        got = {"brokers": brokers, "cluster_id": "planted", "controller_id": controller_id, "topics": [described]}
        return self.call("Metadata", {"topics": [{"name": self.name}]}, got, 12)

    def find_coordinator(self, node_id: int, *, key: str | None = None) -> int:
        """FindCoordinator of its group."""
        place = {"host": "h", "port": 9} if node_id >= 0 else {"host": "", "port": -1}
        coordinator = {"key": key or self.name, "node_id": node_id, **place, "error_code": "NONE"}
        request = {"key_type": 0, "coordinator_keys": [self.name]}
        return self.call("FindCoordinator", request, {"coordinators": [coordinator]}, 4)

    def describe_transaction(self, state: str = "Ongoing", **fields: Any) -> int:
        """DescribeTransactions of its transactional id."""
        described = {
            "error_code": "NONE", "transactional_id": self.name, "transaction_state": state, "producer_epoch": 0,
            "producer_id": self.producer, "transaction_timeout_ms": 60_000, "topics": [],
        }  # fmt: skip
        got = {"transaction_states": [described | fields]}
        return self.call("DescribeTransactions", {"transactional_ids": [self.name]}, got, 0)

    def list_transactions(self, *states: str) -> int:
        """ListTransactions, with its own in these states."""
        own = {"transactional_id": self.name, "producer_id": self.producer}
        request = {"state_filters": [], "producer_id_filters": [], "duration_filter": -1}
        listed = [{**own, "transaction_state": state} for state in states]
        got = {"error_code": "NONE", "unknown_state_filters": [], "transaction_states": listed}
        return self.call("ListTransactions", request, got, 0)

    def describe_producer(self, topic: str | None = None, **fields: Any) -> int:
        """DescribeProducers of partition 0, with its producer alone."""
        one = {"producer_id": self.producer, "producer_epoch": 0, "last_sequence": 2, "last_timestamp": -1,
               "coordinator_epoch": -1, "current_txn_start_offset": -1} | fields  # fmt: skip
        part = {"partition_index": 0, "error_code": "NONE", "active_producers": [one]}
        request = {"topics": [{"name": topic or self.name, "partition_indexes": [0]}]}
        topics = [{"name": topic or self.name, "partitions": [part]}]
        return self.call("DescribeProducers", request, {"topics": topics}, 0)

    def share_fetch(self, member: str, *acquired: tuple[int, int, int], records: Mapping[str, Any]) -> int:
        """ShareFetch of partition 0. `acquired`: first offset, last offset, how often they were delivered."""
        parts = [{"partition_index": 0, "acknowledgement_batches": []}]
        request = {"group_id": self.name, "member_id": member, "share_session_epoch": 0, "forgotten_topics_data": [],
                   "topics": [{"topic_id": self.topic_id, "partitions": parts}]}  # fmt: skip
        names = ("first_offset", "last_offset", "delivery_count")
        part = {"partition_index": 0, "error_code": "NONE", "error_message": None, "acknowledge_error_code": "NONE",
                "current_leader": {"leader_id": 0, "leader_epoch": 0}, "records": {"size_bytes": 100, **records},
                "acquired_records": [dict(zip(names, each, strict=True)) for each in acquired]}  # fmt: skip
        got = {"error_code": "NONE", "error_message": None, "acquisition_lock_timeout_ms": 30_000, "node_endpoints": [],
               "responses": [{"topic_id": self.topic_id, "partitions": [part]}]}  # fmt: skip
        return self.call("ShareFetch", request, got, 1)
