"""Faults, the journal, and states to go back to."""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Never, Self, Unpack

from understudy import results
from understudy.actions import wire
from understudy.aio.part import Ask, AsyncPart
from understudy.shape import build
from understudy.waiting import Pending
from understudy.wishes import DOES, FaultOptions, JournalQuery, check, named


class AsyncFault(AsyncPart):
    """A fault. As a context manager it is removed in the end."""

    def __init__(self, faults: "AsyncFaults", fault: str) -> None:
        super().__init__(faults._send, fault=fault)  # noqa: SLF001 - its own house
        self.faults, self.id = faults, fault

    async def show(self) -> results.FaultState:
        """As the server holds it now."""
        return build(results.FaultState, await self._ask("faults show"))

    async def hits(self) -> int:
        """How many requests it has met."""
        return (await self.show()).hits

    async def wait_hits(self, n: int = 1, *, timeout_ms: int = 10_000) -> results.FaultState:
        """Wait until it has met `n` requests; raises TimeoutError if it takes longer than `timeout_ms`."""
        state = build(results.FaultState, await self._ask("faults show", wait_hits=n, timeout_ms=timeout_ms))
        if state.hits < n:
            raise TimeoutError(f"{state.hits} of {n} requests met the fault {state.match} within {timeout_ms} ms")
        return state

    async def remove(self) -> None:
        """Take it back. If no request met it, it is remembered as unmet."""
        state = await self.show()
        await self._ask("faults remove")
        if not state.met:
            self.faults.missed.append(state)

    async def __aenter__(self) -> Self:
        """Itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove it, unless the cluster was reset meanwhile."""
        if any(state.id == self.id for state in await self.faults.list()):
            await self.remove()


class AsyncFaults(AsyncPart):
    """What goes wrong on purpose."""

    def __init__(self, ask: Ask) -> None:
        super().__init__(ask)
        self.optional: set[str] = set()
        self.missed: list[results.FaultState] = []

    def __getitem__(self, fault: str) -> AsyncFault:
        """The one with this id."""
        return AsyncFault(self, fault)

    async def _add(self, optional: bool, options: Mapping[str, Any]) -> AsyncFault:
        __tracebackhide__ = True
        check(options, FaultOptions, "faults.add")
        if not DOES.intersection(options):
            raise TypeError(f"faults.add needs what is to be done, one of {', '.join(sorted(DOES))}")
        said = await self._ask("faults add", **{name: wire(name, value) for name, value in options.items()})
        state = build(results.FaultState, said)
        if optional:
            self.optional.add(state.id)
        return self[state.id]

    def add(self, *said: Never, optional: bool = False, **options: Unpack[FaultOptions]) -> Pending[AsyncFault]:
        """Meet matching requests with a fault; `optional` says that it is no failure if there is none."""
        __tracebackhide__ = True
        named(said, 'faults.add(api="EndTxn", drop=True)')
        return Pending(self._add(optional, options))

    async def list(self, *, unmet: bool = False) -> Sequence[results.FaultState]:
        """All of them, or those that no request has met."""
        found = (await self._ask("faults list", unmet=unmet or None))["faults"]
        return [build(results.FaultState, state) for state in found]

    async def unmet(self) -> Sequence[results.FaultState]:
        """The faults that no request met, those that were taken back included, the optional ones not."""
        there = [*self.missed, *await self.list(unmet=True)]
        return [state for state in there if state.id not in self.optional]

    async def clear(self) -> None:
        """Remove them all."""
        await self._ask("faults clear")
        self.forget()

    def forget(self) -> None:
        """Begin anew: the server has forgotten them too."""
        self.optional.clear()
        self.missed.clear()


class AsyncJournal(AsyncPart):
    """Every request with its answer."""

    async def find(self, *said: Never, **query: Unpack[JournalQuery]) -> Sequence[results.JournalEntry]:
        """The requests that match, oldest first."""
        named(said, 'journal.find(api="EndTxn")')
        check(query, JournalQuery, "journal.find")
        found = (await self._ask("journal list", **query))["entries"]
        return [build(results.JournalEntry, entry) for entry in found]

    async def clear(self) -> None:
        """Forget them."""
        await self._ask("journal clear")

    async def rotate(self) -> str | None:
        """Finish the file of ``--journal DIR``, with all that was answered so far; its name, None: nothing was."""
        file: str | None = (await self._ask("journal rotate"))["file"]
        return file

    async def pcap(self, **query: Unpack[JournalQuery]) -> bytes:
        """The requests that match as a capture that Wireshark's Kafka dissector reads."""
        check(query, JournalQuery, "journal.pcap")
        content: bytes = await self._ask("journal pcap", **query)
        return content


class AsyncSnapshot(AsyncPart):
    """The cluster's state as it was."""

    async def restore(self) -> None:
        """Back to it."""
        await self._ask("snapshots restore")


class AsyncSnapshots(AsyncPart):
    """States to go back to, by id."""

    def __getitem__(self, snapshot: str) -> AsyncSnapshot:
        """The one with this id."""
        return AsyncSnapshot(self._send, snapshot=snapshot)

    async def list(self) -> Sequence[results.SnapshotInfo]:
        """Those that were taken, oldest first."""
        return [build(results.SnapshotInfo, each) for each in (await self._ask("snapshots list"))["snapshots"]]

    async def take(self) -> AsyncSnapshot:
        """Keep the whole cluster's state."""
        return self[(await self._ask("snapshots take"))["id"]]
