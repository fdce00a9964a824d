"""A share partition whose state comes from the share coordinator, at its leader (groups D.8)."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from broker.coordination.share_state.persister import ReadResult, SharePartitionKey, StateBatch, StateResult
from broker.partitions.share_partition.machine.states import RecordState
from broker.partitions.share_partition.partition import SharePartition, leader_error
from broker.settings import BrokerSettings
from broker.time.clock import ManualClock, turns
from protocol.errors import ErrorCode


@pytest.mark.parametrize(
    ("code", "answered"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 15),
        (ErrorCode.NOT_COORDINATOR, 15),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, 15),
        (ErrorCode.GROUP_ID_NOT_FOUND, 69),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 3),
        (ErrorCode.FENCED_LEADER_EPOCH, 6),
        (ErrorCode.FENCED_STATE_EPOCH, 6),
        (ErrorCode.INVALID_REQUEST, -1),
    ],
)
def test_the_share_coordinators_errors_have_other_names_for_members(code: ErrorCode, answered: int) -> None:
    """Members get the leader's own code for an error of the share coordinator, with its message (groups D.6 A6)."""
    error = leader_error(StateResult(code, "why"))
    assert (int(error.code), error.message) == (answered, "why")


class Bench:
    """A partition that is loading; ``answer`` is that of the share coordinator."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[ReadResult] = asyncio.get_running_loop().create_future()
        self.dropped: list[SharePartition] = []
        self.watchers: list[Any] = []
        self.cluster = cast("Any", SimpleNamespace(clock=ManualClock(0), partitions={}))
        partition = cast(
            "Any",
            SimpleNamespace(
                topic="t",
                index=0,
                state=SimpleNamespace(leader=1, leader_epoch=3),
                watch=self.watchers.append,
                unwatch=lambda call: self.watchers.remove(call) if call in self.watchers else None,
            ),
        )
        self.tasks: list[asyncio.Task[None]] = []
        self.share = SharePartition(
            self.cluster,
            1,
            BrokerSettings(1, {}),
            cast("Any", self),
            SharePartitionKey("g", UUID(int=1), 0),
            partition,
            lambda work: self.tasks.append(asyncio.ensure_future(work)),
            self.dropped.append,
        )

    async def read(self, key: SharePartitionKey, leader_epoch: int) -> ReadResult:  # noqa: ARG002
        """As :meth:`Persister.read`."""
        return await self.answer


@pytest.mark.parametrize("failed", [False, True])
async def test_a_partition_that_was_closed_while_it_loaded_stays_closed(failed: bool) -> None:
    """Its records are those of another one by now: it gives none away, and buries none."""
    bench = Bench()
    bench.share.begin_loading()
    await turns(2)
    bench.share.close()
    code = ErrorCode.FENCED_LEADER_EPOCH if failed else ErrorCode.NONE
    bench.answer.set_result(ReadResult(code, None, 1, 5, (StateBatch(5, 6, int(RecordState.ARCHIVING), 5),)))
    await turns(5)
    assert not bench.share.active
    assert bench.share.inflight.batches == []
    assert bench.watchers == []
    assert len(bench.tasks) == 1


async def test_a_stored_state_that_there_is_none_of_fails_the_load() -> None:
    """Those that wait get an error, and the next fetch tries again."""
    bench = Bench()
    bench.share.begin_loading()
    await turns(2)
    bench.answer.set_result(ReadResult(ErrorCode.NONE, None, 1, 5, (StateBatch(5, 6, 7, 1),)))
    await turns(5)
    assert bench.share.failure is not None
    assert bench.share.failure.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert bench.dropped == [bench.share]
