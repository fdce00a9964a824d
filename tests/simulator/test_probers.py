"""What clients that break rules expect of the brokers' answers."""

from types import SimpleNamespace
from typing import Any

import pytest

from protocol.errors import ErrorCode
from simulator.clients import group_prober, transaction_prober
from simulator.clients.group_prober import GroupProber
from simulator.clients.transaction_prober import TransactionProber
from simulator.history import History, Transaction


class Producer:
    """A producer whose requests all succeed."""

    producer_id, epoch = 1000, 0

    def __init__(self, _client: object, name: str, *_: object, **_options: object) -> None:
        self.transaction = Transaction(name, name, 1)

    async def initialize(self) -> None:
        """Get a producer id."""

    def begin(self) -> Transaction:
        """Begin the transaction."""
        return self.transaction

    async def send_offsets(self, *_: object) -> None:
        """Send the offsets."""

    async def end(self, *_: object, **_decision: object) -> None:
        """Commit."""


def set_up(prober: Any) -> Any:
    """Give it what it needs for one round, with a clock that does not move by itself."""
    prober.history, prober.name = History(lambda: 0), "prober"
    prober.world = SimpleNamespace(network=SimpleNamespace(now_us=0), elapsed_ms=lambda: 0)
    prober.chance, prober._place = SimpleNamespace(random=lambda: 0.0), ("t", 0)
    return prober


async def test_an_offset_that_a_transaction_has_not_committed_is_about_that_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It hangs in Kafka, too, where the marker in the group's log was skipped: then it is excused with the rest."""
    monkeypatch.setattr(group_prober, "Producer", Producer)

    class Prober(GroupProber):
        """It gets an error while the transaction is open, and then no offset."""

        def __init__(self) -> None:
            self.answers = [(ErrorCode.UNSTABLE_OFFSET_COMMIT, -1), (ErrorCode.NONE, -1)]

        async def _fetched(self, _group: str, *, wait: bool) -> tuple[ErrorCode, int]:
            assert wait is (len(self.answers) == 1)
            return self.answers.pop(0)

    prober = set_up(Prober())
    await prober._pending_offsets("g")
    promise = "g: its offset is -1, NONE, after 7 was committed"
    assert prober.history.violations == [promise]
    assert prober.history.concerned[promise] == {"transaction 1 of g"}


@pytest.mark.parametrize("took_us", [1_000, 1_000_000])
async def test_a_batch_needs_all_replicas_if_there_was_no_time_for_another_isr(
    took_us: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a message was late, one follower may have come back and another one have left between the two looks."""
    monkeypatch.setattr(transaction_prober, "Producer", Producer)

    class Prober(TransactionProber):
        """It sees two of three replicas in sync, before and after a batch that is accepted."""

        def __init__(self) -> None:
            pass

        def forget_leader(self, _place: object) -> None:
            pass

        async def _in_sync(self) -> tuple[int, int, int]:
            return 5, 2, 3

        async def _produce(self, *_: object, **_options: object) -> ErrorCode:
            network: Any = self.world.network
            network.now_us += took_us
            return ErrorCode.NONE

    prober = set_up(Prober())
    await prober._too_few_replicas("probe")
    promise = "probe: a batch with 2 of 3 replicas in sync got NONE"
    assert prober.history.violations == ([promise] if took_us < 100_000 else [])
