"""Copies the topic `in` to the topic `out`, exactly once: consume, transform, produce in transactions of aiokafka.

Each record has a number, which is looked up in another service; a record without one is copied with a header `error`.
"""

import asyncio
import logging
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition

log = logging.getLogger(__name__)
REQUEST_TIMEOUT_S = 5


class Copier(ConsumerRebalanceListener):
    """One instance of the service. `run` returns when it is cancelled; its caller starts it again if it fails."""

    def __init__(self, servers, look_up):
        self.servers, self.look_up = servers, look_up
        self.transaction = asyncio.Lock()
        self.rebalances = 0
        self.committed = {}  # by the last transaction
        self.looked_up_s = self.took_s = 0.0  # when the last look-up ended, and what Kafka took since then
        self.producer = self.create_producer()
        self.consumer = self.create_consumer()

    def create_producer(self, **settings):
        settings = {"transactional_id": "copier", "request_timeout_ms": REQUEST_TIMEOUT_S * 1_000} | settings
        return AIOKafkaProducer(bootstrap_servers=self.servers, **settings)

    def create_consumer(self, **settings):
        settings = {
            "group_id": "copiers", "enable_auto_commit": False, "auto_offset_reset": "none",
            "isolation_level": "read_committed", "session_timeout_ms": 6_000,
        } | settings  # fmt: skip
        return AIOKafkaConsumer(bootstrap_servers=self.servers, **settings)

    @staticmethod
    async def begin_with_first_records(servers, partitions=(0, 1)):
        """Commit offset 0 of each partition of `in`: once, before the first instance runs.

        The copier has no `auto_offset_reset`: where its offset cannot be read, it ends, and does not begin again.
        """
        consumer = AIOKafkaConsumer(bootstrap_servers=servers, group_id="copiers", enable_auto_commit=False)
        consumer.assign([TopicPartition("in", each) for each in partitions])
        async with consumer:
            await consumer.commit(dict.fromkeys(consumer.assignment(), 0))

    async def run(self):
        await self.producer.start()  # first: from here on, an older instance with this transactional id is fenced
        try:
            self.consumer.subscribe(["in"], listener=self)
            await self.consumer.start()
            try:
                while True:
                    await self.copy_next()
            finally:
                await self.consumer.stop()
        finally:
            await self.producer.stop()

    async def copy_next(self):
        self.check_no_request_is_late()
        # Few records: if one of hundreds cannot be looked up, all are looked up again, and hardly ever all succeed.
        batches = await self.consumer.getmany(timeout_ms=300, max_records=20)
        rebalances = self.rebalances
        async with self.transaction:
            if batches and rebalances == self.rebalances:  # otherwise they may be another member's by now
                self.looked_up_s = time.monotonic()
                try:
                    await self.copy(batches)
                except OSError as error:  # of the other service; a KafkaError ends this instance: the next is like new
                    log.warning("aborted: %r", error)
                    self.rewind(batches)
                self.took_s = time.monotonic() - self.looked_up_s

    def check_no_request_is_late(self):
        """End this instance if the last transaction took so long that aiokafka has repeated a request of it.

        The first one may still arrive: a late EndTxn ends the next transaction of this epoch in its midst (KIP-890);
        a late TxnOffsetCommit has older offsets. The next instance has another epoch.
        """
        if self.took_s >= REQUEST_TIMEOUT_S:
            raise RuntimeError(f"Kafka took {self.took_s:.1f} s for a transaction")

    async def copy(self, batches):
        async with self.producer.transaction():
            await self.send_all([record for records in batches.values() for record in records])
            ends = {partition: records[-1].offset + 1 for partition, records in batches.items()}
            await self.producer.send_offsets_to_transaction(ends, "copiers")
        self.committed = ends

    async def send_all(self, records):
        outcomes = [await self.transform(record) for record in records]  # if it fails, nothing was sent that may fail
        sent = [await self.send(*each) for each in zip(records, outcomes, strict=True)]
        await asyncio.gather(*sent)  # aiokafka commits even if a record could not be sent

    async def send(self, record, outcome):
        value, headers = outcome
        return await self.producer.send("out", value, key=record.key, headers=headers)

    async def transform(self, record):
        try:
            number = int(record.value)
        except ValueError:
            return record.value, [("error", b"not a number")]
        try:
            return await self.look_up(number), []
        finally:
            self.looked_up_s = time.monotonic()

    def rewind(self, batches):
        """Read again what the aborted transaction had read."""
        for partition, records in batches.items():
            self.consumer.seek(partition, records[0].offset)

    async def on_partitions_revoked(self, revoked):
        async with self.transaction:  # lets the transaction end before the partitions move
            self.rebalances += 1
            await self.wait_until_committed()

    async def wait_until_committed(self):
        """Return when the last commit can be read: aiokafka does not ask for stable offsets (KIP-447).

        The next transaction cannot begin before; it is aborted.
        """
        if self.committed:
            began_s = time.monotonic()
            await self.producer.begin_transaction()
            await self.producer.send_offsets_to_transaction(self.committed, "copiers")
            await self.producer.abort_transaction()
            self.committed, self.took_s = {}, max(self.took_s, time.monotonic() - began_s)

    async def on_partitions_assigned(self, assigned):
        pass
