# Made from understudy/aio/steering.py by tools/generate_client.py: change it there.
"""Faults, the journal and snapshots."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Never, Self, Unpack

from control_api.fault_actions import wire
from understudy import results
from understudy.client.resource import Ask
from understudy.client.verbs import FaultsVerbs, FaultVerbs, JournalVerbs, SnapshotsVerbs, SnapshotVerbs
from understudy.client.waiting import Pending, pending
from understudy.from_json import build
from understudy.options import DOES, FaultOptions, JournalQuery, check, named


class Fault(FaultVerbs):
    """A fault. As a context manager it is removed at the end of the block."""

    def __init__(self, faults: "Faults", fault: str) -> None:
        super().__init__(faults._send, fault=fault)  # noqa: SLF001 - same module
        self.faults, self.id = faults, fault

    def show(self) -> results.FaultState:
        """Return the current state of the fault on the server."""
        return build(results.FaultState, self._ask("faults show"))

    def hits(self) -> int:
        """Return the number of requests that it has affected."""
        return (self.show()).hits

    def wait_hits(self, n: int = 1, *, timeout_ms: int = 10_000) -> results.FaultState:
        """Wait until `n` requests have matched it; raise TimeoutError if it takes longer than `timeout_ms`.

        The default is that of the command, longer than a client's retries.
        """
        state = build(results.FaultState, self._ask("faults show", wait_hits=n, timeout_ms=timeout_ms))
        if state.hits < n:
            raise TimeoutError(f"{state.hits} of {n} requests met the fault {state.match} within {timeout_ms} ms")
        return state

    def remove(self) -> None:
        """Remove the fault. If no request matched it, it still counts as unmet."""
        state = self.show()
        self._ask("faults remove")
        if not state.met:
            self.faults.missed.append(state)

    def __enter__(self) -> Self:
        """Return the fault."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the fault, unless the cluster was reset meanwhile."""
        if any(state.id == self.id for state in self.faults.list()):
            self.remove()


class Faults(FaultsVerbs):
    """The faults of the cluster."""

    def __init__(self, ask: Ask) -> None:
        super().__init__(ask)
        self.optional: set[str] = set()
        self.missed: list[results.FaultState] = []

    def __getitem__(self, fault: str) -> Fault:
        """Return the fault with this id."""
        return Fault(self, fault)

    def _add(self, optional: bool, options: Mapping[str, Any]) -> Fault:
        __tracebackhide__ = True
        check(options, FaultOptions, "faults.add")
        if not DOES.intersection(options):
            raise TypeError(f"faults.add needs an effect, one of {', '.join(sorted(DOES))}")
        answer = self._ask("faults add", **{name: wire(name, value) for name, value in options.items()})
        state = build(results.FaultState, answer)
        if optional:
            self.optional.add(state.id)
        return self[state.id]

    def add(self, *positional: Never, optional: bool = False, **options: Unpack[FaultOptions]) -> Pending[Fault]:
        """Add a fault for matching requests; an `optional` one may remain unmet without failing the test."""
        __tracebackhide__ = True
        named(positional, 'faults.add(api="EndTxn", drop=True)')
        return pending(self._add(optional, options))

    def list(self, *, unmet: bool = False) -> Sequence[results.FaultState]:
        """Return all faults, or only those that no request has matched."""
        faults = (self._ask("faults list", unmet=unmet or None))["faults"]
        return [build(results.FaultState, state) for state in faults]

    def unmet(self) -> Sequence[results.FaultState]:
        """Return faults that no request matched, including removed ones, but not optional ones."""
        there = [*self.missed, *self.list(unmet=True)]
        return [state for state in there if state.id not in self.optional]

    def clear(self) -> None:
        """Remove all faults."""
        self._ask("faults clear")
        self.forget()

    def forget(self) -> None:
        """Forget local state after the server has removed all faults."""
        self.optional.clear()
        self.missed.clear()


class Journal(JournalVerbs):
    """The journal of requests and their responses."""

    def find(self, *positional: Never, **query: Unpack[JournalQuery]) -> Sequence[results.JournalEntry]:
        """Return the matching requests, oldest first."""
        named(positional, 'journal.find(api="EndTxn")')
        check(query, JournalQuery, "journal.find")
        entries = (self._ask("journal list", **query))["entries"]
        return [build(results.JournalEntry, entry) for entry in entries]

    def rotate(self) -> str | None:
        """Finish the current file of ``--journal DIR``, and return its name; None if there was nothing to write."""
        file: str | None = (self._ask("journal rotate"))["file"]
        return file

    def pcap(self, **query: Unpack[JournalQuery]) -> bytes:
        """Return the matching requests as a capture for Wireshark's Kafka dissector."""
        check(query, JournalQuery, "journal.pcap")
        content: bytes = self._ask("journal pcap", **query)
        return content


class Snapshot(SnapshotVerbs):
    """A snapshot of the cluster's state."""


class Snapshots(SnapshotsVerbs):
    """The snapshots of the cluster, by id."""

    def __getitem__(self, snapshot: str) -> Snapshot:
        """Return the snapshot with this id."""
        return Snapshot(self._send, snapshot=snapshot)

    def take(self) -> Snapshot:
        """Save the state of the whole cluster."""
        return self[(self._ask("snapshots take"))["id"]]
