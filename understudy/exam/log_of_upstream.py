"""Reads the log of a cluster that is already running, the exam's third witness with `--upstream`."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import Consumer, Message, TopicPartition

from understudy.exam.exercise import NotExercised

PATIENCE_S: Final = 30.0  # until the log has been read: the request timeout of Kafka's clients


@dataclass(frozen=True)
class Written:
    """A record. What it does not have is -1, as are producer id and sequence, which consumers do not receive."""

    offset: int
    value: bytes
    key: bytes | None = None
    timestamp_ms: int = -1
    control: bool = False
    producer_id: int = -1
    producer_epoch: int = -1
    sequence: int = -1


def written(message: Message) -> Written:
    """Return what a consumer got."""
    return Written(int(message.offset() or 0), message.value() or b"", message.key(), message.timestamp()[1])


class UpstreamPartition:
    """A partition, read without the library; `settings` are those of a consumer that can reach the cluster."""

    def __init__(self, settings: Mapping[str, Any], topic: str, number: int) -> None:
        self.settings, self.place = settings, (topic, number)

    def records(self, *, limit: int, isolation: str) -> list[Written]:
        """Return its records, at most `limit`. Raises NotExercised if the end is not reached within half a minute."""
        about = {"group.id": "witness", "isolation.level": isolation, "auto.offset.reset": "earliest"}
        reader = Consumer({**self.settings, **about, "enable.partition.eof": True, "enable.auto.commit": False})
        records: list[Written] = []
        until = time.monotonic() + PATIENCE_S
        try:
            reader.assign([TopicPartition(*self.place, 0)])
            while len(records) < limit:
                message = reader.poll(1)
                if message is not None and message.error() is not None:
                    break
                if message is not None:
                    records.append(written(message))
                elif time.monotonic() > until:
                    raise NotExercised(f"{self.place[0]}-{self.place[1]} cannot be read to its end")
        finally:
            reader.close()
        return records
