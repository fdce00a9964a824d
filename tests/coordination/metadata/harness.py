"""A metadata machine on a bench: its log is a list, chance always answers 0, ids count up from 1000."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from broker.coordination.metadata.brokers import Registration
from broker.coordination.metadata.effects import MetadataChange, MetadataOutcome
from broker.coordination.metadata.image import BrokerListener, ClusterImage, Partition, Topic
from broker.coordination.metadata.machine import MetadataMachine, bootstrap_records
from broker.coordination.metadata.topics import CreatedTopic, NewTopic
from broker.coordination.outcome import Reply
from broker.settings import BrokerSettings
from protocol.log_records.metadata import decode, encode

TOKEN = "token"


def directory(broker_id: int) -> UUID:
    """The log directory of a broker."""
    return UUID(int=100 + broker_id)


class Bench:
    """Machine and log; ``brokers`` of them are registered and unfenced, unless there are none."""

    def __init__(
        self,
        brokers: int = 1,
        settings: Mapping[str, str] | None = None,
        *,
        racks: Sequence[str] = (),
        levels: Mapping[str, int] | None = None,
    ) -> None:
        self.settings = BrokerSettings(1, settings)
        self.levels = levels
        self._ids = 999
        self._lives = 0
        self.log: list[bytes] = []
        self.machine = self.new_machine()
        self.do(self.machine.loaded(0))
        for broker_id in range(1, brokers + 1):
            self.arrive(broker_id, rack=racks[broker_id - 1] if racks else None)

    def new_machine(self) -> MetadataMachine:
        """A machine that knows nothing yet."""
        return MetadataMachine(
            self.settings,
            new_uuid=self._new_uuid,
            below=lambda _n: 0,
            next_offset=lambda: len(self.log),
            bootstrap=bootstrap_records(self.levels),
        )

    def _new_uuid(self) -> UUID:
        self._ids += 1
        return UUID(int=self._ids)

    @property
    def image(self) -> ClusterImage:
        """The machine's image."""
        return self.machine.image

    def do(self, outcome: MetadataOutcome) -> tuple[Any, ...]:
        """What the runtime does with an outcome: append through the codec, replay; the records."""
        base = len(self.log)
        for record in outcome.records:
            _, value = encode(record)
            assert value is not None
            assert decode(None, value) == record
            self.log.append(value)
        for index, record in enumerate(outcome.records):
            self.machine.replay(record, base + index)
        return outcome.records

    def reloaded(self, upto: int | None = None) -> MetadataMachine:
        """A new machine over the log, or over its beginning."""
        machine = self.new_machine()
        for offset, value in enumerate(self.log[:upto]):
            machine.replay(decode(None, value), offset)
        return machine

    def arrive(self, broker_id: int, *, clean: bool = True, rack: str | None = None) -> tuple[Any, ...]:
        """A broker registers and is unfenced; all the records."""
        return self.register(broker_id, clean=clean, rack=rack) + self.do(self.machine.unfence_broker(broker_id))

    def register(self, broker_id: int, *, clean: bool = True, rack: str | None = None) -> tuple[Any, ...]:
        """A broker's new life begins, fenced."""
        self._lives += 1
        listeners = {"PLAINTEXT": BrokerListener("localhost", 9092 + broker_id)}
        who = Registration(broker_id, UUID(int=self._lives), listeners, [directory(broker_id)], rack, clean=clean)
        return self.do(self.machine.register_broker(who))

    def create(self, name: str, *assignments: Sequence[int], configs: Mapping[str, str | None] | None = None) -> Topic:
        """A topic with these replicas."""
        wanted = NewTopic(name, assignments=list(enumerate(assignments)), configs=configs or {})
        (created,) = answer(outcome := self.machine.create_topics([wanted], TOKEN))
        assert isinstance(created, CreatedTopic)
        assert created.error is None, created.error
        self.do(outcome)
        return self.image.topics[name]

    def partition(self, name: str, index: int = 0) -> Partition:
        """A partition's registration."""
        registration = self.image.partition(name, index)
        assert registration is not None
        return registration


def answer(outcome: MetadataOutcome) -> Any:
    """The message of the one reply."""
    (reply,) = [effect for effect in outcome.effects if isinstance(effect, Reply)]
    assert reply.to == TOKEN
    return reply.message


def changes(outcome: MetadataOutcome) -> list[MetadataChange]:
    """The effects that brokers follow, in order."""
    return [effect for effect in outcome.effects if isinstance(effect, MetadataChange)]
