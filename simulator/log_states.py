"""State of a broker's logs when it ends: it must be the same after the next start, and may not be replicated."""

from dataclasses import dataclass

from broker.cluster.cluster import Cluster
from storage.checkpoints import EpochEntry
from storage.log.partition_log import PartitionLog


@dataclass(frozen=True, slots=True)
class LogState:
    """State of a replica: its end offset, the leader epochs that have records, and its producers.

    ``open_from`` is the first offset of the earliest open transaction, ``held_from`` the offset from which on readers
    of committed records get nothing.
    """

    end: int
    epochs: tuple[EpochEntry, ...]
    producers: str
    open_from: int | None
    held_from: int | None

    @property
    def shows_open_transactions(self) -> bool:
        """Whether records of an open transaction may be read as committed."""
        return self.open_from is not None and (self.held_from is None or self.held_from > self.open_from)

    def changed_by(self, later: "LogState") -> str:
        """Describe how a later state differs although the records are the same; "" if nothing differs, or they do."""
        if (self.end, self.epochs) != (later.end, later.epochs):
            return ""
        if self.producers != later.producers:
            return f"its producers were {self.producers}, and then {later.producers}"
        return ""


def log_states(cluster: Cluster, broker: int) -> dict[str, LogState]:
    """Return partition -> state of a broker's replica."""
    states = {}
    for partition in cluster.partitions.values():
        log = partition.logs.get(broker)
        if log is not None and not log.offline:
            epochs = tuple(each for each in log.epochs.entries if each.start_offset < log.log_end_offset)
            held_from, known = log.producers.first_unstable_offset, log.producers.producers.values()
            begun = [each.transaction_first_offset for each in known if each.transaction_first_offset is not None]
            states[partition.name] = LogState(
                log.log_end_offset, epochs, producers_of(log), min(begun, default=None), held_from
            )
    return states


def producers_of(log: PartitionLog) -> str:
    """Return the producer state of a log as text: id, epoch, last sequence, and first offset of an open transaction."""
    known = log.producers.producers
    return str(
        [
            (producer_id, entry.producer_epoch, entry.last_sequence, entry.transaction_first_offset)
            for producer_id, entry in sorted(known.items())
        ]
    )
