"""How clusters that were made by a command end: leases, ports that are not given away, starts that fail."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from anyio import create_task_group

from broker.cluster.cluster import Cluster
from broker.control import hosting
from broker.control.hosting import Clusters, Hosted
from broker.control.problems import Problem
from broker.options import parse
from broker.settings.endpoints import PortTaken
from broker.start.server import further
from broker.time.clock import PushedClock, turns
from tests.ports import free_ports

OPTIONS = parse({"port": ["0"]})


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], object]]:
    """What would be called after a while by the machine's time, latest last."""
    later: list[Callable[[], object]] = []
    monkeypatch.setattr(hosting, "soon", lambda _ms, call: later.append(call))
    return later


@asynccontextmanager
async def clusters() -> AsyncIterator[Clusters]:
    """A process whose first cluster has not started."""
    async with create_task_group() as tasks:
        yield Clusters(Hosted(Cluster(OPTIONS, PushedClock(asyncio.get_running_loop()), tasks)), tasks, further)
        tasks.cancel_scope.cancel()


async def look(checks: list[Callable[[], object]], times: int) -> None:
    """Let a quarter of the lease pass, so many times."""
    for _ in range(times):
        checks.pop()()
    await turns(20)


async def test_a_cluster_ends_when_its_lease_is_over(checks: list[Callable[[], object]]) -> None:
    """After four quarters without a request; a request, or one that is under way, begins the lease again."""
    async with clusters() as all_clusters:
        hosted = await all_clusters.create(OPTIONS, "leased", 60)
        await look(checks, 3)
        with hosted.request():
            await look(checks, 8)
        await look(checks, 3)
        assert hosted.ended == ""
        await look(checks, 1)
        assert hosted.ended == "there was no request for 60 s (lease_seconds)"
        assert list(all_clusters.running) == ["1"]
        assert checks == []


async def test_a_free_port_is_none_of_a_cluster_that_has_just_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may offer it again; it is passed over."""
    async with clusters() as all_clusters:
        first = await all_clusters.create(OPTIONS)
        assert isinstance(first.source, Cluster)
        ((_, port),) = first.source.bootstrap
        await all_clusters.end(first, "it was deleted")
        assert port in all_clusters.recent_ports
        monkeypatch.setattr("broker.server.recent_ports.stopwatch_ns", lambda: 2**62)
        assert port not in all_clusters.recent_ports


async def test_a_start_that_fails_leaves_nothing() -> None:
    """The second broker's port is taken: the first one's is free again, and no cluster runs."""
    first, taken = free_ports(2)
    async with (
        clusters() as all_clusters,
        await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", taken),
    ):
        with pytest.raises(PortTaken):
            await all_clusters.create(parse({"brokers": ["2"], "port": [f"{first},{taken}"]}))
        async with await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", first):
            assert list(all_clusters.running) == ["1"]


async def test_there_are_not_too_many_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit a cluster is refused, until another one ends."""
    monkeypatch.setattr(hosting, "_MOST", 1)
    async with clusters() as all_clusters:
        one = await all_clusters.create(OPTIONS)
        with pytest.raises(Problem, match="this process has 1 clusters"):
            await all_clusters.create(OPTIONS)
        await all_clusters.end(one, "it was deleted")
        await all_clusters.create(OPTIONS)


async def test_a_defect_in_one_cluster_ends_that_cluster_alone() -> None:
    """An exception in a task of it, which would end the process if it were the first one's."""
    async with clusters() as all_clusters:
        one, other = [await all_clusters.create(OPTIONS) for _ in range(2)]

        async def fails() -> None:
            raise ZeroDivisionError

        assert isinstance(one.source, Cluster)
        one.source.start_task(fails)
        await turns(20)
        assert list(all_clusters.running) == ["1", other.id]
        assert "defect" in one.ended
