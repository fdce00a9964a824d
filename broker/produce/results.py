"""The result of a partition of a Produce request: admitted on its way to the log, then produced, or not."""

from dataclasses import dataclass
from uuid import UUID

from broker.replication.partition import ReplicatedPartition
from protocol.errors import KafkaError
from protocol.records.batch import RecordBatch
from storage.append_info import AppendInfo


@dataclass(slots=True)
class Produced:
    """The result of one partition of a request: ``info`` where its batch was appended, else ``error``.

    Made once; only the wait for replication sets ``error`` beside ``info`` afterwards: appended, and then not
    replicated in time.

    Attributes:
        asked_name: the topic's name in the request, which is empty where it names the topic by id.
        topic_id: the topic's id in the request.
        topic: the topic's name, as far as it is known.
        index: the partition's number.
        partition: the partition, if it exists.
        batch: its first batch, if it could be read.
        info: where the batch went.
        error: the error of its answer.
        reached_log: whether the append itself failed rather than a check before it: the response's fields differ
            (transactions D.13).
    """

    asked_name: str
    topic_id: UUID | None
    topic: str
    index: int
    partition: ReplicatedPartition | None = None
    batch: RecordBatch | None = None
    info: AppendInfo | None = None
    error: KafkaError | None = None
    reached_log: bool = False


@dataclass(slots=True)
class Admitted:
    """A partition of a request whose batch may go to the log; never changed. The first fields are as in `Produced`.

    Attributes:
        records: the batch's bytes, which become the log's.
        guard: of the verification of a transactional batch (KIP-890).
        overruled: the error of its answer, even if the append succeeds: another entry of the request for this
            partition was refused.
    """

    asked_name: str
    topic_id: UUID | None
    topic: str
    index: int
    partition: ReplicatedPartition
    batch: RecordBatch
    records: memoryview
    guard: object | None = None
    overruled: KafkaError | None = None

    @property
    def transactional(self) -> bool:
        """Whether the batch belongs to a producer's transaction."""
        return self.batch.is_transactional and self.batch.producer_id >= 0

    def refused(self, error: KafkaError, *, reached_log: bool = False) -> Produced:
        """The log has not taken the batch, or was not asked to."""
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
    """The error without the stack that it came through: that would keep the request in memory with it."""
    error.__traceback__ = error.__cause__ = error.__context__ = None
    return error
