"""Faults of programs' runs that meet other faults."""

import asyncio
from random import Random

import pytest

from simulator import plan
from simulator.loop import sleep_ms
from simulator.program_faults import ProgramFaults
from tests.simulator import copier
from understudy import simulation
from understudy.simulation import Simulation

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def test_an_outage_finds_a_broker_running_that_another_fault_has_started() -> None:
    """Seed 2427: a broker that was down when the outage began is up before it ends; the others start all the same."""
    assert simulation.run(copier.right, 2427, topics=copier.TOPICS, faults="all,1,2").faults


def test_no_leader_is_taken_after_all_brokers_have_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing would elect one: the end of this fault leaves a cluster alone that has started since it began."""
    lives: list[int] = []

    async def main(sim: Simulation) -> None:
        engine = sim._engine
        life = engine.servers.lives
        monkeypatch.setattr(engine.servers, "take_leader", lambda *_: lives.append(engine.servers.lives))
        fault = plan.Fault(1, 0, plan.LEADERLESS, 1, 200, "")
        step = asyncio.create_task(engine.nemesis.steps[plan.LEADERLESS](fault, Random(1)))
        await sleep_ms(100)
        await engine.servers.restart_all(clean=True)
        await step
        assert engine.servers.lives != life
        assert set(lives) == {life}

    assert simulation.run(main, 1, topics={"in": 1}, faults="none", minutes=0.05).ok


def test_an_instance_is_not_replaced_by_one_that_would_follow_its_own_end() -> None:
    """A killed process starts again, although it had been about to end as a replaced one, whose replacement is gone."""

    async def main(sim: Simulation) -> None:
        sim.process("service", lambda: sleep_ms(60_000))
        supervisor = sim._engine.supervisor
        service = supervisor.processes["service"]
        (old,) = service.instances
        new = service.begin()
        replaced = supervisor.spawn(supervisor._end_old(service, old, 1_000, clean=False))
        service.kill(new, "closed")
        await supervisor._kill_after(service, old, 1, "closed", 200)
        await replaced
        await sleep_ms(1_000)
        assert len(service.instances) == 1
        assert service.instances != [old]

    assert simulation.run(main, 1, topics={"in": 1}, faults="none", minutes=0.05).ok


def test_a_lag_ends_although_its_partition_is_gone() -> None:
    """The partition is deleted while its follower is held, which would leave the ISR after that."""

    async def main(sim: Simulation) -> None:
        fault, engine = plan.Fault(1, 0, plan.LAG, 2, 200, ""), sim._engine
        chance = Random(4)  # draws that the follower is to leave the ISR
        lag = asyncio.create_task(engine.nemesis.steps[plan.LAG](fault, chance))
        await sleep_ms(100)
        assert engine.servers.cluster.partitions["t", 0].held == {2}
        await sim.cluster.topics["t"].delete()
        await lag

    assert simulation.run(main, 1, topics={"t": 1}, faults="none", minutes=0.05).ok


def test_the_clock_does_not_go_back_when_all_brokers_start_again() -> None:
    """Otherwise what had begun before would time out later than clients expect."""

    async def main(sim: Simulation) -> None:
        servers = sim._engine.servers
        began_ms = servers.cluster.clock.now_ms()
        await servers.push_clock(8_000)
        await servers.restart_all(clean=False)
        assert servers.cluster.clock.now_ms() >= began_ms + 8_000
        await servers.push_clock(1_000)
        await servers.restart_all(clean=True)
        assert servers.cluster.clock.now_ms() >= began_ms + 9_000

    assert simulation.run(main, 1, topics={"t": 1}, faults="none", minutes=0.05).ok


@pytest.mark.parametrize(
    ("cut", "down", "removed"), [(0, 1, True), (3, 0, True), (3, 1, False), (1, 0, False), (0, 0, True)]
)
def test_a_follower_stays_in_sync_with_brokers_without_power(cut: int, down: int, removed: bool) -> None:
    """Seed 951113113: the leader is killed, and another broker loses power; only the lagging follower has all records.

    Broker 0 is none.
    """

    async def main(sim: Simulation) -> None:
        fault, engine = plan.Fault(1, 0, plan.LAG, 2, 200, ""), sim._engine
        hosted = engine.servers.cluster.partitions["t", 0]
        assert hosted.state.leader == 1
        lag = asyncio.create_task(engine.nemesis.steps[plan.LAG](fault, Random(4)))
        await sleep_ms(100)
        assert hosted.held == {2}
        if down:
            engine.servers.kill(down)
        if cut:
            engine.servers.cut_power(cut, Random(1))
            engine.nemesis._without_power.add(cut)
        await sleep_ms(200)
        assert (2 not in hosted.state.isr) == removed
        await lag
        engine.nemesis._without_power.discard(cut)

    assert simulation.run(main, 1, topics={"t": 1}, faults="none", minutes=0.05).ok


def test_a_fault_that_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run does not go on as if it had happened."""

    async def fail(*_: object) -> None:
        raise OSError("not possible")

    async def main(_: Simulation) -> None:
        await sleep_ms(30_000)

    monkeypatch.setattr(ProgramFaults, "_outage", fail)
    outcome = simulation.run(main, 2427, topics=copier.TOPICS, faults="all,2", check=False)
    assert "a callback fails with OSError: not possible" in outcome.findings[0]
