"""A share coordinator's machine on the workbench: its log and timers are plain lists, the clock is a number."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from broker.coordination.outcome import Reply, SetTimer
from broker.coordination.share_state.machine import PruneLog, ShareMachine, ShareOutcome, StateWrite
from broker.coordination.share_state.persister import SharePartitionKey, StateBatch
from broker.settings.releases import NEWEST, release
from protocol.errors import ErrorCode
from protocol.log_records import share_state as codec
from protocol.log_records.share_state import ShareRecord
from tests.coordination.settings import FixedSettings

START_MS = 1_700_000_000_000
TOPIC = UUID(int=7)
KEY = SharePartitionKey("g", TOPIC, 0)
INTERVAL_MS = 300_000
SETTINGS = {
    "share.coordinator.snapshot.update.records.per.snapshot": 500,
    "share.coordinator.cold.partition.snapshot.interval.ms": INTERVAL_MS,
    "share.coordinator.state.topic.prune.interval.ms": INTERVAL_MS,
}


class Bench:
    """Asks a machine, encodes and replays what it writes, and keeps its timers."""

    def __init__(
        self, log: list[tuple[bytes | None, bytes | None]] | None = None, as_version: str = NEWEST, **settings: int
    ) -> None:
        values = {**SETTINGS, **{name.replace("__", "."): value for name, value in settings.items()}}
        self.now_ms = START_MS
        self.topics = {TOPIC: 3}
        self.log: list[tuple[bytes | None, bytes | None]] = []
        self.records: list[ShareRecord] = []
        self.timers: dict[Any, SetTimer] = {}
        self.pruned: list[int] = []
        self.machine = ShareMachine(
            FixedSettings(values), lambda topic_id: self.topics.get(topic_id, 0), release(as_version).has
        )
        for key, value in log or ():
            self._replay(key, value)
        self.do(self.machine.loaded(self.now_ms))

    def _replay(self, key: bytes | None, value: bytes | None) -> None:
        record = codec.decode(key, value)
        assert record is not None
        self.machine.replay(record, len(self.log))
        self.log.append((key, value))
        self.records.append(record)

    def do(self, outcome: ShareOutcome) -> Any:
        """Append, replay, perform; the reply, if there is one."""
        for record in outcome.records:
            self._replay(*codec.encode(record))
        answer = None
        for effect in outcome.effects:
            match effect:
                case Reply(_, message):
                    answer = message
                case SetTimer(key):
                    self.timers[key] = effect
                case PruneLog(offset):
                    self.pruned.append(offset)
        return answer

    def ask(self, operation: Callable[[ShareMachine, int, str], ShareOutcome]) -> Any:
        """The reply to an operation."""
        return self.do(operation(self.machine, self.now_ms, "me"))

    def initialize(self, state_epoch: int = 1, start_offset: int = -1, key: SharePartitionKey = KEY) -> ErrorCode:
        """InitializeShareGroupState."""
        answer = self.ask(lambda machine, now_ms, to: machine.initialize(key, state_epoch, start_offset, now_ms, to))
        code: ErrorCode = answer.error
        return code

    def write(
        self,
        *batches: StateBatch,
        start: int = 0,
        complete: int = 0,
        state_epoch: int = 1,
        leader_epoch: int = 0,
        key: SharePartitionKey = KEY,
    ) -> ErrorCode:
        """WriteShareGroupState."""
        change = StateWrite(state_epoch, leader_epoch, start, complete, batches)
        code: ErrorCode = self.ask(lambda machine, now_ms, to: machine.write(key, change, now_ms, to)).error
        return code

    def read(self, leader_epoch: int = 0, key: SharePartitionKey = KEY) -> Any:
        """ReadShareGroupState."""
        return self.ask(lambda machine, now_ms, to: machine.read(key, leader_epoch, now_ms, to))

    def summary(self, key: SharePartitionKey = KEY) -> Any:
        """ReadShareGroupStateSummary."""
        return self.ask(lambda machine, _, to: machine.summarize(key, to))

    def delete(self, key: SharePartitionKey = KEY) -> ErrorCode:
        """DeleteShareGroupState."""
        code: ErrorCode = self.ask(lambda machine, now_ms, to: machine.delete(key, now_ms, to)).error
        return code

    def advance(self, ms: int) -> None:
        """Let time pass, and fire the timers that are due by then."""
        self.now_ms += ms
        for key, timer in list(self.timers.items()):
            if timer.at_ms <= self.now_ms:
                del self.timers[key]
                self.do(timer.then(self.now_ms))
