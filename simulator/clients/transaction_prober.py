"""A client that breaks rules of transactions, and repeats requests as if responses were lost (KIP-360, KIP-890)."""

from collections.abc import Sequence
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
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from simulator.clients.client import RETRIABLE, TRANSACTION, first_error
from simulator.clients.prober import EXPIRES_MS, PROBER, Prober, Rule
from simulator.clients.producer import Producer
from simulator.history import LAST_EPOCH, Place, Sent
from simulator.loop import sleep_ms

TRANSACTION_PROBER = f"{PROBER}-of-transactions"
STRICT = "strict"
"""Topic whose min.insync.replicas is the number of its replicas."""
_PROMPT_US = 100_000  # ours: no follower comes back, and another one leaves the ISR, within a few round trips
_REFUSED = frozenset({ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR})
_INIT, _END = ApiKey.INIT_PRODUCER_ID, ApiKey.END_TXN
_TIMEOUT_MS, _SCAN_MS, _STEP_MS = 2_000, 2_000, 1_300  # ours; two steps go beyond the timeout
_LATE_MS = _TIMEOUT_MS + _SCAN_MS + 800
"""Time after which a transaction must be aborted: its timeout, the coordinator's scan interval, and a margin.

Ours, for a coordinator that loads.
"""


class TransactionProber(Prober):
    """Breaks rules of transactions. It resets a connection whose request it gives up, so that none arrives late."""

    given_up_arrives = False

    def rules(self) -> Sequence[Rule]:
        """Return the rules that this client breaks."""
        return (
            self._stranger,
            self._repeated_come_back,
            self._repeated_end,
            self._last_epochs,
            self._endless_work,
            self._older_coordinator,
            self._epoch_of_the_data,
            self._too_few_replicas,
        )

    # --- epochs ------------------------------------------------------------------------------------------------------

    async def _initialize(self, name: str, producer_id: int, epoch: int, what: str) -> Any:
        # Any timeout above the probe's length.
        request = InitProducerIdRequest(name, 10_000, producer_id, epoch)
        return await self.ask_coordinator(TRANSACTION, name, _INIT, 4, request, what)

    async def _stranger(self, name: str) -> None:
        """Send InitProducerId with a foreign producer id, which must be fenced (KIP-360)."""
        producer, began_ms = Producer(self, name, name, newer=False), self.world.brokers_ms()
        await producer.initialize()
        # Far above the ids that a run gives away.
        answer = await self._initialize(name, producer.producer_id + 100_000, producer.epoch, "with a strange id")
        if self.world.brokers_ms() - began_ms < EXPIRES_MS:
            self._expect(answer.error_code, ErrorCode.PRODUCER_FENCED, what="InitProducerId of a strange producer")

    async def _repeated_come_back(self, name: str) -> None:
        """Repeat InitProducerId with the same epoch, which must get the same next epoch (KIP-360).

        The coordinator's records do not have the previous epoch: a coordinator that was loaded meanwhile fences the
        producer.
        """
        producer, began_ms = Producer(self, name, name, newer=False), self.world.brokers_ms()
        await producer.initialize()
        had, began_us = (producer.producer_id, producer.epoch), self.now_us
        answers = [await self._initialize(name, *had, what) for what in ("comes back", "comes back, repeated")]
        first, second = ((each.error_code, each.producer_id, each.producer_epoch) for each in answers)
        loaded = second[0] is ErrorCode.PRODUCER_FENCED and not self.history.deliveries.undisturbed(began_us)
        if self.world.brokers_ms() - began_ms < EXPIRES_MS and first != second and not loaded:
            self.history.violate(f"{name}: InitProducerId got {first}, and when repeated {second}")

    async def _ended_twice(self, name: str, producer: Producer) -> None:
        """Repeat EndTxn, which must get the same response (KIP-890)."""
        transaction, had = producer.begin(), (producer.producer_id, producer.epoch)
        await producer.send(self._place, 1, transaction)
        began_ms = self.world.brokers_ms()
        await producer.end(transaction, commit=True)
        now = producer.producer_id, producer.epoch
        request = EndTxnRequest(name, *had, committed=True)
        answer = await self.ask_coordinator(TRANSACTION, name, _END, 5, request, "commit, repeated")
        again = answer.producer_id, answer.producer_epoch
        if self.world.brokers_ms() - began_ms < EXPIRES_MS and (answer.error_code, again) != (ErrorCode.NONE, now):
            self.history.violate(
                f"{name}: EndTxn of {had} got {now}, and when repeated {answer.error_code.name} {again}"
            )

    async def _repeated_end(self, name: str) -> None:
        producer = Producer(self, name, name)
        await producer.initialize()
        await self._ended_twice(name, producer)

    async def _last_epochs(self, name: str) -> None:
        """Use up the epochs: then InitProducerId or EndTxn must return a new producer id with epoch 0."""
        producer = Producer(self, name, name)
        await producer.initialize()
        if not self.world.raise_epoch(name, LAST_EPOCH - 1):
            return
        await self.pause()
        # The last two epochs, and beyond them a new id (transactions A.3).
        for _ in range(self.chance.randrange(1, 4)):
            await producer.initialize()
        await self._ended_twice(name, producer)

    async def _endless_work(self, name: str) -> None:
        """Continue a transaction after its timeout, which counts from its beginning: it must be aborted."""
        request = InitProducerIdRequest(name, _TIMEOUT_MS)
        producer = await self.ask_coordinator(TRANSACTION, name, _INIT, 4, request, "with a short timeout")
        if producer.error_code is not ErrorCode.NONE:
            return
        began_us = self.now_us
        for number, place in enumerate(
            (topic, i) for topic in self.world.topics for i in range(self.world.topics[topic])
        ):
            sent_us = self.now_us
            code = await self._add_one(name, producer.producer_id, producer.producer_epoch, place)
            if code is not ErrorCode.NONE:
                fenced = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING
                self._expect(code, *fenced, what="work after a timeout")
                return
            open_ms = (sent_us - began_us) // 1000
            if number == 0:
                began_us = self.now_us
            elif open_ms > _LATE_MS and self.history.deliveries.undisturbed(began_us):
                self.history.violate(
                    f"{name}: its transaction is still open after {open_ms} ms; its timeout is {_TIMEOUT_MS} ms"
                )
                return
            await sleep_ms(_STEP_MS)

    async def _add_one(self, name: str, producer_id: int, epoch: int, place: Place) -> ErrorCode:
        added = [AddPartitionsToTxnTopic(place[0], [place[1]])]
        request = AddPartitionsToTxnRequest(
            transactions=[AddPartitionsToTxnTransaction(name, producer_id, epoch, False, added)]
        )
        what = f"{name}, {place[0]}-{place[1]}"
        return first_error(
            await self.ask_coordinator(TRANSACTION, name, ApiKey.ADD_PARTITIONS_TO_TXN, 3, request, what)
        )

    # --- markers -----------------------------------------------------------------------------------------------------

    async def _mark(self, producer_id: int, epoch: int, coordinator_epoch: int, version: int, what: str) -> ErrorCode:
        """Write a marker as a coordinator does; return the response's code. Raises Lost."""
        topic = WritableTxnMarkerTopic(self._place[0], [self._place[1]])
        marker = WritableTxnMarker(producer_id, epoch, False, [topic], coordinator_epoch, version)
        request = WriteTxnMarkersRequest([marker])
        answer = await self.ask(await self.leader(self._place), ApiKey.WRITE_TXN_MARKERS, 2, request, what)
        (result,) = answer.markers
        ((partition,),) = [each.partitions for each in result.topics]
        code: ErrorCode = partition.error_code
        if code in RETRIABLE:
            self.forget_leader(self._place)
        return code

    async def _older_coordinator(self, name: str) -> None:
        """Write a marker with an older coordinator epoch, which must be refused (KIP-98)."""
        producer = Producer(self, name)
        await producer.initialize()
        # Above the epochs of the run's coordinators, and then one below it.
        if await self._mark(producer.producer_id, producer.epoch, 1_000, 0, "of a coordinator") is ErrorCode.NONE:
            code = await self._mark(producer.producer_id, producer.epoch, 999, 0, "of an older coordinator")
            self._expect(code, ErrorCode.TRANSACTION_COORDINATOR_FENCED, what="a marker of an older coordinator")

    async def _epoch_of_the_data(self, name: str) -> None:
        """Write a marker of transaction.version 2 with the data's epoch; it must be one epoch ahead (KIP-1228)."""
        producer = Producer(self, name, name)
        await producer.initialize()
        transaction = producer.begin()
        await producer.send(self._place, 1, transaction)
        code = await self._mark(producer.producer_id, producer.epoch, 1_000, 2, "with the epoch of the data")
        self._expect(code, ErrorCode.INVALID_PRODUCER_EPOCH, what="a marker of version 2 with the epoch of the data")
        await producer.end(transaction, commit=False)

    # --- replicas ----------------------------------------------------------------------------------------------------

    async def _in_sync(self) -> tuple[int, int, int]:
        """Return the strict topic's leader epoch, ISR size and replica count. Raises Lost."""
        request = MetadataRequest([MetadataRequestTopic(STRICT)])
        answer = await self.ask(await self.leader((STRICT, 0)), ApiKey.METADATA, 12, request, STRICT)
        (topic,) = answer.topics
        if not topic.partitions:
            return -1, 0, 0
        (partition,) = topic.partitions
        return partition.leader_epoch, len(partition.isr_nodes), len(partition.replica_nodes)

    async def _too_few_replicas(self, name: str) -> None:
        """Produce with acks=all to too few in-sync replicas: the batch must be refused, and not be written."""
        place = STRICT, 0
        self.forget_leader(place)
        producer = Producer(self, name)
        await producer.initialize()
        began_us = self.now_us
        epoch, in_sync, replicas = before = await self._in_sync()
        if epoch < 0 or in_sync == replicas:
            return
        sent = self.history.records[name.encode()] = Sent(name.encode(), place, name, 1, None)
        what = f"with {in_sync} of {replicas} replicas in sync"
        code = await self._produce(producer.producer_id, producer.epoch, 0, None, what, sent.value, place)
        if code is ErrorCode.NOT_ENOUGH_REPLICAS:
            sent.fate = "refused"
        elif code is ErrorCode.NONE:
            sent.fate = "acked"
        unchanged = await self._in_sync() == before and self.now_us - began_us < _PROMPT_US
        if unchanged and code not in _REFUSED:
            self.history.violate(f"{name}: a batch {what} got {code.name}")
