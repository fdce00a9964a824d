"""Random stories run on a real cluster and at the same time on a model of two hundred lines (see ``model``).

Two transactional ids, producers of both kinds on each, zombies among them; each answer of the cluster, and what
consumers of either isolation level see, has to equal the model's.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from tests.scenarios.transactions.client import Client
from tests.scenarios.transactions.groups import pending, stored
from tests.scenarios.transactions.harness import running
from tests.scenarios.transactions.model import GROUP, Model
from tests.scenarios.transactions.partitions import COMMITTED, FOO

TIMEOUT_MS = 60_000
SCAN_MS = 10_000
NAMES = ("tx-1", "tx-2")


@dataclass
class Handle:
    """A producer as its client knows it: the next sequence of each partition, and the last batch sent."""

    name: str
    newer: bool
    producer: tuple[int, int]
    sequences: dict[int, int] = field(default_factory=dict)
    last: tuple[int, int, list[bytes]] | None = None

    def becomes(self, producer: tuple[int, int]) -> None:
        """A new epoch counts from 0."""
        if producer != self.producer:
            self.producer, self.sequences, self.last = producer, {}, None


class TransactionStories(RuleBasedStateMachine):
    """One cluster, one model."""

    handles = Bundle("handles")
    finished = 0

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.model = Model(TIMEOUT_MS)
        self.count = 0
        self.client: Client
        self.story: asyncio.Task[None]
        self.over: asyncio.Event

    def do(self, coroutine: Any) -> Any:
        """Run a step in the cluster's loop."""
        return self.runner.run(coroutine)

    @initialize()
    def begin(self) -> None:
        """A cluster as just started."""

        async def live(ready: "asyncio.Future[Client]", over: asyncio.Event) -> None:
            async with running(topics={FOO: 2}) as stage:
                ready.set_result(Client(stage))
                await over.wait()

        async def start() -> None:
            ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
            self.over = asyncio.Event()
            self.story = asyncio.ensure_future(live(ready, self.over))
            self.client = await ready

        self.do(start())
        self.model.now_ms = self.client.stage.clock.now_ms()

    def teardown(self) -> None:
        """Stop the cluster."""

        async def stop() -> None:
            self.over.set()
            await self.story

        if hasattr(self, "over"):
            self.do(stop())
            TransactionStories.finished += 1
        self.runner.close()

    # --- steps -------------------------------------------------------------------------------------------------------

    def _init(self, name: str, expected: tuple[int, int]) -> tuple[int, int] | None:
        """Ask until no transaction is in the way; the model is asked the same questions."""
        for _ in range(2):
            code, *producer = self.do(self.client.init(name, expected, timeout_ms=TIMEOUT_MS))
            self.do(self.client.settle())
            assert (code, *producer) == self.model.init(name, expected, producer[0])
            if code != 51:
                return (producer[0], producer[1]) if code == 0 else None
        raise AssertionError("still in the way")

    @rule(target=handles, name=st.sampled_from(NAMES), newer=st.booleans())
    def new_producer(self, name: str, newer: bool) -> Handle:
        """InitProducerId by a client that has just started; it fences the previous one."""
        producer = self._init(name, (-1, -1))
        assert producer is not None
        return Handle(name, newer, producer)

    @rule(target=handles, handle=consumes(handles))
    def come_back(self, handle: Handle) -> Any:
        """InitProducerId by a client that sends its producer id (KIP-360); a zombie does not come back."""
        producer = self._init(handle.name, handle.producer)
        if producer is None:
            return multiple()
        handle.becomes(producer)
        return handle

    @rule(handle=handles, index=st.integers(0, 1), size=st.integers(1, 3))
    def send(self, handle: Handle, index: int, size: int) -> None:
        """The next batch of a producer, or of a zombie."""
        values = [b"%d" % (self.count + n) for n in range(size)]
        self.count += size
        sequence = handle.sequences.get(index, 0)
        if self._sent(handle, index, sequence, values) >= 0:
            handle.sequences[index] = sequence + size
            handle.last = (index, sequence, values)

    @rule(handle=handles)
    def send_again(self, handle: Handle) -> None:
        """A retry whose first attempt arrived; as long as the transaction is the same."""
        if handle.last is None or not self.model.partitions[handle.last[0]].is_open(*handle.producer):
            return
        self._sent(handle, *handle.last)

    @rule(handle=handles, index=st.integers(0, 1), ahead=st.integers(1, 9))
    def send_out_of_order(self, handle: Handle, index: int, ahead: int) -> None:
        """A batch that overtook another one."""
        if self.model.partitions[index].is_open(*handle.producer):
            self._sent(handle, index, handle.sequences.get(index, 0) + ahead, [b"early"])

    def _sent(self, handle: Handle, index: int, sequence: int, values: list[bytes]) -> int:
        expected = self.model.send(handle.name, handle.producer, index, sequence, values, handle.newer)
        c = self.client
        if not handle.newer:
            code = self.do(c.add(handle.producer, {FOO: [index]}, handle.name))[FOO, index]
            if code:
                assert -code == expected
                return expected
        version = 12 if handle.newer else 11
        answer = self.do(
            c.produce(FOO, values, handle.producer, sequence, name=handle.name, v=version, partition=index)
        )
        assert (-int(answer.error_code) if answer.error_code else answer.base_offset) == expected
        return expected

    @rule(handle=handles, offset=st.integers(0, 99))
    def send_offsets(self, handle: Handle, offset: int) -> None:
        """A group's offset joins the transaction."""
        expected = self.model.send_offsets(handle.name, handle.producer, offset)
        assert self.do(pending(self.client, handle.producer, {0: offset}, name=handle.name)) == {0: expected}

    @rule(handle=handles, commit=st.booleans())
    def end(self, handle: Handle, commit: bool) -> None:
        """Commit or abort; also what was ended before, or by another producer."""
        expected = self.model.end(handle.name, handle.producer, commit, handle.newer)
        version = 5 if handle.newer else 4
        code, *next_producer = self.do(self.client.end(handle.producer, commit, handle.name, v=version))
        self.do(self.client.settle())
        assert code == expected
        if code == 0 and handle.newer:
            known = self.model.ids[handle.name]
            assert next_producer == [known.producer_id, known.epoch]
            handle.becomes((known.producer_id, known.epoch))

    @rule(scans=st.integers(1, 8))
    def pass_time(self, scans: int) -> None:
        """Transactions may time out."""
        for _ in range(scans):
            self.do(self.client.stage.pass_time(SCAN_MS))
            self.do(self.client.settle())
            self.model.pass_time(SCAN_MS)

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        """The broker stops, or dies, and comes back."""
        self.do(self.client.stage.restart(clean=clean))
        self.client.hang_up()
        self.do(self.client.settle())
        self.model.restart()

    # --- what everybody sees -----------------------------------------------------------------------------------------

    @invariant()
    def consumers_see_what_they_should(self) -> None:
        """Of both isolation levels, in every partition."""
        for index in (0, 1):
            model = self.model.partitions[index]
            everything = self.do(self.client.fetch(partition=index))
            stable = self.do(self.client.fetch(isolation=COMMITTED, partition=index))
            assert everything.values == model.values(committed=False)
            assert (everything.high_watermark, stable.stable_offset) == (len(model.log), model.stable_offset)
            assert stable.consumed == model.values(committed=True)

    @invariant()
    def the_group_has_its_offset(self) -> None:
        """Pending offsets are not returned, but reported as unstable."""
        code, offset, _ = self.do(stored(self.client))
        assert (code, offset) == (0, self.model.committed[1])
        assert self.do(stored(self.client, stable=True))[0] == (88 if self.model.pending else 0)

    @invariant()
    def the_coordinator_knows_its_ids(self) -> None:
        """State, producer id and epoch of each."""
        for name, known in self.model.ids.items():
            assert self.do(self.client.state(name)) == (known.state, known.producer_id, known.epoch)
            joined = {GROUP if topic != FOO else index for topic, index in self.do(self.client.parts(name))}
            assert joined == known.partitions


def finished_stories(examples: int, steps: int) -> int:
    """Run that many stories of that many steps, until one differs from the model; returns how many finished."""
    before = TransactionStories.finished
    run_state_machine_as_test(
        TransactionStories,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    return TransactionStories.finished - before


@pytest.mark.slow
def test_the_cluster_agrees_with_the_model() -> None:
    """In a few short stories the cluster answers what the model does."""
    assert finished_stories(15, 20) >= 15


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_the_cluster_agrees_with_the_model_in_many_long_stories() -> None:
    """In hundreds of random schedules the cluster has the state of the model after each step."""
    assert finished_stories(300, 50) >= 300
