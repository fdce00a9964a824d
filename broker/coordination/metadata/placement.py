"""Placement of new partitions' replicas, striped over racks and brokers (core B.7.6).

After Kafka's ``StripedReplicaPlacer``: leaders rotate over the unfenced brokers from a random start, replicas alternate
between racks, fenced brokers are used last. The random numbers come from a function, so that a seed decides the result.
"""

from collections.abc import Callable, Iterable

from broker.coordination.metadata.image import Broker
from protocol.errors import ErrorCode, KafkaError

Below = Callable[[int], int]
"""``below(n)`` returns a random number from 0 to n-1."""


class _Ring:
    """Brokers of one kind in one rack, returned from an offset that advances with every partition."""

    def __init__(self, brokers: Iterable[int], below: Below) -> None:
        self.brokers = sorted(brokers)
        self._offset = below(len(self.brokers)) if self.brokers else 0
        self._round, self._taken = 0, 0

    def next(self, round_: int) -> int | None:
        """Return the next broker for this partition; ``None`` if all were returned."""
        size = len(self.brokers)
        if round_ != self._round:
            self._round, self._taken = round_, 0
            self._offset = (self._offset + 1) % size if size else 0
        if self._taken >= size:
            return None
        broker = self.brokers[(self._offset + self._taken) % size]
        self._taken += 1
        return broker

    def shuffle(self, below: Below) -> None:
        _shuffle(self.brokers, below)


def _shuffle(items: list[int], below: Below) -> None:
    for last in range(len(items) - 1, 0, -1):
        other = below(last + 1)
        items[last], items[other] = items[other], items[last]


class _Rack:
    def __init__(self, brokers: list[Broker], below: Below) -> None:
        self.unfenced = _Ring((b.id for b in brokers if not b.fenced), below)
        self.fenced = _Ring((b.id for b in brokers if b.fenced), below)

    def next(self, round_: int) -> int | None:
        broker = self.unfenced.next(round_)
        return self.fenced.next(round_) if broker is None else broker


class Placer:
    """Places the partitions of one topic, one after the other."""

    def __init__(self, brokers: Iterable[Broker], below: Below) -> None:
        usable = [broker for broker in brokers if not broker.in_controlled_shutdown and broker.takes_replicas]
        self._below = below
        self._size, self._unfenced = len(usable), sum(not broker.fenced for broker in usable)
        # Brokers without a rack form one rack, which is the first.
        names = sorted({broker.rack or "" for broker in usable})
        self._racks = [_Rack([b for b in usable if (b.rack or "") == name], below) for name in names]
        self._offset = below(len(names)) if names else 0
        self._round = 0

    def place(self, replication_factor: int) -> tuple[int, ...]:
        """Return the replicas of the next partition; the first of them is unfenced and leads.

        Raises:
            KafkaError: INVALID_REPLICATION_FACTOR if there are too few brokers.
        """
        self._check(replication_factor)
        if self._round == self._unfenced and self._unfenced > 1:
            # After as many assignments as brokers they would repeat: shuffle again.
            for rack in self._racks:
                rack.unfenced.shuffle(self._below)
                rack.fenced.shuffle(self._below)
            self._round = 0
        count = len(self._racks)
        self._offset %= count
        at = self._offset
        leader = self._racks[at].unfenced.next(self._round)
        while leader is None:
            at = (at + 1) % count
            leader = self._racks[at].unfenced.next(self._round)
        chosen = [leader]
        # The racks provide the other replicas in turn; the leader's rack has had its turn.
        turn, led = self._offset, at
        while len(chosen) < replication_factor:
            if turn == led:
                turn, led = (turn + 1) % count, -1
            broker = self._racks[turn].next(self._round)
            turn = (turn + 1) % count
            if broker is not None:
                chosen.append(broker)
        self._round += 1
        self._offset += 1
        return tuple(chosen)

    def _check(self, replication_factor: int) -> None:
        """Refuse a factor above the number of usable brokers, fenced ones included (core B.7 T17)."""
        if not self._unfenced:
            reason = "All brokers are currently fenced, or have all their log directories cordoned."
        elif replication_factor > self._size:
            reason = (
                f"The target replication factor of {replication_factor} cannot be reached because only {self._size} "
                "broker(s) are registered or some brokers have all their log directories cordoned."
            )
        else:
            return
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): {reason}",
        )
