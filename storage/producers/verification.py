"""Verification of transactional producers with the coordinator, before they append to a partition (KIP-890).

In memory only. A guard is taken when a Produce request arrives and must still be current when its batch is appended:
a marker written in between invalidates the guard, so a late batch cannot begin a hanging transaction
(transactions D.5; Kafka: VerificationGuard, VerificationStateEntry).
"""

from dataclasses import dataclass


class VerificationGuard:
    """Token that is equal only to itself."""

    __slots__ = ()


@dataclass(slots=True)
class VerificationEntry:
    """State of a producer between the arrival of its request and its first append."""

    guard: VerificationGuard
    lowest_sequence: int
    producer_epoch: int
    supports_epoch_bump: bool
    """Produce v12 and newer: a transaction begins with sequence 0."""
    created_ms: int


class Verifications:
    """The verification entries of one partition, by producer id."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[int, VerificationEntry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, producer_id: int) -> VerificationEntry | None:
        """Return the entry of a producer, if it is being verified."""
        return self._entries.get(producer_id)

    def take(
        self, producer_id: int, producer_epoch: int, sequence: int, *, supports_epoch_bump: bool, now_ms: int
    ) -> VerificationGuard:
        """Return the guard for a request with this epoch and first sequence; requests of one producer share it."""
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = VerificationEntry(VerificationGuard(), sequence, producer_epoch, supports_epoch_bump, now_ms)
            self._entries[producer_id] = entry
        elif producer_epoch > entry.producer_epoch:
            entry.producer_epoch = producer_epoch
            entry.lowest_sequence = sequence
        elif producer_epoch == entry.producer_epoch and sequence < entry.lowest_sequence:
            entry.lowest_sequence = sequence
        return entry.guard

    def is_current(self, producer_id: int, guard: object) -> bool:
        """Whether `guard` is the current one of the producer."""
        entry = self._entries.get(producer_id)
        return entry is not None and entry.guard is guard

    def appended(self, producer_id: int) -> None:
        """End the verification of a producer whose transactional batch was appended."""
        self._entries.pop(producer_id, None)

    def ended(self, producer_id: int, marker_epoch: int) -> None:
        """Invalidate outstanding guards after a marker was appended.

        The entry stays if the verified producer gets a new epoch with each transaction and has the marker's epoch: then
        it belongs to the next transaction. The transaction version in the marker is ignored (transactions D.5.4).
        """
        entry = self._entries.get(producer_id)
        if entry is not None and not (entry.supports_epoch_bump and entry.producer_epoch == marker_epoch):
            del self._entries[producer_id]

    @property
    def oldest_ms(self) -> int | None:
        """Creation time of the oldest entry; None without one."""
        return min((entry.created_ms for entry in self._entries.values()), default=None)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Remove entries older than producer.id.expiration.ms."""
        for producer_id in [pid for pid, entry in self._entries.items() if now_ms - entry.created_ms >= expiration_ms]:
            del self._entries[producer_id]

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
