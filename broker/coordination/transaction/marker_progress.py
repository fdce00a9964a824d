"""The markers of one prepared transaction: which are outstanding, which are to be sent again."""

from collections.abc import Iterable, Mapping
from enum import Enum

from broker.coordination.transaction.states import MarkerFate, marker_fate
from protocol.errors import ErrorCode
from protocol.log_records.transaction import TopicPartition

FIRST_RETRY_MS = 20
LAST_RETRY_MS = 500


class Progress(Enum):
    """Where the markers of a transaction are after some of them were answered."""

    WAITING = "waiting"
    AGAIN = "again"
    """Some are to be sent again, and nothing is arranged for that yet."""
    DONE = "done"


class Completion:
    """Soft state between the Prepare and the Complete record; after a load it starts again with all partitions.

    Once ``fenced``, no marker is sent any more: another coordinator has the transaction (transactions B.6).
    """

    __slots__ = ("_retry_ms", "again", "fenced", "outstanding")

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self.outstanding = set(partitions)
        self.again: set[TopicPartition] = set()
        self.fenced = False
        self._retry_ms = FIRST_RETRY_MS

    def note(self, results: Mapping[TopicPartition, ErrorCode]) -> Progress:
        """Take over what became of some partitions' markers.

        A refusal that fences ends the sending; markers that were written count all the same, so that
        DescribeTransactions lists only the others (TransactionMarkerRequestCompletionHandler).
        """
        arranged = bool(self.again)
        for partition, result in results.items():
            match marker_fate(result):
                case MarkerFate.WRITTEN:
                    self.outstanding.discard(partition)
                case MarkerFate.AGAIN:
                    self.again.add(partition)
                case MarkerFate.FENCED:
                    self.fenced = True
        if self.fenced:
            return Progress.WAITING
        if not self.outstanding:
            return Progress.DONE
        return Progress.AGAIN if self.again and not arranged else Progress.WAITING

    def take_again(self) -> frozenset[TopicPartition]:
        """What is to be sent again now."""
        partitions, self.again = frozenset(self.again), set()
        return partitions

    def back_off(self) -> int:
        """How long to wait before the next attempt, in ms; each time twice as long as before, up to half a second."""
        wait_ms, self._retry_ms = self._retry_ms, min(self._retry_ms * 2, LAST_RETRY_MS)
        return wait_ms
