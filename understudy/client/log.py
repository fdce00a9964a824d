# Made from understudy/aio/log.py by tools/generate_client.py: change it there.
"""The clock, the topics, and what cleans them."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Never

from understudy import results
from understudy.client.part import Part
from understudy.shape import build, from_bytes
from understudy.wishes import named


class Clock(Part):
    """The cluster's clock, which all its timers follow."""

    def show(self) -> results.ClockState:
        """What it shows."""
        return build(results.ClockState, self._ask("clock show"))

    def advance(
        self, *said: Never, ms: float = 0, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> results.ClockState:
        """Push it; returns after all that became due has run."""
        named(said, "clock.advance(minutes=15)")
        total = ms + 1000 * (seconds + 60 * (minutes + 60 * (hours + 24 * days)))
        return build(results.ClockState, self._ask("clock advance", ms=round(total)))

    def freeze(self) -> results.ClockState:
        """Let it stand still."""
        return build(results.ClockState, self._ask("clock freeze"))

    def thaw(self) -> results.ClockState:
        """Let it go on."""
        return build(results.ClockState, self._ask("clock thaw"))


class Partition(Part):
    """One partition of a topic."""

    def show(self) -> results.Partition:
        """Offsets, epochs, segments, producers, open and aborted transactions."""
        return build(results.Partition, self._ask("partitions show"))

    def records(
        self,
        *,
        offset: int | None = None,
        limit: int | None = None,
        isolation: Literal["read_uncommitted", "read_committed"] | None = None,
    ) -> list[results.Record]:
        """Its records, read without a Kafka client."""
        found = self._ask("records read", offset=offset, limit=limit, isolation=isolation)
        return [build(results.Record, record) for record in found["records"]]

    def move_leader(self, broker: int | None) -> results.Partition:
        """Give it another leader, or none; the leader epoch goes up by one."""
        return build(results.Partition, self._ask("leader move", broker=broker))

    def set_isr(self, replicas: Sequence[int], *, held: Sequence[int] | None = None) -> results.Partition:
        """Say who is in sync; who is not, or is `held`, replicates nothing until it is in sync again."""
        extra = {} if held is None else {"held": list(held)}
        return build(results.Partition, self._ask("isr set", replicas=list(replicas), **extra))

    def forget_producer(self, producer_id: int) -> None:
        """Forget what it knows of a producer id, which is what KIP-360 recovers from."""
        self._ask("producers forget", producer_id=producer_id)


class Partitions(Part):
    """The partitions of a topic, by number."""

    def __getitem__(self, partition: int) -> Partition:
        """The partition with this number."""
        return Partition(self._send, **self._names, partition=partition)


class Topic(Part):
    """One topic."""

    @property
    def partitions(self) -> Partitions:
        """Its partitions, by number."""
        return Partitions(self._send, **self._names)

    def show(self) -> results.Topic:
        """Its partitions and configs."""
        return build(results.Topic, self._ask("topics show"))

    def write(self, *records: str | bytes | Mapping[str, Any]) -> list[results.Written]:
        """Write values, or mappings with key, value, headers, partition, timestamp_ms; returns where they went."""
        rows = [record if isinstance(record, Mapping) else {"value": record} for record in records]
        sent = [{name: from_bytes(v) if isinstance(v, bytes) else v for name, v in row.items()} for row in rows]
        found = self._ask("records write", records=sent)
        return [build(results.Written, written) for written in found["written"]]


class Topics(Part):
    """The topics, by name."""

    def __getitem__(self, topic: str) -> Topic:
        """The topic of this name."""
        return Topic(self._send, topic=topic)

    def list(self) -> Sequence[results.Topic]:
        """All of them."""
        return [build(results.Topic, topic) for topic in (self._ask("topics list"))["topics"]]


class Retention(Part):
    """Deletes what is too old or too much."""

    def run(self) -> None:
        """Now, rather than at the next interval."""
        self._ask("retention run")


class Compaction(Part):
    """The log cleaner."""

    def run(self) -> None:
        """Now, rather than at the next interval."""
        self._ask("compaction run")
