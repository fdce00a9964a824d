"""Members of share groups (KIP-932) through confluent-kafka, for its driver."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import AcknowledgeType, KafkaError, KafkaException, ShareConsumer

from tests.exam.drivers.kit import Refused, record_json

TYPES = {"accept": AcknowledgeType.ACCEPT, "release": AcknowledgeType.RELEASE, "reject": AcknowledgeType.REJECT}


class ShareMember:
    """A member with explicit acknowledgement."""

    def __init__(self, settings: Mapping[str, Any], refused: Callable[[KafkaError], Refused]) -> None:
        self._consumer: Any = ShareConsumer({**settings, "share.acknowledgement.mode": "explicit"})
        self._refused = refused

    def subscribe(self, topics: list[str]) -> None:
        """Join the group with the next poll."""
        self._consumer.subscribe(topics)

    def poll(self, timeout_ms: int) -> Mapping[str, Any]:
        """The records and errors that were there."""
        records, errors = [], []
        try:
            for message in self._consumer.poll(timeout_ms / 1000):
                if message.error() is None:
                    place = message.topic(), message.partition(), message.offset()
                    time_ms = message.timestamp()[1]
                    records.append(record_json(place, message.key(), message.value(), time_ms, message.headers()))
                else:
                    errors.append(self._refused(message.error()).as_json())
        except KafkaException as error:
            errors.append(self._refused(error.args[0]).as_json())
        return {"records": records, "errors": errors}

    def acknowledge(self, kind: str, records: Sequence[Mapping[str, Any]]) -> None:
        """Keep it for the next commit."""
        for each in records:
            self._consumer.acknowledge_offset(each["topic"], each["partition"], each["offset"], TYPES[kind])

    def commit(self, timeout_ms: int) -> None:
        """Send the acknowledgements. Raises the first error of a partition."""
        for error in self._consumer.commit_sync(timeout_ms / 1000).values():
            if error is not None:
                raise error

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
