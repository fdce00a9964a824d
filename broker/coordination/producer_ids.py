"""Producer ids as a broker hands them out: from a block that the metadata gave to it alone (KIP-730)."""

from collections.abc import Callable

from protocol.errors import ErrorCode, KafkaError


class ProducerIds:
    """One broker's block. Ids left in it when the broker stops are never used, as in Kafka."""

    def __init__(self) -> None:
        self._left: list[int] = []

    def next(self, allocate: Callable[[], range]) -> int:
        """A fresh id; ``allocate`` is asked for a block when the last one is used up.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS where no block is to be had now (transactions A.4).
        """
        if not self._left:
            self._left = list(reversed(allocate()))
        if not self._left:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return self._left.pop()
