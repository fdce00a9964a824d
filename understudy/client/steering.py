# Made from understudy/aio/steering.py by tools/generate_client.py: change it there.
"""Faults, the journal, and states to go back to."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Never, Self, Unpack

from understudy import results
from understudy.actions import wire
from understudy.client.part import Ask, Part
from understudy.shape import build
from understudy.wishes import DOES, FaultOptions, JournalQuery, check, named


class Fault(Part):
    """A fault. As a context manager it is removed in the end."""

    def __init__(self, faults: "Faults", fault: str) -> None:
        super().__init__(faults._send, fault=fault)  # noqa: SLF001 - its own house
        self.faults, self.id = faults, fault

    def show(self) -> results.FaultState:
        """As the server holds it now."""
        return build(results.FaultState, self._ask("faults show"))

    def hits(self) -> int:
        """How many requests it has met."""
        return (self.show()).hits

    def wait_hits(self, n: int = 1, *, timeout_ms: int = 10_000) -> results.FaultState:
        """Wait until it has met `n` requests; raises TimeoutError if it takes longer than `timeout_ms`."""
        state = build(results.FaultState, self._ask("faults show", wait_hits=n, timeout_ms=timeout_ms))
        if state.hits < n:
            raise TimeoutError(f"{state.hits} of {n} requests met the fault {state.match} within {timeout_ms} ms")
        return state

    def remove(self) -> None:
        """Take it back. If no request met it, it is remembered as unmet."""
        state = self.show()
        self._ask("faults remove")
        if not state.met:
            self.faults.missed.append(state)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove it, unless the cluster was reset meanwhile."""
        if any(state.id == self.id for state in self.faults.list()):
            self.remove()


class Faults(Part):
    """What goes wrong on purpose."""

    def __init__(self, ask: Ask) -> None:
        super().__init__(ask)
        self.optional: set[str] = set()
        self.missed: list[results.FaultState] = []

    def __getitem__(self, fault: str) -> Fault:
        """The one with this id."""
        return Fault(self, fault)

    def _add(self, optional: bool, options: Mapping[str, Any]) -> Fault:
        __tracebackhide__ = True
        check(options, FaultOptions, "faults.add")
        if not DOES.intersection(options):
            raise TypeError(f"faults.add needs what is to be done, one of {', '.join(sorted(DOES))}")
        said = self._ask("faults add", **{name: wire(name, value) for name, value in options.items()})
        state = build(results.FaultState, said)
        if optional:
            self.optional.add(state.id)
        return self[state.id]

    def add(self, *said: Never, optional: bool = False, **options: Unpack[FaultOptions]) -> Fault:
        """Meet matching requests with a fault; `optional` says that it is no failure if there is none."""
        __tracebackhide__ = True
        named(said, 'faults.add(api="EndTxn", drop=True)')
        return self._add(optional, options)

    def list(self, *, unmet: bool = False) -> Sequence[results.FaultState]:
        """All of them, or those that no request has met."""
        found = (self._ask("faults list", unmet=unmet or None))["faults"]
        return [build(results.FaultState, state) for state in found]

    def unmet(self) -> Sequence[results.FaultState]:
        """The faults that no request met, those that were taken back included, the optional ones not."""
        there = [*self.missed, *self.list(unmet=True)]
        return [state for state in there if state.id not in self.optional]

    def clear(self) -> None:
        """Remove them all."""
        self._ask("faults clear")
        self.forget()

    def forget(self) -> None:
        """Begin anew: the server has forgotten them too."""
        self.optional.clear()
        self.missed.clear()


class Journal(Part):
    """Every request with its answer."""

    def find(self, *said: Never, **query: Unpack[JournalQuery]) -> Sequence[results.JournalEntry]:
        """The requests that match, oldest first."""
        named(said, 'journal.find(api="EndTxn")')
        check(query, JournalQuery, "journal.find")
        found = (self._ask("journal list", **query))["entries"]
        return [build(results.JournalEntry, entry) for entry in found]

    def clear(self) -> None:
        """Forget them."""
        self._ask("journal clear")

    def rotate(self) -> str | None:
        """Finish the file of ``--journal DIR``, with all that was answered so far; its name, None: nothing was."""
        file: str | None = (self._ask("journal rotate"))["file"]
        return file

    def pcap(self, **query: Unpack[JournalQuery]) -> bytes:
        """The requests that match as a capture that Wireshark's Kafka dissector reads."""
        check(query, JournalQuery, "journal.pcap")
        content: bytes = self._ask("journal pcap", **query)
        return content


class Snapshot(Part):
    """The cluster's state as it was."""

    def restore(self) -> None:
        """Back to it."""
        self._ask("snapshots restore")


class Snapshots(Part):
    """States to go back to, by id."""

    def __getitem__(self, snapshot: str) -> Snapshot:
        """The one with this id."""
        return Snapshot(self._send, snapshot=snapshot)

    def list(self) -> Sequence[results.SnapshotInfo]:
        """Those that were taken, oldest first."""
        return [build(results.SnapshotInfo, each) for each in (self._ask("snapshots list"))["snapshots"]]

    def take(self) -> Snapshot:
        """Keep the whole cluster's state."""
        return self[(self._ask("snapshots take"))["id"]]
