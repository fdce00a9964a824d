"""Producers: idempotent ones, and transactional ones of both versions of the protocol (KIP-98, KIP-890)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from protocol.records.records import Record, build_batch
from simulator.clients.client import GROUP, REQUEST_TIMEOUT_MS, RETRIABLE, TRANSACTION, Client, Lost, first_error
from simulator.history import LAST_EPOCH, Place, Sent, Transaction

TIMEOUT_MS = 10_000
"""Transaction timeout; short, so that abandoned transactions end within the run."""
_PRODUCE_WAIT_MS = 3_000  # below the clients' timeout, so that the broker's code arrives
_EXPIRES_MS = 4_500
"""Less than the runs' shortest transactional.id.expiration.ms."""

OLDEST = {
    ApiKey.INIT_PRODUCER_ID: 3,
    ApiKey.ADD_PARTITIONS_TO_TXN: 1,
    ApiKey.ADD_OFFSETS_TO_TXN: 1,
    ApiKey.TXN_OFFSET_COMMIT: 3,
    ApiKey.END_TXN: 1,
    ApiKey.PRODUCE: 9,
}
OLDER = {
    ApiKey.INIT_PRODUCER_ID: 4,
    ApiKey.ADD_PARTITIONS_TO_TXN: 3,
    ApiKey.ADD_OFFSETS_TO_TXN: 3,
    ApiKey.TXN_OFFSET_COMMIT: 4,
    ApiKey.END_TXN: 4,
    ApiKey.PRODUCE: 11,
}
NEWER = {**OLDER, ApiKey.TXN_OFFSET_COMMIT: 5, ApiKey.END_TXN: 5, ApiKey.PRODUCE: 12}
"""API -> version, of clients that do not know PRODUCER_FENCED, of those before KIP-890, and of those since."""


class Refused(Exception):
    """Error response that a retry of the same request would not change."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


@dataclass(frozen=True, slots=True)
class Membership:
    """Group member that commits offsets, with the fields of TxnOffsetCommit."""

    group: str
    generation: int
    member_id: str


class Producer:
    """A producer id, its epoch and its sequences. ``name`` is the transactional id; None: only idempotent.

    ``newer`` follows transaction.version 2: Produce itself adds partitions, and EndTxn returns the next epoch.
    ``patience_ms``: how long it waits for the response to a batch before it gives the batch up; None: it tries again.
    """

    def __init__(
        self,
        client: Client,
        instance: str,
        name: str | None = None,
        *,
        newer: bool = True,
        oldest: bool = False,
        patience_ms: int | None = None,
    ) -> None:
        self.client, self.instance, self.name, self.newer = client, instance, name, newer
        self._patience_ms = patience_ms
        self._versions = OLDEST if oldest else NEWER if newer else OLDER
        self.producer_id, self.epoch = -1, -1
        self._sequences: dict[Place, int] = {}
        self._joined: set[Place] = set()
        self._count = 0
        self._transactions = 0
        self._known_ms = self._begun_ms = 0
        """When a request was sent whose answer shows that the coordinator knows the producer id; when the transaction
        began."""

    # --- ids and epochs ----------------------------------------------------------------------------------------------

    async def initialize(self, *, come_back: bool = False) -> None:
        """Get an id and epoch; with ``come_back``, bump the epoch that it has (KIP-360). Raises Refused."""
        client, began_us = self.client, self.client.now_us
        # Without transactions Integer.MAX_VALUE, as Kafka's producer sends it.
        request = InitProducerIdRequest(self.name, TIMEOUT_MS if self.name else 2**31 - 1)
        if come_back:
            request.producer_id, request.producer_epoch = self.producer_id, self.epoch
        if self.name is None:
            while True:
                answer = await client.ask_any(ApiKey.INIT_PRODUCER_ID, self._versions[ApiKey.INIT_PRODUCER_ID], request)
                if answer.error_code not in RETRIABLE:
                    break
                await client.pause()
        else:
            key, what = ApiKey.INIT_PRODUCER_ID, "comes back" if come_back else ""
            name, history = self.name, client.history
            with history.initializing(name):
                answer = await client.ask_coordinator(
                    TRANSACTION, name, key, self._versions[key], request, what, lost=lambda: history.doubt_id(name)
                )
        if answer.error_code is not ErrorCode.NONE:
            raise Refused(answer.error_code)
        if come_back and self.name is not None:
            client.history.acted(self.name, self.instance, began_us, "InitProducerId")
        self._use(answer.producer_id, answer.producer_epoch, began_us)

    def _use(self, producer_id: int, epoch: int, began_us: int) -> None:
        self.producer_id, self.epoch, self._known_ms = producer_id, epoch, 0
        self._sequences.clear()
        self.client.note(f"   is producer {producer_id} epoch {epoch}")
        self.client.history.note_producer_epoch(self.name or self.instance, self.instance, producer_id, epoch, began_us)

    def raise_epoch(self) -> None:
        """Bump the epoch as an idempotent producer does by itself."""
        self._use(self.producer_id, self.epoch + 1, self.client.now_us)

    # --- records -----------------------------------------------------------------------------------------------------

    async def send(
        self, place: Place, count: int, transaction: Transaction | None = None, values: Sequence[bytes] = ()
    ) -> None:
        """Send one batch of ``count`` records, and retry until it is acknowledged. Raises Refused."""
        history = self.client.history
        records = []
        for index in range(count):
            self._count += 1
            label = b"%s:%d" % (self.instance.encode(), self._count)
            value = values[index] + b"|" + label if values else label
            records.append(Sent(value, place, self.instance, self._count, transaction))
            history.records[value] = records[-1]
        sequence = self._sequences.get(place, 0)
        self._sequences[place] = sequence + count
        if transaction is not None and not self.newer and place not in self._joined:
            await self._join(place)
        try:
            base = await self._deliver(place, records, sequence, transaction)
        except Refused:
            for each in records:
                each.fate = "refused" if each.fate == "unknown" and not transaction else each.fate
            raise
        for index, each in enumerate(records):
            each.fate, each.offset = "acked", base + index if base >= 0 else -1

    async def _deliver(
        self, place: Place, records: Sequence[Sent], sequence: int, transaction: Transaction | None
    ) -> int:
        """Send a batch until it is acknowledged; return the base offset, -1 if the response has none."""
        client = self.client
        batch = build_batch(
            [Record(index, client.record_ms, None, each.value, ()) for index, each in enumerate(records)],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=transaction is not None,
        )
        version = self._versions[ApiKey.PRODUCE]
        name = self.name if transaction is not None else None
        what = f"{place[0]}-{place[1]}, sequences {sequence} to {sequence + len(records) - 1}"
        maybe_written, patience_ms = False, self._patience_ms
        timeout_ms = REQUEST_TIMEOUT_MS if patience_ms is None or client.world.over else patience_ms
        while True:
            began_us, began_ms = client.now_us, client.world.elapsed_ms()
            data = PartitionProduceData(place[1], bytearray(batch))
            request = ProduceRequest(name, -1, _PRODUCE_WAIT_MS, [TopicProduceData(place[0], [data])])
            try:
                leader = await client.leader(place)
                answer = await client.ask(leader, ApiKey.PRODUCE, version, request, what, timeout_ms=timeout_ms)
            except Lost:
                maybe_written = True
                client.forget_leader(place)
                if patience_ms is not None:
                    raise Refused(ErrorCode.REQUEST_TIMED_OUT) from None
                await client.pause()
                continue
            ((partition,),) = [each.partition_responses for each in answer.responses]
            code = partition.error_code
            if code is ErrorCode.NONE or code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                if self.name is not None:
                    client.history.acted(self.name, self.instance, began_us, "Produce")
                return int(partition.base_offset) if code is ErrorCode.NONE else -1
            self._check_mapping(code, began_ms)
            if code not in RETRIABLE:
                if not maybe_written and transaction is None:
                    client.note(f"   gives up: {code.name}")
                else:
                    for each in records:
                        each.fate = "unknown, refused" if maybe_written else each.fate
                raise Refused(code)
            maybe_written = maybe_written or code in (
                ErrorCode.REQUEST_TIMED_OUT,
                ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            )
            client.forget_leader(place)
            await client.pause()

    def _check_mapping(self, code: ErrorCode, asked_ms: int) -> None:
        """Check that the coordinator had a reason to replace the producer id that it has assigned.

        CONCURRENT_TRANSACTIONS means that it has the id, unless the id's expiration is being written.
        """
        if code is ErrorCode.CONCURRENT_TRANSACTIONS:
            self._known_ms = asked_ms
        if code is not ErrorCode.INVALID_PRODUCER_ID_MAPPING:
            return
        world, name = self.client.world, self.name or ""
        recent = world.elapsed_ms() - self._known_ms < _EXPIRES_MS and world.elapsed_ms() - self._begun_ms < TIMEOUT_MS
        if self._known_ms and recent and not (world.features_change or world.ids_expire):
            self.client.history.unmapped(name, self.instance, self.producer_id, self.epoch)

    # --- transactions ------------------------------------------------------------------------------------------------

    def begin(self) -> Transaction:
        """Begin a transaction: nothing is sent."""
        assert self.name is not None
        self._transactions += 1
        self._begun_ms = self.client.world.elapsed_ms()
        self._joined.clear()
        begun_ms = self.client.world.brokers_ms()
        transaction = Transaction(
            self.name, self.instance, self._transactions,
            producer_id=self.producer_id, epoch=self.epoch, begun_ms=begun_ms,
        )  # fmt: skip
        self.client.history.transactions.append(transaction)
        return transaction

    async def _ask(self, key: ApiKey, request: object, what: str = "") -> None:
        """Send a request to the transaction coordinator. Raises Refused."""
        assert self.name is not None
        began_us = self.client.now_us
        answer = await self.client.ask_coordinator(TRANSACTION, self.name, key, self._versions[key], request, what)
        code = first_error(answer)
        if code is not ErrorCode.NONE:
            raise Refused(code)
        self.client.history.acted(self.name, self.instance, began_us, key.title)

    async def _join(self, place: Place) -> None:
        added = AddPartitionsToTxnTransaction(
            self.name or "", self.producer_id, self.epoch, False, [AddPartitionsToTxnTopic(place[0], [place[1]])]
        )
        request = AddPartitionsToTxnRequest(transactions=[added])
        await self._ask(ApiKey.ADD_PARTITIONS_TO_TXN, request, f"{place[0]}-{place[1]}")
        self._joined.add(place)

    async def send_offsets(self, transaction: Transaction, by: Membership, offsets: Mapping[Place, int]) -> None:
        """Commit a group's offsets with the transaction. Raises Refused."""
        client = self.client
        if not self.newer:
            request = AddOffsetsToTxnRequest(self.name or "", self.producer_id, self.epoch, by.group)
            await self._ask(ApiKey.ADD_OFFSETS_TO_TXN, request, by.group)
        topics = {topic: [p for t, p in offsets if t == topic] for topic in sorted({topic for topic, _ in offsets})}
        sent = TxnOffsetCommitRequest(
            self.name or "",
            by.group,
            self.producer_id,
            self.epoch,
            [
                TxnOffsetCommitRequestTopic(
                    topic, [TxnOffsetCommitRequestPartition(index, offsets[topic, index]) for index in indexes]
                )
                for topic, indexes in topics.items()
            ],
            by.generation,
            by.member_id,
        )
        for place, offset in offsets.items():
            client.history.tried[by.group, place].add(offset)
            transaction.tried_offsets[by.group, place] = offset
        what = f"{by.group} " + ", ".join(f"{topic}-{index}: {offset}" for (topic, index), offset in offsets.items())
        key = ApiKey.TXN_OFFSET_COMMIT
        answer = await client.ask_coordinator(GROUP, by.group, key, self._versions[key], sent, what)
        code = first_error(answer)
        if code is not ErrorCode.NONE:
            raise Refused(code)
        transaction.offsets.update(transaction.tried_offsets)

    async def end(self, transaction: Transaction, *, commit: bool) -> None:
        """Commit or abort. Raises Refused; the transaction's outcome is then as far as known."""
        client, name = self.client, self.name or ""
        request = EndTxnRequest(name, self.producer_id, self.epoch, commit)
        what = f"{'commit' if commit else 'abort'} of transaction {transaction.number}"
        lost = False
        while True:
            began_us = client.now_us
            transaction.ending = commit if transaction.ending is None else transaction.ending or commit
            try:
                answer = await client.ask_coordinator(
                    TRANSACTION, name, ApiKey.END_TXN, self._versions[ApiKey.END_TXN], request, what, retry=False
                )
            except Lost:
                lost = True
                await client.pause()
                continue
            break
        code = answer.error_code
        if code is not ErrorCode.NONE:
            if not lost:
                transaction.outcome = "aborted"
            raise Refused(code)
        client.history.acted(name, self.instance, began_us, "EndTxn")
        transaction.outcome = "committed" if commit else "aborted"
        if commit:
            client.history.note_committed(transaction.offsets)
        if self.newer:
            if (answer.producer_id, answer.producer_epoch) == (self.producer_id, self.epoch):
                client.history.violate(f"{self.instance}: EndTxn returned no new epoch")
            self._use(answer.producer_id, answer.producer_epoch, began_us)
            if self.epoch > LAST_EPOCH:  # with that epoch, no transaction can be committed
                await self.initialize()


class IdempotentClient(Client):
    """Sends batches to all partitions in turn, and retries each until it is acknowledged."""

    def __init__(self, *arguments: object, topics: Sequence[str]) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._places = [(topic, index) for topic in topics for index in range(self.world.topics[topic])]

    async def run(self) -> None:
        """Send until the client is stopped."""
        producer = Producer(self, self.name)
        await producer.initialize()
        while not self.stopping:
            try:
                # One to three records, below too: batches of several, and many batches.
                await producer.send(self.chance.choice(self._places), self.chance.randrange(1, 4))
            except Refused as error:
                self.history.violate(f"{self.name}: an idempotent producer was refused: {error}")
                return
            self.history.progress[self.name] += 1
            await self.pause(200)


class TransactionalClient(Client):
    """Runs transactions one after another, of some records each, committed or aborted."""

    def __init__(
        self,
        *arguments: object,
        topics: Sequence[str],
        transactional_id: str,
        newer: bool,
        oldest: bool = False,
        patience_ms: int | None = None,
    ) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._places = [(topic, index) for topic in topics for index in range(self.world.topics[topic])]
        self._producer = Producer(
            self, self.name, transactional_id, newer=newer, oldest=oldest, patience_ms=patience_ms
        )
        self.resets = not newer  # before KIP-890, a request that arrives late may end another transaction

    async def run(self) -> None:
        """Run transactions until the client is stopped or fenced."""
        producer = self._producer
        try:
            await producer.initialize()
            while not self.stopping:
                if not await self._transaction():
                    await producer.initialize(come_back=True)
                await self.pause(300)
        except Refused as error:
            self.note(f"   ends: {error}")
            self.history.ended(self.name, transactional_id=producer.name or "", why=str(error), calm=self.world.calm)

    async def _transaction(self) -> bool:
        """Run one transaction; return False if the producer needs a new epoch. Raises Refused."""
        producer, transaction = self._producer, self._producer.begin()
        try:
            # Seldom, as an empty transaction writes nothing to check.
            if producer.newer and self.chance.random() < 0.1:
                await producer.end(transaction, commit=False)  # an empty transaction
                return True
            for _ in range(self.chance.randrange(1, 4)):
                await producer.send(self.chance.choice(self._places), self.chance.randrange(1, 4), transaction)
                await self.pause(50)  # within a transaction: shorter than between two
        except Refused as error:
            self.note(f"   aborts: {error}")
            await producer.end(transaction, commit=False)
            return producer.newer
        # Most commit, so that readers of committed records see something.
        commit = self.chance.random() < 0.8
        await producer.end(transaction, commit=commit)
        self.history.progress[self.name] += 1
        return True
