"""Progress of the markers of one prepared transaction: outstanding ones, and those to send again."""

from collections.abc import Iterable, Mapping
from enum import Enum

from broker.coordination.transaction.states import MarkerFate, marker_fate
from protocol.errors import ErrorCode
from protocol.log_records.transaction import TopicPartition

FIRST_RETRY_MS = 20
LAST_RETRY_MS = 500


class Progress(Enum):
    """Progress of a transaction's markers after some results."""

    WAITING = "waiting"
    AGAIN = "again"
    """Some must be sent again, and no retry is scheduled yet."""
    DONE = "done"


class Completion:
    """Soft state between the Prepare and the Complete record; after a load it restarts with all partitions.

    Once ``fenced``, no more markers are sent: another coordinator has the transaction (transactions B.6).
    """

    __slots__ = ("_retry_ms", "again", "fenced", "outstanding")

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self.outstanding = set(partitions)
        self.again: set[TopicPartition] = set()
        self.fenced = False
        self._retry_ms = FIRST_RETRY_MS

    def note(self, results: Mapping[TopicPartition, ErrorCode]) -> Progress:
        """Note the results of some partitions' markers.

        A fencing error stops the sending; written markers still count, so that DescribeTransactions lists only
        the others (TransactionMarkerRequestCompletionHandler).
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
        """Return the partitions whose markers are to be sent again, and clear them."""
        partitions, self.again = frozenset(self.again), set()
        return partitions

    def back_off(self) -> int:
        """Return the delay before the next attempt (ms), which doubles each time, up to half a second."""
        wait_ms, self._retry_ms = self._retry_ms, min(self._retry_ms * 2, LAST_RETRY_MS)
        return wait_ms
