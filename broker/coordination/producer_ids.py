"""Producer ids that a broker assigns from the block that the controller allocated to it (KIP-730)."""

from collections.abc import Callable

from protocol.errors import ErrorCode, KafkaError


class ProducerIds:
    """The current block of one broker. Ids left in it when the broker stops are never used, as in Kafka."""

    def __init__(self) -> None:
        self._left: list[int] = []

    def next(self, allocate: Callable[[], range]) -> int:
        """Return a new producer id; calls ``allocate`` for another block when the current one is used up.

        Raises:
            KafkaError: COORDINATOR_LOAD_IN_PROGRESS if no block is available now (transactions A.4).
        """
        if not self._left:
            self._left = list(reversed(allocate()))
        if not self._left:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return self._left.pop()
