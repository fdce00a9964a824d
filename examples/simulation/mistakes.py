"""Copies of the copier with one mistake each: understudy simulate --application mistakes:CommitsFirst.simulated ..."""

import asyncio
import uuid

from aiokafka.errors import KafkaError, ProducerFenced

import copier
from simulated import check

MISTAKES = {}


class Mistake(copier.Copier):
    """A copier with a mistake. The docstring of each: what people think, and what happens."""

    def __init_subclass__(cls):
        if cls.__doc__:
            MISTAKES[cls.__name__] = cls

    @classmethod
    async def simulated(cls, sim):
        await check(sim, cls)


class CommitsFirst(Mistake):
    """The records are in my hands, so I commit.

    A process that dies before its transaction ends has lost them.
    """

    async def copy(self, batches):
        await self.consumer.commit()
        async with self.producer.transaction():
            await self.send_all([record for records in batches.values() for record in records])


class CommitsAfterwards(Mistake):
    """Produce in a transaction, then commit the offsets.

    Between the two, the process dies, and copies them again.
    """

    async def copy(self, batches):
        async with self.producer.transaction():
            await self.send_all([record for records in batches.values() for record in records])
        await self.consumer.commit()


class CommitsOffsetOfLastRecord(Mistake):
    """The offset of the last record is the committed one.

    It is the next one to read, so each restart copies one again.
    """

    async def copy(self, batches):
        async with self.producer.transaction():
            await self.send_all([record for records in batches.values() for record in records])
            ends = {partition: records[-1].offset for partition, records in batches.items()}
            await self.producer.send_offsets_to_transaction(ends, "copiers")


class LeavesAutoCommitOn(Mistake):
    """The transaction commits, so the default cannot hurt.

    The consumer also commits, of what is not copied yet.
    """

    def create_consumer(self):
        return super().create_consumer(enable_auto_commit=True, auto_commit_interval_ms=500)


class StartsAtTheEnd(Mistake):
    """The defaults are sensible.

    Without auto_offset_reset, records that came before the first commit are skipped.
    """

    @staticmethod
    async def begin_with_first_records(servers):
        pass

    def create_consumer(self):
        return super().create_consumer(auto_offset_reset="latest")


class ReadsUncommitted(Mistake):
    """I write in transactions, so I am isolated.

    The reader needs read_committed, or copies what upstream aborts.
    """

    def create_consumer(self):
        return super().create_consumer(isolation_level="read_uncommitted")


class HasGroupOfItsOwn(Mistake):
    """A unique group avoids conflicts.

    Each start begins with the first record again.
    """

    @staticmethod
    async def begin_with_first_records(servers):
        pass

    def create_consumer(self):
        return super().create_consumer(group_id=f"copiers-{uuid.uuid4()}", auto_offset_reset="earliest")


class HasTransactionalIdOfItsOwn(Mistake):
    """Ids must be unique.

    Then nothing fences an old instance, and a dead one's transaction blocks readers for a minute.
    """

    def create_producer(self):
        return super().create_producer(transactional_id=f"copier-{uuid.uuid4()}")


class JoinsBeforeFencing(Mistake):
    """The order of two starts does not matter.

    The offset is fetched first, then the old instance commits once more.
    """

    async def run(self):
        self.consumer.subscribe(["in"], listener=self)
        await self.consumer.start()
        await self.producer.start()
        try:
            while True:
                await self.copy_next()
        finally:
            await self.consumer.stop()
            await self.producer.stop()


class IgnoresRebalances(Mistake):
    """A rebalance is the library's business.

    A batch from before it is copied although its partition has moved.
    """

    async def on_partitions_revoked(self, revoked):
        pass


class SwallowsFencing(Mistake):
    """Fenced? A new producer helps.

    Two instances with one id take turns, and each copies its batch again.
    """

    async def copy(self, batches):
        try:
            await super().copy(batches)
        except ProducerFenced:
            await self.producer.stop()
            self.producer = self.create_producer()
            await self.producer.start()
            await super().copy(batches)


class RepeatsAfterTimeout(Mistake):
    """No answer in time means that it failed.

    The commit was done, only its answer was late; it is done twice.
    """

    async def copy(self, batches):
        try:
            await asyncio.wait_for(super().copy(batches), 2)
        except TimeoutError:
            await self.producer.stop()
            self.producer = self.create_producer()
            await self.producer.start()
            await super().copy(batches)


class SendsOutsideOfTransaction(Mistake):
    """Errors are only logged, so a second producer will do.

    An aborted transaction leaves its poison records behind.
    """

    plain = None

    async def send(self, record, outcome):
        value, headers = outcome
        if not headers:
            return await super().send(record, outcome)
        if self.plain is None:
            self.plain = self.create_producer(transactional_id=None)
            await self.plain.start()
        return await self.plain.send("out", value, key=record.key, headers=headers)


class DoesNotWaitForSends(Mistake):
    """The commit flushes.

    Aiokafka commits without the records that could not be sent, and their offsets with it.
    """

    async def send_all(self, records):
        for record in records:
            await self.send(record, await self.transform(record))


class HasNoTransaction(Mistake):
    """Idempotence is exactly once.

    Only for one life of the producer; a restart sends what was not committed again.
    """

    def create_producer(self):
        return super().create_producer(transactional_id=None, enable_idempotence=True)

    async def copy(self, batches):
        await self.send_all([record for records in batches.values() for record in records])
        await self.consumer.commit()


class AcksOne(HasNoTransaction):
    """acks=1 is fast and safe enough.

    A leader that dies takes acknowledged records with it.
    """

    def create_producer(self):
        return copier.Copier.create_producer(self, transactional_id=None, acks=1)


class DoesNotRewind(Mistake):
    """The transaction is aborted, so it is read again.

    Only if the consumer seeks; otherwise its records are skipped.
    """

    def rewind(self, batches):
        pass


class SeeksToCommitted(Mistake):
    """seek_to_committed rewinds.

    Not a partition without a committed offset; in aiokafka 0.14, not while it looks for the coordinator.
    """

    async def copy(self, batches):
        try:
            await super().copy(batches)
        except OSError:
            await self.consumer.seek_to_committed()


class KeepsProducerAfterError(Mistake):
    """After an error of Kafka's, the transaction is aborted and repeated.

    All that follow are out of order, for ever: the batch that was given up leaves a gap in the sequence.
    """

    def check_no_request_is_late(self):
        pass  # which would end it after most of these errors: they take as long as a request's timeout

    async def copy(self, batches):
        try:
            await super().copy(batches)
        except ProducerFenced:
            raise
        except KafkaError:
            self.rewind(batches)


class ContinuesTransaction(Mistake):
    """The next attempt continues the transaction of the failed one.

    What that one had sent is committed, too, and so it is there twice.
    """

    is_open = False

    async def copy(self, batches):
        if not self.is_open:
            await self.producer.begin_transaction()
            self.is_open = True
        sent = [await self.send(each, await self.transform(each)) for records in batches.values() for each in records]
        for each in sent:
            await each
        ends = {partition: records[-1].offset + 1 for partition, records in batches.items()}
        await self.producer.send_offsets_to_transaction(ends, "copiers")
        await self.producer.commit_transaction()
        self.is_open, self.committed = False, ends


class RemembersAborted(Mistake):
    """A set of what was copied prevents duplicates.

    It also has what was aborted, and so those records are skipped.
    """

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.copied = set()

    async def send_all(self, records):
        new = [each for each in records if (each.partition, each.offset) not in self.copied]
        self.copied |= {(each.partition, each.offset) for each in new}
        await super().send_all(new)


class SkipsNeighboursOfPoison(Mistake):
    """A record that cannot be read is skipped.

    With it, the rest of its batch.
    """

    async def send_all(self, records):
        try:
            await super().send_all([each for each in records if int(each.value) is not None])
        except ValueError:
            pass


class StaysPaused(Mistake):
    """Pause while something is wrong.

    After the error, nothing resumes the partitions.
    """

    def rewind(self, batches):
        super().rewind(batches)
        self.consumer.pause(*self.consumer.assignment())


class SwallowsCancellation(Mistake):
    """Nothing may stop the loop.

    CancelledError is caught with the errors, and so a clean stop does not end it.
    """

    async def copy_next(self):
        try:
            await super().copy_next()
        except BaseException as error:
            copier.log.warning("goes on after %r", error)
            await asyncio.sleep(0)


class ContinuesAfterEachError(Mistake):
    """Log and continue.

    After a fatal error, such as fencing, each transaction fails, for ever.
    """

    async def copy_next(self):
        try:
            await super().copy_next()
        except Exception as error:
            copier.log.warning("goes on after %r", error)
            await asyncio.sleep(0.1)


class HandlesRecordsAtOnce(Mistake):
    """One task for each record is faster.

    They finish in any order, and so a key's records change places.
    """

    async def send_all(self, records):
        await asyncio.gather(*await asyncio.gather(*map(self.handle, records)))

    async def handle(self, record):
        return await self.send(record, await self.transform(record))
