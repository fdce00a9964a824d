"""A runtime around a machine that notes what is reported to it, over a log in memory."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from broker.coordination.outcome import Outcome, Reply, TransactionalAppend
from broker.coordination.runtime import Runtime
from broker.time.clock import ManualClock
from protocol.errors import ErrorCode, KafkaError
from tests.replicated_log import ReplicatedInMemory

START_MS = 1000
Pair = tuple[bytes | None, bytes | None]


@dataclass
class Batch:
    """A batch of the log as it is replayed."""

    values: list[bytes | None]
    base: int = 0
    marker: bool | None = None
    is_transactional: bool = False
    producer_id: int = 7
    producer_epoch: int = 1

    def records(self) -> list[tuple[int, bytes | None, bytes | None]]:
        """Offset, key and value."""
        return [(self.base + index, b"k", value) for index, value in enumerate(self.values)]


@dataclass
class Log(ReplicatedInMemory):
    """What was there before, and what was appended.

    ``refuse`` makes appends fail, ``unreadable`` the replay; a batch has ``most`` records at most.
    """

    before: list[Batch] = field(default_factory=list)
    appended: list[tuple[list[Pair], int, TransactionalAppend | None]] = field(default_factory=list)
    refuse: ErrorCode | None = None
    unreadable: ErrorCode | None = None
    most: int = 1000
    end: int = 100

    def __post_init__(self) -> None:
        super().__init__()

    def append(self, records: list[Pair], now_ms: int, transaction: TransactionalAppend | None) -> int:
        """One batch, the first one at offset 100."""
        if self.refuse is not None:
            raise KafkaError(self.refuse)
        if len(records) > self.most:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
        self.appended.append((records, now_ms, transaction))
        base, self.end = self.end, self.end + len(records)
        return base

    def replay(self) -> list[Batch]:
        """All batches."""
        if self.unreadable is not None:
            raise KafkaError(self.unreadable)
        return self.before


class Codec:
    """Records are texts; some values are no text."""

    @staticmethod
    def encode(record: Any) -> Pair:
        """The record as the log has it."""
        return b"k", str(record).encode()

    @staticmethod
    def decode(key: bytes | None, value: bytes | None) -> Any | None:  # noqa: ARG004
        """None for what is not known, an error for what is no text."""
        return None if value is None else value.decode()


class Machine:
    """Notes what is reported to it."""

    def __init__(self) -> None:
        self.replayed: list[tuple[Any, int, bool]] = []
        self.markers: list[tuple[int, int, bool]] = []
        self.parked: list[Hashable] = []
        self.unreplicated: list[Any] = []
        self.on_load: Outcome[str] = Outcome()

    def replay(self, record: Any, offset: int, transaction: TransactionalAppend | None) -> str:
        """A record."""
        if record == "poison":
            raise KeyError(record)
        self.replayed.append((record, offset, transaction is not None))
        return f"before {record}"

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """A marker."""
        self.markers.append((producer_id, producer_epoch, committed))

    def replicating(self, records: Sequence[Any], transaction: TransactionalAppend | None) -> None:  # noqa: ARG002
        """Records that only the leader has."""
        self.unreplicated += records

    def replicated(self, records: Sequence[Any]) -> None:
        """Records that all have."""
        for record in records:
            self.unreplicated.remove(record)

    def loaded(self, now_ms: int) -> Outcome[str]:  # noqa: ARG002
        """What is to be armed."""
        return self.on_load

    def unloaded(self) -> Outcome[str]:
        """Answer all parked requests with NOT_COORDINATOR."""
        gone = KafkaError(ErrorCode.NOT_COORDINATOR)
        return Outcome(effects=tuple(Reply(token, gone) for token in self.parked))


class Bench:
    """A runtime around a machine."""

    def __init__(self, *before: Batch, load: bool = True) -> None:
        self.clock, self.log, self.machine = ManualClock(START_MS), Log(list(before)), Machine()
        self.performed: list[Any] = []
        self.runtime: Runtime[Machine, str] = Runtime(
            self.machine,
            cast("Any", Codec()),
            self.log,
            self.clock,
            lambda _runtime, effect: self.performed.append(effect),
        )
        if load:
            self.runtime.load()

    async def ask(self, outcome: Callable[[Hashable], Outcome[str]]) -> Any:
        """An operation whose outcome is known beforehand."""
        return await self.runtime.ask(lambda _machine, _now_ms, token: outcome(token))


async def check_raises(awaitable: Any, code: ErrorCode) -> None:
    """It fails with that code."""
    with pytest.raises(KafkaError) as caught:
        await awaitable
    assert caught.value.code is code
