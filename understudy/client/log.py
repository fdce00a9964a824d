# Made from understudy/aio/log.py by tools/generate_client.py: change it there.
"""The clock, the topics and their partitions."""

from collections.abc import Mapping
from typing import Any, Never

from control_api.encoding import bytes_json
from understudy import results
from understudy.client.resource import Part
from understudy.client.verbs import ClockVerbs, PartitionVerbs, TopicsVerbs, TopicVerbs
from understudy.from_json import build
from understudy.options import named


class Clock(ClockVerbs):
    """The cluster's clock, which drives all its timers."""

    def advance(
        self,
        *positional: Never,
        ms: float = 0,
        seconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
    ) -> results.ClockState:
        """Advance the clock; returns after all timers that became due have run."""
        named(positional, "clock.advance(minutes=15)")
        total = ms + 1000 * (seconds + 60 * (minutes + 60 * (hours + 24 * days)))
        return build(results.ClockState, self._ask("clock advance", ms=round(total)))


class Partition(PartitionVerbs):
    """One partition of a topic."""


class Partitions(Part):
    """The partitions of a topic, by number."""

    def __getitem__(self, partition: int) -> Partition:
        """Return the partition with this number."""
        return Partition(self._send, **self._names, partition=partition)


class Topic(TopicVerbs):
    """One topic."""

    @property
    def partitions(self) -> Partitions:
        """Return its partitions, by number."""
        return Partitions(self._send, **self._names)

    def write(self, *records: str | bytes | Mapping[str, Any]) -> list[results.Written]:
        """Write values, or mappings with key, value, headers, partition, timestamp_ms.

        Return their partitions and offsets.
        """
        rows = [record if isinstance(record, Mapping) else {"value": record} for record in records]
        sent = [{name: bytes_json(v) if isinstance(v, bytes) else v for name, v in row.items()} for row in rows]
        result = self._ask("records write", records=sent)
        return [build(results.Written, written) for written in result["written"]]


class Topics(TopicsVerbs):
    """The topics, by name."""

    def __getitem__(self, topic: str) -> Topic:
        """Return the topic with this name."""
        return Topic(self._send, topic=topic)
