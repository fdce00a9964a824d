"""The reference producer: one batch at a time, idempotent, transactional by version 2 of the protocol (KIP-890)."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from protocol.records.compression import Codec
from protocol.records.records import Record, build_batch
from tests.exam.reference.network import RETRIABLE, Lost, Network, Refused

FENCED = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
TRANSACTION = 1


@dataclass
class Batch:
    """Records that are sent together."""

    topic: str
    partition: int
    records: Sequence[Mapping[str, Any]]
    sequence: int = -1
    is_reported: bool = False
    """Whether it was reported as failed, and is in the queue nevertheless."""


class ReferenceProducer:
    """A producer."""

    def __init__(self, network: Network, options: Mapping[str, Any]) -> None:
        self.network, self.options, self.mutations = network, options, network.mutations
        self.producer_id, self.epoch = -1, -1
        self.sequences: dict[tuple[str, int], int] = {}
        self.queue: deque[Batch] = deque()
        self.outcomes: list[dict[str, Any]] = []
        self.early: dict[int, Any] = {}
        self.failed: Refused | None = None
        self.fatal: Refused | None = None
        self.used = False
        self.added: set[tuple[str, int]] = set()

    def deadline(self, timeout_ms: int) -> float:
        """From now on."""
        return time.monotonic() + timeout_ms / 1000

    # --- records -----------------------------------------------------------------------------------------------------

    def send(self, topic: str, records: Sequence[Mapping[str, Any]]) -> None:
        """Queue a batch for each run of records to the same partition."""
        for record in records:
            last = self.queue[-1] if self.queue else None
            if last is None or (last.topic, last.partition) != (topic, record["partition"]) or len(last.records) > 4:
                last = Batch(topic, record["partition"], [])
                self.queue.append(last)
            last.records = [*last.records, record]

    def flush(self) -> list[dict[str, Any]]:
        """Deliver what is queued; the outcomes of all records since the last flush."""
        self._deliver_all()
        outcomes, self.outcomes = self.outcomes, []
        return outcomes

    def _deliver_all(self) -> None:
        outcomes, later = self.outcomes, list[Batch]()
        while self.queue:
            batch = self.queue.popleft()
            try:
                base = self._deliver(batch)
            except Refused as error:
                if "error-is-success" in self.mutations:
                    outcomes += [{"id": record["id"], "offset": -1} for record in batch.records]
                    continue
                self.failed = self.failed or error
                if error.kind == "timeout":
                    self._after_expiry(batch)
                refusal = {"class": error.kind, "code": error.code, "message": str(error)}
                outcomes += [
                    {"id": record["id"], "error": refusal} for record in batch.records if not batch.is_reported
                ]
                if error.kind == "timeout" and "sends-after-expiry" in self.mutations:
                    batch.is_reported = True
                    later.append(batch)
            else:
                outcomes += self._written_at(base, batch)
        self.queue.extend(later)

    def _after_expiry(self, batch: Batch) -> None:
        """Go on with another producer id, unless the queue has batches that were sent with the present one.

        Whether the expired batch was written is not known, so neither is the next sequence (KIP-360).
        """
        if self.options["transactional_id"] or self.producer_id < 0 or "keeps-sequence-after-expiry" in self.mutations:
            return
        if "uses-expired-sequence-again" in self.mutations:
            self.sequences[batch.topic, batch.partition] = batch.sequence
        elif all(each.sequence < 0 for each in self.queue):
            self.producer_id = -1

    def _written_at(self, base: int, batch: Batch) -> list[dict[str, Any]]:
        step = 0 if base < 0 or "base-offset-for-all" in self.mutations else 1
        records = [] if batch.is_reported else batch.records
        return [{"id": record["id"], "offset": base + index * step} for index, record in enumerate(records)]

    def _deliver(self, batch: Batch) -> int:
        """The base offset; -1 if it is written and the offset is not known. Raises Refused."""
        deadline = self.deadline(self.options["delivery_timeout_ms"])
        if "writes-nothing" in self.mutations:
            return -1
        if self.options["idempotent"] and self.producer_id < 0:
            self.initialize(deadline)
        if batch.sequence < 0:  # the rest of a batch that was split has its own
            self._number(batch)
        while True:
            address = self.network.leader(batch.topic, batch.partition, deadline)
            left = deadline - time.monotonic()
            patience_s = (
                left + 0.01 if "never-times-out" in self.mutations else min(self.network.patience_s, max(left, 0.01))
            )
            try:
                answer = self._attempt(address, batch, patience_s)
            except Lost as error:
                base = self._after_loss(batch, error)
                if base is not None:
                    return base
                self.network.pause(deadline)
                continue
            base = self._judge(batch, answer, deadline)
            if base is not None:
                if "writes-twice" in self.mutations:
                    self.network.ask(address, ApiKey.PRODUCE, self._version(), self._request([batch]))
                return base

    def _attempt(self, address: str, batch: Batch, patience_s: float) -> Any:
        """The answer for the batch's partition. Raises Lost, also where the answer does not mention it.

        Batches that wait for other partitions of the same leader are sent together with it; what was answered for them
        is kept until it is their turn.
        """
        if id(batch) in self.early:
            return self.early.pop(id(batch))
        together = [batch, *self._companions(address, batch)]
        self._add_partitions(together)
        answer = self.network.ask(address, ApiKey.PRODUCE, self._version(), self._request(together), patience_s)
        answered = [
            ((topic.name, each.index), each) for topic in answer.responses for each in topic.partition_responses
        ]
        answers = dict(answered)
        if "first-partition-for-all" in self.mutations:
            answers = dict.fromkeys(((each.topic, each.partition) for each in together), answered[0][1])
        failed = any(each.error_code is not ErrorCode.NONE for each in answers.values())
        for each in () if failed and "repeats-what-was-written" in self.mutations else together[1:]:
            if (each.topic, each.partition) in answers:
                self.early[id(each)] = answers[each.topic, each.partition]
        if (batch.topic, batch.partition) not in answers:
            raise Lost("no partition in the answer")
        return answers[batch.topic, batch.partition]

    def _add_partitions(self, batches: Sequence[Batch]) -> None:
        """Add partitions to the transaction, as before KIP-890. Raises Refused."""
        if "adds-partitions-once" not in self.mutations or not self.options["transactional_id"]:
            return
        name, deadline = self.options["transactional_id"], self.deadline(self.options["delivery_timeout_ms"])
        for topic, partition in sorted({(each.topic, each.partition) for each in batches} - self.added):
            places = [AddPartitionsToTxnTopic(topic, [partition])]
            request = AddPartitionsToTxnRequest(name, self.producer_id, self.epoch, places)
            code = ErrorCode.CONCURRENT_TRANSACTIONS
            while code in RETRIABLE:
                answer = self.network.ask_coordinator(
                    TRANSACTION, name, ApiKey.ADD_PARTITIONS_TO_TXN, 3, request, deadline
                )
                code = answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
                self.network.pause(deadline)
            if code is not ErrorCode.NONE:
                raise Refused("abortable", code, code.name)
            self.added.add((topic, partition))

    def _companions(self, address: str, batch: Batch) -> list[Batch]:
        """The first batches in the queue for other partitions of the same broker, numbered."""
        companions: dict[tuple[str, int], Batch] = {}
        for each in self.queue:
            place = each.topic, each.partition
            known = self.network.nodes.get(self.network.leaders.get(place, -1))
            if place != (batch.topic, batch.partition) and known == address and id(each) not in self.early:
                companions.setdefault(place, each)
        for each in companions.values():
            if each.sequence < 0:
                self._number(each)
        return list(companions.values())

    def _after_loss(self, batch: Batch, error: Lost) -> int | None:
        if "lost-answer-is-success" in self.mutations:
            return -1
        if "gives-up-when-lost" in self.mutations:
            raise Refused("other", None, str(error))
        if "new-sequence-after-loss" in self.mutations:
            self._number(batch)
        self.network.forget_leader(batch.topic, batch.partition)
        return None

    def _judge(self, batch: Batch, answer: Any, deadline: float) -> int | None:
        """The base offset, or None to try again. Raises Refused."""
        code = answer.error_code
        if code is ErrorCode.NONE:
            return int(answer.base_offset)
        if "error-is-success" in self.mutations:
            return -1
        if code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER and "duplicate-is-error" not in self.mutations:
            return -1
        if code is ErrorCode.UNKNOWN_PRODUCER_ID and self.options["transactional_id"] is None:
            self._after_unknown_id(batch, deadline)
            self._number(batch)
            return None
        if code in RETRIABLE and "gives-up-on-errors" not in self.mutations:
            self._prepare_again(batch)
            self.network.pause(deadline)
            return None
        kind = "fatal" if code in FENCED else "abortable" if self.options["transactional_id"] else "other"
        if code in FENCED:
            self.fatal = Refused(kind, code, code.name)
        raise Refused(kind, code, code.name)

    def _after_unknown_id(self, batch: Batch, deadline: float) -> None:
        """Begin again with sequence 0 in each partition, under another producer id or epoch (KIP-360)."""
        if "bumps-for-one-partition" in self.mutations:
            self.epoch += 1
            del self.sequences[batch.topic, batch.partition]
            return
        if "keeps-unknown-producer-id" not in self.mutations:
            self.initialize(deadline)
        self.sequences.clear()

    def _prepare_again(self, batch: Batch) -> None:
        if "new-sequence-after-error" in self.mutations:
            self._number(batch)
        if "splits-after-error" in self.mutations and len(batch.records) > 1:
            rest = Batch(batch.topic, batch.partition, batch.records[1:], batch.sequence + 1)
            batch.records = batch.records[:1]
            self.queue.appendleft(rest)
        if "moves-on-without-refresh" not in self.mutations:
            self.network.forget_leader(batch.topic, batch.partition)

    def _number(self, batch: Batch) -> None:
        """Give it the next sequence."""
        if self.producer_id < 0:
            return
        place = batch.topic, batch.partition
        batch.sequence = self.sequences.get(place, 0)
        self.sequences[place] = batch.sequence + len(batch.records)

    def _version(self) -> int:
        if "adds-partitions-once" in self.mutations:
            return 11
        return 12 if self.options["transactional_id"] else 9

    def _request(self, batches: Sequence[Batch]) -> ProduceRequest:
        topics: dict[str, list[PartitionProduceData]] = {}
        for each in batches:
            topics.setdefault(each.topic, []).append(PartitionProduceData(each.partition, self._written(each)))
        acks = -1 if self.options["acks"] == "all" else int(self.options["acks"])
        data = [TopicProduceData(name, partitions) for name, partitions in topics.items()]
        return ProduceRequest(self.options["transactional_id"], acks, 1_000, data)

    def _written(self, batch: Batch) -> bytearray:
        now_ms = int(time.time() * 1000)
        records = [
            Record(index, now_ms, self._key(record["key"]), self._value(record["value"]))
            for index, record in enumerate(batch.records)
        ]
        known = self.producer_id >= 0 and "writes-without-producer-id" not in self.mutations
        header = {
            "producer_id": self.producer_id if known else -1,
            "producer_epoch": self.epoch if known else -1,
            "base_sequence": batch.sequence if known else -1,
            "transactional": known and bool(self.options["transactional_id"]),
            "codec": Codec[self.options["compression"].upper()],
        }
        return build_batch(map(self.network.planted.record, records), **self.network.planted.header(header))

    def _key(self, key: str | None) -> bytes | None:
        if key is None or (not key and "writes-empty-keys-as-none" in self.mutations):
            return None
        return key.encode()

    def _value(self, value: str | None) -> bytes | None:
        if value is None:
            return b"" if "writes-null-values-as-empty" in self.mutations else None
        return value.encode()

    # --- producer ids and transactions -------------------------------------------------------------------------------

    def initialize(self, deadline: float) -> None:
        """Get a producer id. Raises Refused."""
        name = self.options["transactional_id"]
        request = InitProducerIdRequest(name, self.options["transaction_timeout_ms"])
        if name:
            answer = self.network.ask_coordinator(TRANSACTION, name, ApiKey.INIT_PRODUCER_ID, 5, request, deadline)
        else:
            answer = self._initialize_anywhere(request, deadline)
        if answer.error_code is not ErrorCode.NONE:
            raise Refused("fatal", answer.error_code, answer.error_code.name)
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self.sequences.clear()
        self.failed = None

    def _initialize_anywhere(self, request: InitProducerIdRequest, deadline: float) -> Any:
        while True:
            answer = self.network.ask_any(ApiKey.INIT_PRODUCER_ID, 5, request, deadline)
            if answer.error_code not in RETRIABLE:
                return answer
            if "gives-up-on-errors" in self.mutations:
                raise Refused("other", answer.error_code, answer.error_code.name)
            self.network.pause(deadline)

    def begin(self) -> None:
        """Begin a transaction. Raises Refused: the producer is fenced."""
        if self.fatal is not None:
            raise self.fatal
        self.failed, self.used = None, False

    def _drop_queue(self) -> None:
        if "aborted-records-come-later" not in self.mutations:
            dropped = {"class": "abortable", "code": None, "message": "the transaction was aborted"}
            self.outcomes += [{"id": record["id"], "error": dropped} for each in self.queue for record in each.records]
            self.queue.clear()

    def end(self, *, committed: bool, deadline: float) -> None:
        """End the transaction, with the records that are still queued. Raises Refused."""
        if committed:
            self._deliver_all()
        else:
            self._drop_queue()
        if self.fatal is not None and "commit-is-always-success" not in self.mutations:
            raise self.fatal
        if committed and self.failed is not None and "commits-despite-failure" not in self.mutations:
            raise Refused("abortable", None, f"a record was not written: {self.failed}")
        if "commit-is-not-sent" in self.mutations:
            return
        if not self.used and not self.sequences and "ends-empty-transactions" not in self.mutations:
            return
        name = self.options["transactional_id"]
        committed = True if "abort-commits" in self.mutations else committed
        request = EndTxnRequest(name, self.producer_id, self.epoch, committed)
        if "commit-is-always-success" in self.mutations:
            address = self.network.coordinator(TRANSACTION, name, deadline)
            self.network.ask(address, ApiKey.END_TXN, 5, request)
            self.sequences.clear()
            return
        version = 4 if "adds-partitions-once" in self.mutations else 5
        answer = self.network.ask_coordinator(TRANSACTION, name, ApiKey.END_TXN, version, request, deadline)
        code = answer.error_code
        if code in FENCED:
            self.fatal = Refused("other" if "fencing-is-not-fatal" in self.mutations else "fatal", code, code.name)
            raise self.fatal
        if code is not ErrorCode.NONE:
            raise Refused("abortable", code, code.name)
        if answer.producer_id >= 0 and "keeps-old-epoch" not in self.mutations:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        self.used = False

    def add_offsets(
        self, group: str, generation: int, member_id: str, positions: Mapping[tuple[str, int], int], deadline: float
    ) -> None:
        """Commit offsets within the transaction. Raises Refused."""
        if "forgets-offsets" in self.mutations:
            return
        self.used = "offsets-are-nothing" not in self.mutations
        if "forgets-its-membership" in self.mutations:
            generation, member_id = -1, ""
        places: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in positions.items():
            places.setdefault(topic, []).append(TxnOffsetCommitRequestPartition(partition, offset))
        topics = [TxnOffsetCommitRequestTopic(topic, partitions) for topic, partitions in places.items()]
        request = TxnOffsetCommitRequest(
            str(self.options["transactional_id"]), group, self.producer_id, self.epoch, topics, generation, member_id
        )
        answer = self.network.ask_coordinator(0, group, ApiKey.TXN_OFFSET_COMMIT, 5, request, deadline)
        for each in answer.topics:
            for committed in each.partitions:
                if committed.error_code is not ErrorCode.NONE:
                    raise Refused("abortable", committed.error_code, committed.error_code.name)
