"""The clock, the topics, and what cleans them."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Never

from understudy import results
from understudy.aio.part import AsyncPart
from understudy.shape import build, from_bytes
from understudy.wishes import named


class AsyncClock(AsyncPart):
    """The cluster's clock, which all its timers follow."""

    async def show(self) -> results.ClockState:
        """What it shows."""
        return build(results.ClockState, await self._ask("clock show"))

    async def advance(
        self, *said: Never, ms: float = 0, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> results.ClockState:
        """Push it; returns after all that became due has run."""
        named(said, "clock.advance(minutes=15)")
        total = ms + 1000 * (seconds + 60 * (minutes + 60 * (hours + 24 * days)))
        return build(results.ClockState, await self._ask("clock advance", ms=round(total)))

    async def freeze(self) -> results.ClockState:
        """Let it stand still."""
        return build(results.ClockState, await self._ask("clock freeze"))

    async def thaw(self) -> results.ClockState:
        """Let it go on."""
        return build(results.ClockState, await self._ask("clock thaw"))


class AsyncPartition(AsyncPart):
    """One partition of a topic."""

    async def show(self) -> results.Partition:
        """Offsets, epochs, segments, producers, open and aborted transactions."""
        return build(results.Partition, await self._ask("partitions show"))

    async def records(
        self,
        *,
        offset: int | None = None,
        limit: int | None = None,
        isolation: Literal["read_uncommitted", "read_committed"] | None = None,
    ) -> list[results.Record]:
        """Its records, read without a Kafka client."""
        found = await self._ask("records read", offset=offset, limit=limit, isolation=isolation)
        return [build(results.Record, record) for record in found["records"]]

    async def move_leader(self, broker: int | None) -> results.Partition:
        """Give it another leader, or none; the leader epoch goes up by one."""
        return build(results.Partition, await self._ask("leader move", broker=broker))

    async def set_isr(self, replicas: Sequence[int], *, held: Sequence[int] | None = None) -> results.Partition:
        """Say who is in sync; who is not, or is `held`, replicates nothing until it is in sync again."""
        extra = {} if held is None else {"held": list(held)}
        return build(results.Partition, await self._ask("isr set", replicas=list(replicas), **extra))

    async def forget_producer(self, producer_id: int) -> None:
        """Forget what it knows of a producer id, which is what KIP-360 recovers from."""
        await self._ask("producers forget", producer_id=producer_id)


class AsyncPartitions(AsyncPart):
    """The partitions of a topic, by number."""

    def __getitem__(self, partition: int) -> AsyncPartition:
        """The partition with this number."""
        return AsyncPartition(self._send, **self._names, partition=partition)


class AsyncTopic(AsyncPart):
    """One topic."""

    @property
    def partitions(self) -> AsyncPartitions:
        """Its partitions, by number."""
        return AsyncPartitions(self._send, **self._names)

    async def show(self) -> results.Topic:
        """Its partitions and configs."""
        return build(results.Topic, await self._ask("topics show"))

    async def write(self, *records: str | bytes | Mapping[str, Any]) -> list[results.Written]:
        """Write values, or mappings with key, value, headers, partition, timestamp_ms; returns where they went."""
        rows = [record if isinstance(record, Mapping) else {"value": record} for record in records]
        sent = [{name: from_bytes(v) if isinstance(v, bytes) else v for name, v in row.items()} for row in rows]
        found = await self._ask("records write", records=sent)
        return [build(results.Written, written) for written in found["written"]]


class AsyncTopics(AsyncPart):
    """The topics, by name."""

    def __getitem__(self, topic: str) -> AsyncTopic:
        """The topic of this name."""
        return AsyncTopic(self._send, topic=topic)

    async def list(self) -> Sequence[results.Topic]:
        """All of them."""
        return [build(results.Topic, topic) for topic in (await self._ask("topics list"))["topics"]]


class AsyncRetention(AsyncPart):
    """Deletes what is too old or too much."""

    async def run(self) -> None:
        """Now, rather than at the next interval."""
        await self._ask("retention run")


class AsyncCompaction(AsyncPart):
    """The log cleaner."""

    async def run(self) -> None:
        """Now, rather than at the next interval."""
        await self._ask("compaction run")
