"""What a user's program has left to do, and what its tasks wait for."""

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from broker.control.lags import lags
from broker.control.records import has_readable
from broker.coordination.transaction.states import COMPLETED_BY
from protocol.log_records.transaction import TransactionState
from simulator.program import LIBRARIES, Program, short_path

if TYPE_CHECKING:
    from broker.cluster.cluster import Cluster

_OPEN = frozenset({TransactionState.ONGOING, *COMPLETED_BY})


class Backlog:
    """The lag of groups that have members, and the transactions that are open since ``began_ms``, at one moment.

    A program may always have a transaction open; it does not wait for one that begins when no fault is under way.
    """

    def __init__(self, cluster: "Cluster", began_ms: float = math.inf) -> None:
        self.lags: list[tuple[str, str, int, int, int]] = []
        """Group, topic, partition, committed offset, lag."""
        self.transactions: list[tuple[str, str]] = []
        """Transactional id and state."""
        self.committed = self.uncommitted = 0
        """Partitions of a group with and without a committed offset; the latter only if they have records."""
        self.done = 0
        """The sum of all committed offsets."""
        for node in cluster.nodes.values():
            for runtime in node.coordinators.groups.values():
                for group in runtime.machine.groups.values():
                    self._add(cluster, group, runtime.machine)
            for coordinator in node.coordinators.transactions.values():
                for name, record in coordinator.machine.transactions.items():
                    if record.state in _OPEN and record.start_ms <= began_ms:
                        self.transactions.append((name, record.state.name))

    def _add(self, cluster: "Cluster", group: Any, machine: Any) -> None:
        for each in lags(cluster, group, machine):
            self.done += each.offset or 0
            if each.offset is None:
                self.uncommitted += bool(each.end_offset)
            elif each.lag and has_readable(cluster.partitions[each.topic, each.partition], each.offset):
                self.lags.append((group.group_id, each.topic, each.partition, each.offset, each.lag))
            else:
                self.committed += 1

    @property
    def size(self) -> int:
        """Return how much there is to do; 0: nothing."""
        return sum(lag for *_, lag in self.lags) + len(self.transactions)

    @property
    def unknown(self) -> bool:
        """Whether a group may still have to begin with its work."""
        return bool(self.uncommitted) or not self.committed

    def lines(self) -> Iterator[str]:
        """Describe it."""
        for group, topic, partition, offset, lag in self.lags:
            yield f"  group {group} has committed {offset} of {topic}-{partition}, {lag} behind its end"
        for name, state in self.transactions:
            yield f"  the transaction of {name} is {state}"


def waiting_tasks(programs: Iterable[Program]) -> Iterator[str]:
    """Describe each task that waits, with the innermost line of the program's own code and of a library."""
    for program in programs:
        for task in program.tasks:
            if not task.done() and (where := _waits_at(task.get_coro())):
                yield f"  {program.name}: {task.get_name()} waits at {where}"


def _waits_at(coroutine: Any) -> str:
    own = library = ""
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        if frame is not None:
            code, name = frame.f_code, coroutine.__qualname__
            where = f"{short_path(code.co_filename)}:{frame.f_lineno} ({name})"
            if not code.co_filename.startswith(LIBRARIES):
                own, library = where, ""
            elif "site-packages" in code.co_filename or not library:
                library = where
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
    return ", in ".join(filter(None, (own, library)))
