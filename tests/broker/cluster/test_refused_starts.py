"""Brokers that cannot be started, and what a reset does meanwhile."""

import asyncio
from pathlib import Path

import pytest

from broker.cluster import lifecycle as module
from broker.cluster import reset
from broker.cluster.data_directories import ResetRefused
from broker.cluster.lifecycle import WrongState
from broker.request.node import Node
from storage.log_dir import WrongDirectoryError
from tests.scenarios.transactions.harness import running
from tests.storage.logs import records_batch


async def test_a_broker_whose_logs_cannot_be_loaded_starts_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ports and its directory are free, and the reason is in the error."""
    async with running(brokers=2, data_dir=tmp_path) as stage:
        lifecycle, node = stage.cluster.lifecycle, stage.cluster.nodes[2]
        lifecycle.kill(node)

        def refused(*_: object) -> None:
            raise WrongDirectoryError("its records are of another time")

        with monkeypatch.context() as patch:
            patch.setattr(module, "load_logs", refused)
            for _ in range(2):
                with pytest.raises(WrongState, match="broker 2 cannot start: its records are of another time"):
                    await lifecycle.start(node)
                assert (node.up, node.log_dirs, stage.cluster.servers[node].listening) == (False, (), False)
        await lifecycle.start(node)
        assert (node.up, stage.cluster.servers[node].listening) == (True, True)


async def test_a_broker_whose_log_is_damaged_starts_once_it_is_not(tmp_path: Path) -> None:
    """After a clean stop no log is checked: damage at the end of one is found when that end is looked for."""
    async with running(brokers=2, topics={"t": 2}, data_dir=tmp_path) as stage:
        lifecycle, node = stage.cluster.lifecycle, stage.cluster.nodes[2]
        (partition,) = (each for each in stage.cluster.partitions.values() if each.topic == "t" and 2 in each.logs)
        partition.append(2, records_batch(b"v"), stage.clock.now_ms())
        await lifecycle.stop(node)
        (path,) = (tmp_path / "broker-2" / partition.name).glob("*.log")
        sound = path.read_bytes()
        path.write_bytes(sound[:8] + bytes(4) + sound[12:])
        with pytest.raises(WrongState, match="broker 2 cannot start: CORRUPT_MESSAGE"):
            await lifecycle.start(node)
        assert (node.up, node.log_dirs, stage.cluster.servers[node].listening) == (False, (), False)
        path.write_bytes(sound)
        await lifecycle.start(node)
        assert (node.up, partition.logs[2].log_end_offset) == (True, 1)


async def test_a_reset_that_keeps_something_waits_for_no_start() -> None:
    """It would need the broker, and is refused before anything has changed."""
    async with running(brokers=2) as stage:
        lifecycle, node = stage.cluster.lifecycle, stage.cluster.nodes[2]
        lifecycle.kill(node)
        starting, era = asyncio.create_task(lifecycle.start(node)), stage.cluster.journal.era
        await asyncio.sleep(0)
        with pytest.raises(ResetRefused, match="broker 2 is starting; reset the cluster after that"):
            await reset.reset(stage.cluster, frozenset({"topics"}))
        assert stage.cluster.journal.era == era
        await starting
        await reset.reset(stage.cluster, frozenset({"topics"}))
        assert stage.cluster.journal.era == era + 1


async def test_a_reset_takes_a_broker_out_that_is_being_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is left, and the cluster can be reset again."""
    async with running(brokers=2) as stage:
        cluster, bound = stage.cluster, asyncio.Event()
        bind = cluster.bind

        async def slowly(node: Node) -> None:
            await bind(node)
            await bound.wait()

        with monkeypatch.context() as patch:
            patch.setattr(cluster, "bind", slowly)
            adding = asyncio.create_task(cluster.lifecycle.add())
            await asyncio.sleep(0)
            assert list(cluster.nodes) == [1, 2, 3]
            await reset.reset(cluster)
            bound.set()
            with pytest.raises(WrongState, match="broker 3 was removed meanwhile"):
                await adding
        assert (list(cluster.nodes), len(cluster.bootstrap)) == ([1, 2], 2)
        await reset.reset(cluster, disconnect=True)
        assert (await cluster.lifecycle.add()).up
