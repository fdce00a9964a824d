"""Injection of a plan's faults.

Each fault has its own random generator. A fault that is impossible when it is due is skipped: a broker that is down
cannot be killed.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from random import Random
from typing import Any, Protocol

from protocol.apis import ApiKey
from simulator.changes import alter_settings, reassign, undo
from simulator.clients.administrator import Administrator
from simulator.clients.prober import PROBER
from simulator.cluster import Servers
from simulator.coordinator_faults import CoordinatorFaults
from simulator.leaderless import elect_last_known
from simulator.loop import sleep_ms
from simulator.network import Disturbance, Network
from simulator.plan import (
    COMMIT_ANSWER,
    COORDINATOR_LAG,
    FEATURE,
    HOLD,
    LAG,
    LATE_VERIFICATION,
    LOSING,
    PARTITION,
    RELEASE,
    RESET,
    RESTORE,
    ROTATION,
    SLOW_ANSWER,
    SNAPSHOT,
    TRAFFIC,
    Fault,
)
from simulator.worlds import Worlds

INTERNAL = ("__consumer_offsets", "__transaction_state")
_MOST_LATE_US = 12_000_000  # beyond the clients' timeout of 5 s: they have sent the request again by then
_LATE_ANSWER_US = 1_000_000  # ours: within the clients' timeout, so that the answer is still read
_COMMITS = frozenset({ApiKey.END_TXN, ApiKey.OFFSET_COMMIT})


Step = Callable[[Fault, Random], Coroutine[Any, Any, None]]


class Clients(Protocol):
    """Operations of faults on the clients of a run."""

    def kill(self, chance: Random, down_ms: int) -> str:
        """Kill a client, which restarts after ``down_ms``; return a line for the story."""
        ...

    def replace(self, chance: Random) -> str:
        """Start another instance of a client beside the current one; return a line for the story."""
        ...


def _raise_failure(fault: asyncio.Task[None]) -> None:
    """Raise what a fault failed with, which is a mistake of the simulator: its task is awaited at the end only."""
    if not fault.cancelled():
        fault.result()


class Nemesis:
    """Injects the faults of a plan; those of a user's program need neither ``worlds`` nor ``administrator``."""

    def __init__(
        self,
        servers: Servers,
        network: Network,
        clients: Clients,
        worlds: Worlds | None = None,
        administrator: Administrator | None = None,
    ) -> None:
        self._servers, self._network, self._clients, self._worlds = servers, network, clients, worlds
        self._administrator = administrator
        self._tasks: list[asyncio.Task[None]] = []
        self._restarting = self._records_are_lost = False
        self._without_power: set[int] = set()
        self._under_way = 0
        self.of_coordinators = CoordinatorFaults(
            servers,
            network,
            self.note,
            self._without_power,
            lambda each: each in servers.up and self._may_end(each),
            clients.replace,
        )
        self._last_us = 0
        self.steps: dict[str, Step] = dict(self._steps())
        """Kind of fault -> what carries it out."""

    @property
    def disturbed_us(self) -> int:
        """The last moment at which a fault of a broker or a client was under way."""
        return self._network.now_us if self._under_way else self._last_us

    def note(self, what: str) -> None:
        """Add a line to the story."""
        self._network.trace.add(self._network.now_us, "***", what)

    async def run(self, faults: Sequence[Fault]) -> None:
        """Start each fault when it is due; return after the start of the last one."""
        self._records_are_lost = any(each.kind in LOSING for each in faults)
        for fault in faults:
            ahead_ms = fault.at_ms - self._network.now_us / 1000
            if ahead_ms > 0:
                await sleep_ms(ahead_ms)
            task = asyncio.get_running_loop().create_task(self._happen(fault))
            task.add_done_callback(_raise_failure)
            self._tasks.append(task)

    async def end(self) -> None:
        """End all faults: start all brokers, repair disks and network, undo the administrator's changes."""
        await self._end_tasks()
        self._network.calm()
        self.of_coordinators.end()
        servers = self._servers
        for broker in servers.broken:
            servers.kill(broker)
            servers.mend(broker)
        for broker in sorted(servers.cluster.nodes):
            if broker not in servers.up:
                if servers.fails_next(broker):  # it was killed before the write that would have failed
                    servers.mend(broker)
                await servers.start_one(broker)
        for broker in servers.paused:
            servers.resume(broker)
        self._elect_last_known()
        undo(servers)
        if self._administrator is not None:
            await self._administrator.raise_all()
        await self._restart_stuck_coordinators()
        self.note("all faults are over")

    def _elect_last_known(self) -> None:
        """Help partitions without a leader, before their settings change: that clears who the last known leader was."""
        done = elect_last_known(self._servers)
        self._servers.stranded += done
        for each in done:
            self.note(each)

    async def _end_tasks(self) -> None:
        for task in self._tasks:
            if not task.done() and not self._restarting:
                task.cancel()
        for task in self._tasks:
            try:
                await task
            except asyncio.CancelledError:
                continue

    async def _restart_stuck_coordinators(self) -> None:
        for broker in self._servers.stuck_coordinators:
            self.note(f"broker {broker}, which could not complete a transaction, stops and starts")
            await self._servers.stop(broker)
            await self._servers.start_one(broker)
            self._last_us = self._network.now_us

    async def _happen(self, fault: Fault) -> None:
        if self._restarting:
            return
        chance = Random(fault.seed)  # noqa: S311 - replayed from the seed
        if fault.kind in (*TRAFFIC, SLOW_ANSWER, PARTITION):
            self._disturb(fault, chance)
            return
        if fault.kind == COMMIT_ANSWER:
            self._disturb_commits(fault, chance)
            return
        self._under_way += 1
        try:
            await self.steps[fault.kind](fault, chance)
        finally:
            self._under_way -= 1
            self._last_us = self._network.now_us

    def _steps(self) -> Mapping[str, Step]:
        return {
            "kill": self._kill,
            "power cut": self._cut_power,
            "disk": self._disk,
            "last epoch": self._last_epoch,
            "stop": self._stop,
            "pause": self._pause,
            "move leader": self._move_leader,
            "move coordinator": self._move_coordinator,
            "client": self._client,
            "twin": self._twin,
            "clock": self._clock,
            "restart all": self._restart,
            LAG: self._lag,
            HOLD: self._hold,
            "settings": self._settings,
            "replicas": self._replicas,
            "preferred leaders": self._preferred_leaders,
            FEATURE: self._feature,
            RELEASE: self._release,
            SNAPSHOT: self._snapshot,
            RESTORE: self._restore,
            RESET: self._reset,
            COORDINATOR_LAG: self.of_coordinators.lag,
            LATE_VERIFICATION: self.of_coordinators.late_verification,
            ROTATION: self.of_coordinators.rotate,
        }

    def _disturb(self, fault: Fault, chance: Random) -> None:
        until_us = self._network.now_us + fault.lasts_ms * 1000
        # All brokers as often as one: a client then finds no other way, or does.
        brokers = None if chance.random() < 0.5 else frozenset({fault.broker})
        # From a message now and then to all; slow answers to all would only make the run slow.
        rate = chance.choice((0.02, 0.1, 0.3) if fault.kind == SLOW_ANSWER else (0.1, 0.3, 1.0))
        if fault.kind == PARTITION:
            rate = (1 + rate) / 2
        self.note(f"{fault.kind}: {rate:.0%} of {'all' if brokers is None else f'broker {fault.broker}'}")
        late_us = _LATE_ANSWER_US if fault.kind == "late answer" else _MOST_LATE_US
        self._add(Disturbance(fault.kind, until_us, chance, rate, brokers, late_us))

    def _disturb_commits(self, fault: Fault, chance: Random) -> None:
        """Lose or delay answers to commits only: other faults seldom meet just the request that decides."""
        # Some commits or all of them.
        kind, rate = chance.choice(("lose answer", SLOW_ANSWER)), chance.choice((0.3, 1.0))
        self.note(f"{kind} to a commit: {rate:.0%}")
        until_us = self._network.now_us + fault.lasts_ms * 1000
        self._add(Disturbance(kind, until_us, chance, rate, most_us=_MOST_LATE_US, apis=_COMMITS))

    def _add(self, disturbance: Disturbance) -> None:
        network = self._network
        network.disturbances = [each for each in network.disturbances if each.until_us > network.now_us]
        network.disturbances.append(disturbance)

    async def _kill(self, fault: Fault, _chance: Random) -> None:
        if fault.broker in self._servers.up and self.may_be_killed(fault.broker):
            self.note(f"broker {fault.broker} is killed")
            self._servers.kill(fault.broker)
            await self._come_back(fault)

    def may_be_killed(self, broker: int) -> bool:
        """Whether partitions of the broker keep an in-sync replica that did not lose power."""
        return self._servers.may_be_killed(broker, self._without_power)

    def _may_end(self, broker: int) -> bool:
        return not self._restarting and self.may_be_killed(broker)

    async def _cut_power(self, fault: Fault, chance: Random) -> None:
        """Cut the power only if another in-sync replica survives: otherwise Kafka loses records, too."""
        if fault.broker in self._servers.up and self._servers.may_lose_power(fault.broker):
            self.note(f"broker {fault.broker} loses power")
            self._servers.cut_power(fault.broker, chance)
            self._without_power.add(fault.broker)
            await self._come_back(fault)
            self._without_power.discard(fault.broker)

    async def _disk(self, fault: Fault, chance: Random) -> None:
        """Let the next write fail halfway; later restart the broker with a repaired disk."""
        if fault.broker in self._servers.up and self._servers.may_lose_power(fault.broker):
            self.note(f"the disk of broker {fault.broker} fails with its next write")
            # Nothing, within the offset, at the end of a batch's header, within its records.
            self._servers.fail_write(fault.broker, chance.choice((None, 0, 7, 61, 100)))
            await sleep_ms(fault.lasts_ms)
            if fault.broker in self._servers.up and not self._restarting and self.may_be_killed(fault.broker):
                self.note(f"broker {fault.broker} is killed, and its disk is repaired")
                self._servers.kill(fault.broker)
                self._servers.mend(fault.broker)
                await self._servers.start_one(fault.broker)

    async def _last_epoch(self, _fault: Fault, chance: Random) -> None:
        if name := self._servers.near_last_epoch(chance, PROBER):
            self.note(f"{name} has one of its last epochs")

    async def _stop(self, fault: Fault, _chance: Random) -> None:
        servers = self._servers
        if fault.broker in servers.up and fault.broker not in servers.paused and self.may_be_killed(fault.broker):
            self.note(f"broker {fault.broker} is stopped")
            await self._servers.stop(fault.broker)
            await self._come_back(fault)

    async def _come_back(self, fault: Fault) -> None:
        await sleep_ms(fault.lasts_ms)
        if fault.broker not in self._servers.up and not self._restarting:
            self.note(f"broker {fault.broker} starts")
            await self._servers.start_one(fault.broker)

    async def _pause(self, fault: Fault, _chance: Random) -> None:
        servers = self._servers
        if fault.broker in servers.up and fault.broker not in servers.paused and self.may_be_killed(fault.broker):
            self.note(f"broker {fault.broker} hangs")
            servers.pause(fault.broker)
            await sleep_ms(fault.lasts_ms)
            if fault.broker in servers.paused:
                self.note(f"broker {fault.broker} resumes")
                servers.resume(fault.broker)

    async def _lag(self, fault: Fault, chance: Random) -> None:
        """Stop a follower's fetches for a while. It may leave the ISR; its leader may be killed meanwhile."""
        servers = self._servers
        place = chance.choice(sorted(each for each in servers.cluster.partitions if not each[0].startswith("__")))
        # Both seldom enough that many lags only end.
        name, shrink, kill = f"{place[0]}-{place[1]}", chance.random() < 0.4, chance.random() < 0.4
        if not (leader := servers.hold_follower(*place, fault.broker)):
            return
        self.note(f"broker {fault.broker} stops fetching {name}")
        life = servers.lives
        try:
            await sleep_ms(fault.lasts_ms)
            # A leader without power removes none: it would return as the only one in sync, without its last records.
            # Nor does one that hangs.
            partition = servers.cluster.partitions.get(place)  # it may have been deleted
            absent = (*self._without_power, *servers.paused)
            shrink = shrink and partition is not None and partition.state.leader not in absent
            # A killed one may have done so just before, but no power was to be cut that leaves no other in sync.
            there = {*servers.up} - {*self._without_power, fault.broker}
            shrink = shrink and partition is not None and not there.isdisjoint(partition.state.isr)
            if shrink and servers.lives == life and servers.take_out_of_sync(*place, fault.broker):
                self.note(f"broker {fault.broker} leaves the ISR of {name}")
                await sleep_ms(1_000)  # time for writes without it
            if (
                kill
                and leader in servers.up
                and self.may_be_killed(leader)
                and not self._restarting
                and servers.lives == life
            ):
                self.note(f"broker {leader}, which led {name}, is killed")
                servers.kill(leader)
                await sleep_ms(1_000)
                if leader not in servers.up and not self._restarting:
                    self.note(f"broker {leader} starts")
                    await servers.start_one(leader)
        finally:
            if servers.lives == life:
                self.note(f"broker {fault.broker} fetches {name} again")
                servers.let_go(*place, fault.broker)

    async def _hold(self, fault: Fault, chance: Random) -> None:
        """Hold a transaction between its steps for a while; its coordinator may move or be killed meanwhile."""
        servers = self._servers
        if (name := servers.hold(chance)) is None:
            return
        self.note(f"the markers of {name} are held")
        # Most often a move: the new coordinator has to write the markers again.
        half_ms, then = min(fault.lasts_ms, 4_000) / 2, chance.choice(("move", "move", "kill", "nothing"))
        try:
            await sleep_ms(half_ms)
            place = servers.coordinated_at(name)
            if then == "move" and place is not None:
                # Mostly at once: a coordinator that loads only makes clients wait.
                self._move(INTERNAL[1], place[1], fault.broker, chance.choice((0, 0, 500)))
            elif then == "kill" and place is not None and not self._restarting and self.may_be_killed(place[0]):
                self.note(f"broker {place[0]}, which coordinates {name}, is killed")
                servers.kill(place[0])
            await sleep_ms(half_ms)
            if then == "kill" and place is not None and place[0] not in servers.up and not self._restarting:
                self.note(f"broker {place[0]} starts")
                await servers.start_one(place[0])
        finally:
            self.note(f"the markers of {name} are written again")
            servers.release(name)

    def quiet(self, broker: int, since_us: int) -> bool:
        """Whether a broker runs, and neither it nor the network was disturbed since then."""
        servers, until_us = self._servers, [each.until_us for each in self._network.disturbances]
        return all(each < since_us for each in until_us) and broker in {*servers.up} - {*servers.paused}

    async def _move_leader(self, fault: Fault, chance: Random) -> None:
        places = sorted(place for place in self._servers.cluster.partitions if not place[0].startswith("__"))
        self._move(*chance.choice(places), fault.broker, 0)

    async def _move_coordinator(self, fault: Fault, chance: Random) -> None:
        places = sorted(place for place in self._servers.cluster.partitions if place[0] in INTERNAL)
        if places:
            # Mostly at once: a coordinator that loads only makes clients wait.
            self._move(*chance.choice(places), fault.broker, chance.choice((0, 0, 500)))

    def _move(self, topic: str, index: int, broker: int, loading_ms: int) -> None:
        if broker in self._servers.up and self._servers.move_leader(topic, index, broker, loading_ms):
            self.note(f"broker {broker} leads {topic}-{index}")

    async def _settings(self, _fault: Fault, chance: Random) -> None:
        self.note(alter_settings(self._servers, chance))

    async def _replicas(self, _fault: Fault, chance: Random) -> None:
        if note := reassign(self._servers, chance):
            self.note(note)

    async def _preferred_leaders(self, _fault: Fault, _chance: Random) -> None:
        self._servers.elect_leaders(sorted(self._servers.cluster.partitions))
        self.note("preferred leaders lead, where they may")

    async def _client(self, fault: Fault, chance: Random) -> None:
        self.note(self._clients.kill(chance, fault.lasts_ms))

    async def _twin(self, _fault: Fault, chance: Random) -> None:
        self.note(self._clients.replace(chance))

    async def _clock(self, fault: Fault, _chance: Random) -> None:
        self.note(f"the brokers' clock jumps by {fault.lasts_ms} ms")
        await self._servers.push_clock(fault.lasts_ms)

    async def _restart(self, _fault: Fault, chance: Random) -> None:
        # Unclean restarts find more: they lose what was not written.
        clean = chance.random() < 0.3
        if self._without_power and not clean:
            return  # after that, no broker may have all records, in Kafka as well
        self.note(f"all brokers {'stop' if clean else 'are killed'} and start again")
        await self.meanwhile_nothing(self._servers.restart_all(clean=clean))

    async def meanwhile_nothing(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work that concerns all brokers; no other fault begins meanwhile."""
        self._restarting = True
        try:
            await work
        finally:
            self._restarting = False

    # --- features and releases ---------------------------------------------------------------------------------------

    async def _feature(self, _fault: Fault, chance: Random) -> None:
        """Request another level of a feature as an administrator; some requests must be refused.

        The controller removes brokers that lost records from the ISR only while eligible leader replicas are enabled
        (KIP-966). So that feature stays enabled in runs in which power or disks fail, and while a partition has only
        eligible leader replicas.
        """
        keeps = self._records_are_lost or self._servers.has_partition_without_replica_in_sync()
        assert self._administrator is not None
        if note := await self._administrator.change(chance, keeps_eligible=keeps):
            self.note(note)

    async def _release(self, _fault: Fault, chance: Random) -> None:
        """Stop all brokers, and start them as another release that supports all finalized feature levels."""
        if (release := self._servers.another_release(chance)) is not None:
            self.note(f"all brokers stop, and start as {release}")
            await self.meanwhile_nothing(self._servers.restart_all(clean=True, release=release))

    # --- snapshots ---------------------------------------------------------------------------------------------------

    async def _snapshot(self, _fault: Fault, _chance: Random) -> None:
        assert self._worlds is not None
        if (number := await self._worlds.take()) is not None:
            self.note(f"snapshot {number} is taken")

    async def _restore(self, _fault: Fault, chance: Random) -> None:
        assert self._worlds is not None
        if (kept := self._worlds.one(chance)) is not None:
            self.note(f"back to snapshot {kept.number}")
            await self.meanwhile_nothing(self._worlds.restore(kept))

    async def _reset(self, _fault: Fault, _chance: Random) -> None:
        assert self._worlds is not None
        if not self._servers.broken:
            self.note("the cluster is reset")
            await self.meanwhile_nothing(self._worlds.reset())
