"""A client that breaks rules on purpose, and checks the error that it gets (KIP-98, KIP-360, KIP-890)."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.list_transactions import ListTransactionsRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.records import Record, build_batch
from simulator.clients.client import RETRIABLE, TRANSACTION, Client, Lost, first_error
from simulator.clients.producer import Producer, Refused
from simulator.history import Place

NEVER = b"never"
"""Records with this value must never be in a log."""
EXPIRES_MS = 4_500
"""Less than the runs' shortest `transactional.id.expiration.ms`: after it, a transactional id may have expired."""

Rule = Callable[[str], Coroutine[Any, Any, None]]

PROBER = "prober"
"""Its name, and the prefix of its transactional ids. No fault raises their epochs, so that it knows them."""


class Prober(Client):
    """Breaks one rule in each round, with its own producer or transactional id."""

    given_up_arrives = True
    """Whether a request that it gives up may still arrive; otherwise it resets the connection."""

    def __init__(self, *arguments: object, place: Place) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._place = place
        self.resets = not self.given_up_arrives

    def rules(self) -> Sequence[Rule]:
        """Return the rules that it breaks, each a function that gets the name of the round."""
        return (
            self._gap,
            self._old_epoch,
            self._first_is_not_zero,
            self._without_adding,
            self._stale_epoch_at_coordinator,
            self._strange_producer,
            self._unknown_partition,
            self._patterns,
        )

    async def run(self) -> None:
        """Break rules until the client is stopped."""
        number, rules = 0, self.rules()
        while not self.stopping:
            number += 1
            try:
                await self.chance.choice(rules)(f"{self.name}-{number}")
            except (Lost, Refused) as error:
                self.note(f"   skips the round: {error}")
            self.history.progress[self.name] += 1
            await self.pause(700)

    # --- records -----------------------------------------------------------------------------------------------------

    async def _produce(
        self,
        producer_id: int,
        epoch: int,
        sequence: int,
        name: str | None,
        what: str,
        value: bytes = NEVER,
        place: Place | None = None,
    ) -> ErrorCode:
        """Try once to produce a record, which must be refused; return the response's code. Raises Lost.

        Its timestamp is the current time, so that retention does not delete it if it is wrongly accepted.
        """
        place = self._place if place is None else place
        batch = build_batch(
            [Record(0, self.record_ms, None, value, ())],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=name is not None,
        )
        data = PartitionProduceData(place[1], bytearray(batch))
        # A wait below the client's, so that the broker's code arrives.
        request = ProduceRequest(name, -1, 1_000, [TopicProduceData(place[0], [data])])
        try:
            answer = await self.ask(await self.leader(place), ApiKey.PRODUCE, 11, request, what)
        except Lost:
            self.forget_leader(place)
            raise
        code = first_error(answer)
        if code in RETRIABLE:
            self.forget_leader(place)
        return code

    def _expect(self, code: ErrorCode, *expected: ErrorCode, what: str) -> None:
        if code not in expected and code not in RETRIABLE:
            wanted = " or ".join(each.name for each in expected)
            self.history.violate(f"{self.name}: {what} got {code.name}, not {wanted}")

    async def _idempotent(self, instance: str) -> Producer:
        """Return an idempotent producer that has written two batches."""
        producer = Producer(self, instance)
        await producer.initialize()
        await producer.send(self._place, 1)
        await producer.send(self._place, 2)
        return producer

    async def _gap(self, name: str) -> None:
        known = await self._idempotent(name)
        # Three records are there: 3 would follow.
        code = await self._produce(known.producer_id, known.epoch, 7, None, "after a gap")
        self._expect(code, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, what="a batch after a gap")

    async def _old_epoch(self, name: str) -> None:
        """Produce with an old epoch after the idempotent producer has bumped it by itself (KIP-360)."""
        known = await self._idempotent(name)
        known.raise_epoch()
        await known.send(self._place, 1)
        # The sequence that would follow.
        code = await self._produce(known.producer_id, known.epoch - 1, 3, None, "of an old epoch")
        self._expect(code, ErrorCode.INVALID_PRODUCER_EPOCH, what="a batch of an old epoch")

    async def _first_is_not_zero(self, name: str) -> None:
        known = await self._idempotent(name)
        # Any but 0.
        code = await self._produce(known.producer_id, known.epoch + 1, 5, None, "first of an epoch")
        self._expect(code, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, what="an epoch that begins with sequence 5")

    # --- transactions ------------------------------------------------------------------------------------------------

    def _may_have_expired(self, began_ms: int) -> bool:
        """Whether a transactional id that was initialized after this time may have expired: the clock may jump."""
        return self.world.elapsed_ms() - began_ms >= EXPIRES_MS

    async def _without_adding(self, name: str) -> None:
        began_ms = self.world.elapsed_ms()
        producer = Producer(self, name, name, newer=False)
        await producer.initialize()
        code = await self._produce(producer.producer_id, producer.epoch, 0, name, "not in the transaction")
        if not self._may_have_expired(began_ms):
            self._expect(code, ErrorCode.TRANSACTION_ABORTABLE, what="a batch outside of its transaction")

    async def _add(self, name: str, producer_id: int, epoch: int, partition: int = 0) -> ErrorCode:
        """Add partition 0, and perhaps another one; return the code of partition 0."""
        places = [AddPartitionsToTxnTopic(self._place[0], [0, partition] if partition else [0])]
        request = AddPartitionsToTxnRequest(
            transactions=[AddPartitionsToTxnTransaction(name, producer_id, epoch, False, places)]
        )
        answer = await self.ask_coordinator(TRANSACTION, name, ApiKey.ADD_PARTITIONS_TO_TXN, 3, request, name)
        codes: list[ErrorCode] = [
            each.partition_error_code
            for result in answer.results_by_transaction
            for topic in result.topic_results
            for each in topic.results_by_partition
            if each.partition_index == 0
        ]
        return codes[0]

    async def _stale_epoch_at_coordinator(self, name: str) -> None:
        began_ms = self.world.elapsed_ms()
        producer = Producer(self, name, name, newer=False)
        await producer.initialize()
        producer_id, fenced = producer.producer_id, producer.epoch
        await producer.initialize()
        if producer.producer_id != producer_id:  # the transactional id has expired meanwhile
            return
        answers: list[tuple[ErrorCode, str]] = []
        # One that was, one that never was.
        for epoch in (fenced, producer.epoch + 3):
            answers.append((await self._add(name, producer.producer_id, epoch), f"AddPartitionsToTxn, epoch {epoch}"))
            request = EndTxnRequest(name, producer.producer_id, epoch, committed=True)
            answer = await self.ask_coordinator(TRANSACTION, name, ApiKey.END_TXN, 3, request, name)
            answers.append((answer.error_code, f"EndTxn, epoch {epoch}"))
        # Any timeout, and an epoch that the id has not reached.
        come_back = InitProducerIdRequest(name, 10_000, producer.producer_id, producer.epoch + 5)
        answer = await self.ask_coordinator(TRANSACTION, name, ApiKey.INIT_PRODUCER_ID, 4, come_back, name)
        answers.append((answer.error_code, "InitProducerId of a higher epoch"))
        if not self._may_have_expired(began_ms):
            for code, what in answers:
                self._expect(code, ErrorCode.PRODUCER_FENCED, what=what)

    async def _strange_producer(self, name: str) -> None:
        producer = Producer(self, name, name, newer=False)
        await producer.initialize()
        # Far above the ids that a run gives away.
        code = await self._add(name, producer.producer_id + 100_000, producer.epoch)
        self._expect(code, ErrorCode.INVALID_PRODUCER_ID_MAPPING, what="AddPartitionsToTxn of another producer id")

    async def _unknown_partition(self, name: str) -> None:
        """Add a partition that does not exist: then the other one must not be added either."""
        began_ms = self.world.elapsed_ms()
        producer = Producer(self, name, name, newer=False)
        await producer.initialize()
        # No topic of a run has so many partitions.
        code = await self._add(name, producer.producer_id, producer.epoch, 77)
        if not self._may_have_expired(began_ms):
            self._expect(code, ErrorCode.OPERATION_NOT_ATTEMPTED, what="AddPartitionsToTxn beside an unknown partition")

    async def _patterns(self, _name: str) -> None:
        """List transactions by a pattern, which must match whole transactional ids (KIP-1152)."""
        broker = self.chance.choice(sorted(self.world.network.broker_of.values()))
        request = ListTransactionsRequest(transactional_id_pattern="[a-z]x")
        answer = await self.ask(broker, ApiKey.LIST_TRANSACTIONS, 2, request, "[a-z]x")
        for each in answer.transaction_states:
            self.history.violate(f"{self.name}: the pattern [a-z]x matched {each.transactional_id}")
