"""How far a coordinator's log is replicated, for logs that tests keep in lists."""

from collections.abc import Callable

from protocol.errors import ErrorCode, KafkaError

EVERYTHING = 2**63 - 1


class ReplicatedInMemory:
    """Everything is replicated at once, unless a test sets the offset up to which it is."""

    def __init__(self) -> None:
        self.replicated_to = EVERYTHING
        self.led_elsewhere = False
        self.watchers: list[Callable[[], None]] = []

    @property
    def high_watermark(self) -> int:
        """See :class:`broker.coordination.runtime.ReplicatedLog`."""
        if self.led_elsewhere:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return self.replicated_to

    def replicate(self, high_watermark: int = EVERYTHING) -> None:
        """All replicas in sync have the log up to this offset."""
        self.replicated_to = high_watermark
        for call in list(self.watchers):
            call()

    def watch(self, call: Callable[[], None]) -> None:
        """Call with :meth:`replicate`."""
        self.watchers.append(call)

    def unwatch(self, call: Callable[[], None]) -> None:
        """Call no more."""
        if call in self.watchers:
            self.watchers.remove(call)
