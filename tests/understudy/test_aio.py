import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import pytest

import understudy
from tests.understudy.fake import FakeControl, FakeProcess
from understudy.aio import AsyncCluster
from understudy.aio import cluster as cluster_module
from understudy.client import Cluster
from understudy.transport import Address

FAULT = {"id": "f1", "hits": 0, "match": {}, "do": {}}


@pytest.fixture
async def control() -> AsyncIterator[FakeControl]:
    """A control plane with one fault."""
    answers = {
        "POST /v1/faults": FAULT,
        "GET /v1/faults/f1": FAULT,
        "GET /v1/faults": {"faults": [FAULT]},
        "GET /v1/cluster": {"cluster_id": "c", "brokers": [{"id": 1, "host": "h", "port": 1}]},
    }
    with FakeControl(answers) as fake:
        yield fake


async def test_start_can_be_awaited_or_entered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways stop the process in the end."""
    monkeypatch.setattr(cluster_module, "ServerProcess", FakeProcess)
    async with understudy.astart(brokers=2) as first:
        assert first.bootstrap_servers == "127.0.0.1:1,127.0.0.1:2"
        assert first.process is not None
        assert first.process.alive
    second = await understudy.astart()
    assert (await second.health()).status == "ok"
    await second.stop()
    assert not first.process.alive
    assert second.process is not None
    assert not second.process.alive


@pytest.mark.parametrize("late", [False, True], ids=["the server is ready", "it is not"])
async def test_a_start_that_is_cancelled_leaves_nothing(monkeypatch: pytest.MonkeyPatch, late: bool) -> None:
    """asyncio does not wait for the start; the server is stopped once it is there, with its folder."""
    begun, ready, stopped = threading.Event(), threading.Event(), threading.Event()

    class Slow(FakeProcess):
        def __init__(self, options: Sequence[str]) -> None:
            super().__init__(options)
            begun.set()
            ready.wait(60)

        def stop(self) -> None:
            super().stop()
            stopped.set()

    monkeypatch.setattr(cluster_module, "ServerProcess", Slow)
    starting = asyncio.ensure_future(cluster_module._start({}))
    await asyncio.to_thread(begun.wait, 20)
    if not late:
        ready.set()
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    ready.set()
    assert await asyncio.to_thread(stopped.wait, 20)


def test_it_runs_on_trio_too(control: FakeControl, monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting, asking side by side, stopping: nothing in it is asyncio's own."""
    monkeypatch.setattr(cluster_module, "ServerProcess", FakeProcess)
    reported: list[str] = []

    async def story() -> None:
        async with understudy.astart(brokers=1) as started:
            reported.append((await started.health()).status)
        kafka = await understudy.aconnect(control.url)
        async with anyio.create_task_group() as group, kafka.faults.add(api="EndTxn", drop=True) as fault:
            group.start_soon(kafka.info)
            reported.append(fault.id)

    with ThreadPoolExecutor(1) as thread:  # this one has asyncio's loop
        thread.submit(lambda: anyio.run(story, backend="trio")).result(60)
    assert reported == ["ok", "f1"]


async def test_a_fault_is_removed_when_its_block_is_left(control: FakeControl) -> None:
    """`async with kafka.faults.add(...)` needs no second await."""
    kafka = await understudy.aconnect(control.url)
    async with kafka.faults.add(api="EndTxn", apply_then=understudy.Error("NOT_COORDINATOR")) as fault:
        assert fault.id == "f1"
    assert ("DELETE", "/v1/faults/f1", None) in control.seen
    assert control.seen[1][2] == {"match": {"api": "EndTxn"}, "do": {"apply_then": {"error": "NOT_COORDINATOR"}}}
    assert [state.id for state in await kafka.faults.unmet()] == ["f1", "f1"]


async def test_calls_run_side_by_side_and_can_be_cancelled(control: FakeControl) -> None:
    """One waits for hits while others go on."""
    kafka = AsyncCluster(Address(control.url), ["h:1"])
    with anyio.move_on_after(5) as scope:
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(kafka.health)
    assert not scope.cancelled_caught
    assert len(control.seen) == 20


async def test_problems_and_absence_raise_as_in_the_blocking_client(control: FakeControl) -> None:
    """The asynchronous client raises the same errors as the blocking one."""
    kafka = await understudy.aconnect(control.url)
    control.answers["GET /v1/health"] = (409, {"title": "Conflict", "detail": "not now"})
    with pytest.raises(understudy.ControlError, match="not now"):
        await kafka.health()
    control.close()
    with pytest.raises(understudy.Unreachable, match="no control plane answers at"):
        await kafka.health()


async def test_the_blocking_client_has_an_asynchronous_twin_that_shares_its_faults(control: FakeControl) -> None:
    """What one of them missed the other knows: the pytest plugin asks the blocking one."""
    kafka = Cluster(Address(control.url), ["h:1"])
    assert kafka.aio is kafka.aio
    async with kafka.aio.faults.add(api="EndTxn", drop=True):
        pass
    assert [state.id for state in kafka.faults.missed] == ["f1"]


def test_the_blocking_client_is_made_from_the_asynchronous_one() -> None:
    """tools/generate_client.py --check finds nothing stale."""
    tool = Path(__file__).parents[2] / "tools" / "generate_client.py"
    done = subprocess.run([sys.executable, tool, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "written: nothing")


def test_a_control_plane_on_ipv6_is_named_in_brackets() -> None:
    """In the request's Host header, as RFC 9110 has it."""
    assert Address("http://[::1]:9099").call("health", {}).headers["Host"] == "[::1]:9099"
