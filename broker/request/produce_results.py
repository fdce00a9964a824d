"""The results of the partitions of a Produce request: admitted for the append, then appended or refused."""

from uuid import UUID

from broker.replication.partition import ReplicatedPartition
from protocol.errors import KafkaError
from protocol.records.batch import RecordBatch
from storage.append_info import AppendInfo


class Produced:
    """The result of one partition of a request: ``info`` if its batch was appended, else ``error``.

    Only the wait for replication changes it afterwards: it sets ``error`` beside ``info`` if the batch was appended but
    not replicated in time.

    Attributes:
        asked_name: the topic's name in the request; empty if the request has the topic's id.
        topic_id: the topic's id in the request.
        topic: the topic's name, if known.
        index: the partition's number.
        partition: the partition, if it exists.
        batch: its first batch, if it could be read.
        info: the offsets of the appended batch.
        error: the error in its response.
        reached_log: whether the append itself failed, rather than a check before it: the response's fields differ
            (transactions D.13).
    """

    def __init__(
        self,
        asked_name: str,
        topic_id: UUID | None,
        topic: str,
        index: int,
        partition: ReplicatedPartition | None = None,
        batch: RecordBatch | None = None,
        info: AppendInfo | None = None,
        error: KafkaError | None = None,
        *,
        reached_log: bool = False,
    ) -> None:
        self.asked_name, self.topic_id, self.topic, self.index = asked_name, topic_id, topic, index
        self.partition, self.batch = partition, batch
        self.info, self.error, self.reached_log = info, error, reached_log


class Admitted:
    """A partition of a request whose batch may be appended. The first fields are as in `Produced`.

    Attributes:
        records: the batch's bytes, which the log takes over.
        guard: the guard of its verification, for a transactional batch (KIP-890).
        overruled: the error in its response even if the append succeeds: another entry of the request for this
            partition was refused.
    """

    def __init__(
        self,
        asked_name: str,
        topic_id: UUID | None,
        topic: str,
        index: int,
        partition: ReplicatedPartition,
        batch: RecordBatch,
        records: memoryview,
        guard: object | None = None,
        overruled: KafkaError | None = None,
    ) -> None:
        self.asked_name, self.topic_id, self.topic, self.index = asked_name, topic_id, topic, index
        self.partition, self.batch, self.records = partition, batch, records
        self.guard, self.overruled = guard, overruled

    @property
    def transactional(self) -> bool:
        """Whether the batch belongs to a producer's transaction."""
        return self.batch.is_transactional and self.batch.producer_id >= 0

    def guarded_by(self, guard: object) -> "Admitted":
        """Return a copy with a guard."""
        return Admitted(
            self.asked_name,
            self.topic_id,
            self.topic,
            self.index,
            self.partition,
            self.batch,
            self.records,
            guard,
            self.overruled,
        )

    def refused(self, error: KafkaError, *, reached_log: bool = False) -> Produced:
        """Return the result for a batch that was refused, by the log or before."""
        return Produced(
            self.asked_name,
            self.topic_id,
            self.topic,
            self.index,
            self.partition,
            self.batch,
            error=without_stack(error),
            reached_log=reached_log,
        )


def without_stack(error: KafkaError) -> KafkaError:
    """Return the error without its traceback, which would keep the request in memory."""
    error.__traceback__ = error.__cause__ = error.__context__ = None
    return error
