"""A client of the transaction scenarios: it finds coordinators and leaders, and answers with plain values."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import count
from typing import Any, cast

import pytest

from protocol.apis import ApiKey
from protocol.log_records import transaction as codec
from protocol.log_records.transaction import TransactionRecord, TransactionTombstone
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.describe_transactions import DescribeTransactionsRequest, TransactionState
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.records.records import Record, build_batch, read_records
from tests.scenarios.on_kafka import TARGET
from tests.scenarios.transactions import kafka_harness
from tests.scenarios.transactions.harness import Stage, running
from tests.scenarios.transactions.partitions import BAR, FOO, LOG, Partitions, logged_in

APART = {"brokers": 2, "settings": {"broker.session.timeout.ms": 60_000}}
"""Two brokers, of which one may be paused for a while without being given up."""
QUICK_EXPIRY = {
    "transactional.id.expiration.ms": 3_000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 1_000,
}
"""Ids are forgotten while a real clock can be waited for."""
CodeAndProducer = tuple[int, int, int]
"""Error code, producer id, epoch."""
Parts = Mapping[str, Sequence[int]]


def on_target(**options: Any) -> AbstractAsyncContextManager[Stage]:
    """A stage with these options of ``running``; with ``TARGET=kafka`` over a real one, which has the same calls."""
    if TARGET == "kafka":
        return cast("AbstractAsyncContextManager[Stage]", kafka_harness.running(**options))
    return running(**options)


def on_cluster(**options: Any) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., Awaitable[None]]]:
    """Run the test with a :class:`Client` of a cluster made with these options of ``running``; foo has 3 partitions."""
    options = {"topics": {FOO: 3, BAR: 1}, **options}

    def wrap(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        @functools.wraps(test)
        async def run(**arguments: Any) -> None:
            failure: BaseException | None = None
            async with on_target(**options) as stage:
                try:
                    await test(Client(stage), **arguments)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - raised as it is, not inside an exception group
                    failure = error
            if failure is not None:
                raise failure

        signature = inspect.signature(test)
        run.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
        return run

    return wrap


class Client(Partitions):
    """Asks the broker in charge; the cluster's clock is frozen, so nothing happens unless a test lets time pass."""

    # --- the transaction coordinator ---------------------------------------------------------------------------------

    async def init(
        self,
        name: str | None = "tx",
        producer: tuple[int, int] = (-1, -1),
        *,
        v: int = 4,
        broker: int | None = None,
        **more: Any,
    ) -> CodeAndProducer:
        """InitProducerId."""
        request = InitProducerIdRequest(name, more.pop("timeout_ms", 60_000), *producer, **more)
        if broker is None:
            broker = 1 if not name else await self.coordinator(name)
        answer = await self.ask(broker, ApiKey.INIT_PRODUCER_ID, v, request)
        return int(answer.error_code), answer.producer_id, answer.producer_epoch

    async def new(self, name: str | None = "tx", producer: tuple[int, int] = (-1, -1), **more: Any) -> tuple[int, int]:
        """InitProducerId that succeeds: producer id and epoch."""
        code, producer_id, epoch = await self.init(name, producer, **more)
        assert code == 0, code
        return producer_id, epoch

    async def at_epoch(self, epoch: int, name: str = "tx") -> tuple[int, int]:
        """A producer at that epoch, steered there."""
        await self.new(name)
        self.hang_up()  # it may have taken a restart
        return await self.stage.set_epoch(name, epoch, await self.coordinator(name))

    async def add(
        self, producer: tuple[int, int], parts: Parts, name: str = "tx", *, v: int = 3
    ) -> dict[tuple[str, int], int]:
        """AddPartitionsToTxn for one transaction: code per partition."""
        (codes,) = (await self.add_many([(name, *producer, False, parts)], v=v))[1]
        return codes

    async def add_many(
        self, transactions: Iterable[tuple[str, int, int, bool, Parts]], *, v: int = 5
    ) -> tuple[int, list[dict[tuple[str, int], int]]]:
        """AddPartitionsToTxn: the code at the top, and per transaction the code per partition."""
        requested = [
            AddPartitionsToTxnTransaction(
                name, producer_id, epoch, verify, [AddPartitionsToTxnTopic(t, list(ps)) for t, ps in parts.items()]
            )
            for name, producer_id, epoch, verify, parts in transactions
        ]
        broker = await self.coordinator(requested[0].transactional_id or "x")
        answer = await self.ask(
            broker, ApiKey.ADD_PARTITIONS_TO_TXN, v, AddPartitionsToTxnRequest(transactions=requested)
        )
        return int(answer.error_code), [
            {
                (topic.name, p.partition_index): int(p.partition_error_code)
                for topic in result.topic_results
                for p in topic.results_by_partition
            }
            for result in answer.results_by_transaction
        ]

    async def add_offsets(self, producer: tuple[int, int], group: str = "g1", name: str = "tx", *, v: int = 3) -> int:
        """AddOffsetsToTxn."""
        request = AddOffsetsToTxnRequest(name, *producer, group)
        answer = await self.ask(await self.coordinator(name), ApiKey.ADD_OFFSETS_TO_TXN, v, request)
        return int(answer.error_code)

    async def end(
        self, producer: tuple[int, int], commit: bool = True, name: str = "tx", *, v: int = 5, broker: int | None = None
    ) -> CodeAndProducer:
        """EndTxn."""
        broker = broker or await self.coordinator(name or "x")
        answer = await self.ask(broker, ApiKey.END_TXN, v, EndTxnRequest(name, *producer, commit))
        return int(answer.error_code), answer.producer_id, answer.producer_epoch

    async def finish(
        self, producer: tuple[int, int], commit: bool = True, name: str = "tx", *, v: int = 5
    ) -> tuple[int, int]:
        """EndTxn that succeeds and is complete: producer id and epoch to go on with."""
        code, *next_producer = await self.end(producer, commit, name, v=v)
        assert code == 0, code
        await self.settle()
        state, producer_id, epoch = await self.state(name)
        assert state == ("CompleteCommit" if commit else "CompleteAbort"), state
        assert v < 5 or next_producer == [producer_id, epoch]
        return producer_id, epoch

    async def settle(self) -> None:
        """Let what is due now happen: markers, retries."""
        await self.stage.pass_time(0)

    async def describe(self, name: str = "tx", *, broker: int | None = None) -> TransactionState:
        """DescribeTransactions of one id."""
        broker = broker or await self.coordinator(name or "x")
        answer = await self.ask(broker, ApiKey.DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest([name]))
        (transaction_state,) = answer.transaction_states
        return transaction_state  # type: ignore[no-any-return]

    async def state(self, name: str = "tx") -> tuple[str, int, int]:
        """State, producer id, epoch."""
        description = await self.describe(name)
        assert not description.error_code, description.error_code
        return description.transaction_state, description.producer_id, description.producer_epoch

    async def parts(self, name: str = "tx") -> set[tuple[str, int]]:
        """The partitions of the transaction."""
        return {(topic.topic, index) for topic in (await self.describe(name)).topics for index in topic.partitions}

    async def log(self, name: str = "tx") -> list[TransactionRecord | TransactionTombstone]:
        """The records of an id in the transaction log, oldest first."""
        index = logged_in(name)
        records = []
        for batch in (await self.read(LOG, partition=index)).batches:
            for record in () if batch.is_control else read_records(batch):
                decoded = codec.decode(record.key, record.value)
                if decoded is not None and decoded.transactional_id == name:
                    records.append(decoded)
        return records

    async def coordinated_by(self, broker: int) -> str:
        """A transactional id that this broker coordinates."""
        for number in count():
            if await self.coordinator(f"tx-{number}") == broker:
                return f"tx-{number}"
        raise AssertionError

    async def apart(self, topic: str = FOO, *, coordinator: int = 1, leader: int = 2) -> str:
        """A transactional id of one broker, and a topic's first partition on another.

        Its markers stay away while that one is paused.
        """
        await self.reassign(topic, 0, [leader])
        return await self.coordinated_by(coordinator)

    async def move(self, name: str, broker: int) -> int:
        """Let another broker coordinate an id, by reassigning its partition of the log; the new leader epoch."""
        index = logged_in(name)
        return await self.reassign(LOG, index, [broker])

    async def plant(self, topic: str, partition: int, *records: tuple[bytes, bytes | None]) -> None:
        """Write records into an internal topic, as a restore tool does; they are believed at the next load."""
        now_ms = self.stage.clock.now_ms()
        batch = build_batch([Record(n, now_ms, key, value) for n, (key, value) in enumerate(records)])
        admin = Client(self.stage, "__admin_client")
        answer = await admin.produce(topic, partition=partition, records=batch)
        assert not answer.error_code, answer
