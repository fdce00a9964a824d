"""Faults that only runs of a user's program have, such as frozen processes, quotas and partitions without a leader.

Our own clients are no processes that could be frozen, and they expect that a broker runs and that partitions have
leaders.
"""

from collections.abc import Callable, Coroutine, Mapping
from random import Random
from typing import Any, Protocol

from broker.coordination.metadata.quotas import CLIENT_ID, Alteration
from simulator.cluster import Servers
from simulator.loop import sleep_ms
from simulator.plan import EVICTION, FREEZE, HANDOVER, LEADERLESS, OUTAGE, QUOTA, REBALANCE, Fault
from simulator.supervisor import Supervisor

Step = Callable[[Fault, Random], Coroutine[Any, Any, None]]
_QUOTAS: tuple[tuple[str, float], ...] = (
    ("producer_byte_rate", 100.0),
    ("consumer_byte_rate", 300.0),
    ("request_percentage", 0.01),
)
"""Quotas of each client id, low enough for throttling by seconds."""
_GAPS_MS = (0, 3_000, 8_000)
"""Times between the starts of two brokers after an outage, of which each has one.

At once, or as long as a restart and a session timeout take.
"""
_LEADERLESS_MS = 15_000
"""How long partitions are without a leader, besides the duration of the fault: longer than producers try to send."""
_LOOK_MS, _MOST_LOOKS = 5, 600
"""How often the right moment is looked for in a transaction, or between two; and the most times.

Three seconds in all, as transactions are short.
"""
_HANDOVERS_MS = (3_000, 12_000)
"""How long a transaction is held while a process ends and starts again, of which each has one.

Below and above the session timeout of most groups, 10 s.
"""


class Story(Protocol):
    """What takes the lines about the faults, and keeps others from beginning."""

    def note(self, what: str) -> None:
        """Add a line to the story."""
        ...

    def may_be_killed(self, broker: int) -> bool:
        """Whether partitions of a broker keep an in-sync replica that did not lose power."""
        ...

    async def meanwhile_nothing(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work that concerns all brokers; no other fault begins meanwhile."""
        ...


class ProgramFaults:
    """Carries out these faults."""

    def __init__(self, servers: Servers, supervisor: Supervisor, story: Story) -> None:
        self._servers, self._supervisor, self._story = servers, supervisor, story

    @property
    def steps(self) -> Mapping[str, Step]:
        """Return what carries out each kind of fault."""
        return {
            FREEZE: self._freeze,
            REBALANCE: self._rebalance,
            EVICTION: self._evict,
            QUOTA: self._quota,
            OUTAGE: self._outage,
            LEADERLESS: self._take_leaders,
            HANDOVER: self._hand_over,
        }

    async def _freeze(self, fault: Fault, chance: Random) -> None:
        self._story.note(self._supervisor.freeze(chance, fault.lasts_ms))

    # --- groups ------------------------------------------------------------------------------------------------------

    def _group(self, chance: Random) -> tuple[Any, str, list[str]] | None:
        """Choose a group with members; return its coordinator, its id, and the ids of the members."""
        runtimes = [
            runtime
            for node in self._servers.cluster.nodes.values()
            if node.up
            for runtime in node.coordinators.groups.values()
        ]
        known = {
            name: (runtime, name, members)
            for runtime in runtimes
            for name, group in runtime.machine.groups.items()
            if (members := sorted(each.member_id for each in getattr(group, "members", {}).values()))
        }
        return known[chance.choice(sorted(known))] if known else None

    async def _rebalance(self, _fault: Fault, chance: Random) -> None:
        """Let the members of a group join again, as when partitions are added or another member comes."""
        if (target := self._group(chance)) is not None:
            coordinator, name, _ = target
            self._story.note(f"the group {name} rebalances")
            coordinator.submit(lambda now_ms: coordinator.machine.rebalance(name, now_ms))

    async def _evict(self, _fault: Fault, chance: Random) -> None:
        """Remove a member as when its session times out, while its process lives on."""
        if (target := self._group(chance)) is not None:
            coordinator, name, members = target
            member = chance.choice(members)
            self._story.note(f"the session of a member of the group {name} times out")
            coordinator.submit(lambda now_ms: coordinator.machine.evict(name, member, now_ms))

    async def _hand_over(self, _fault: Fault, chance: Random) -> None:
        """End a process while a transaction is decided but not completed; its next instance starts meanwhile.

        The markers are late for longer than a dead member's session lasts, as when the leaders that write them hang. So
        the next instance may look for offsets that are committed and not yet readable (KIP-447).
        """
        servers = self._servers
        if (name := servers.hold(chance)) is None:
            return
        self._story.note(f"the markers of {name} are held")
        try:
            for _ in range(_MOST_LOOKS):
                if servers.is_held(name):
                    break
                await sleep_ms(_LOOK_MS)
            # Begins again at once: its new instance has to meet the transaction that is held.
            self._story.note(self._supervisor.kill(chance, 200))
            await sleep_ms(chance.choice(_HANDOVERS_MS))
        finally:
            self._story.note(f"the markers of {name} are written again")
            servers.release(name)

    # --- quotas ------------------------------------------------------------------------------------------------------

    async def _quota(self, fault: Fault, chance: Random) -> None:
        """Limit each client for a while, so that responses are late and connections muted (KIP-219).

        The metadata keep the quota when all brokers start again: it is removed from the cluster that is there by then.
        """
        name, value = chance.choice(_QUOTAS)
        self._story.note(f"each client has a {name} of {value:g}")
        self._set_quota(name, value)
        try:
            await sleep_ms(fault.lasts_ms)
        finally:
            self._story.note(f"clients have no {name} any more")
            self._set_quota(name, None)

    def _set_quota(self, name: str, value: float | None) -> None:
        metadata = self._servers.cluster.metadata
        change = Alteration({CLIENT_ID: None}, [(name, value)])
        metadata.submit(lambda _now_ms: metadata.machine.alter_client_quotas([change], resolves=lambda _host: True))

    # --- all brokers -------------------------------------------------------------------------------------------------

    async def _outage(self, fault: Fault, chance: Random) -> None:
        """Stop all brokers cleanly, and start them one after another: partitions are without a leader meanwhile."""
        servers = self._servers
        if servers.paused or servers.broken or not all(map(self._story.may_be_killed, servers.up)):
            return
        order = chance.sample(sorted(servers.cluster.nodes), len(servers.cluster.nodes))
        self._story.note(f"brokers {order} stop, one after another")
        await self._story.meanwhile_nothing(self._restart(order, fault.lasts_ms, chance.choice(_GAPS_MS)))

    async def _restart(self, order: list[int], down_ms: int, gap_ms: int) -> None:
        for broker in order:
            if broker in self._servers.up:
                await self._servers.stop(broker)
        await sleep_ms(down_ms)
        for broker in order:
            if broker not in self._servers.up:  # a fault that had killed it before starts it, too
                self._story.note(f"broker {broker} starts")
                await self._servers.start_one(broker)
            await sleep_ms(gap_ms)

    async def _take_leaders(self, fault: Fault, chance: Random) -> None:
        """Leave some partitions of a topic without a leader for a while, as if all in-sync replicas were unreachable.

        Each loses its leader while it has no open transaction: Kafka skips the marker of a partition without a leader
        (KAFKA-20734), which would end transactions of a right program in two ways.
        """
        servers, life = self._servers, self._servers.lives
        topics = sorted(each for each in servers.cluster.image.topics if not each.startswith("__"))
        if not topics:
            return
        topic, lasts_ms = chance.choice(topics), chance.choice((fault.lasts_ms, _LEADERLESS_MS))
        indexes = sorted(servers.cluster.image.topics[topic].partitions)
        wanted, taken = set(chance.sample(indexes, chance.randrange(1, len(indexes) + 1))), list[int]()
        try:
            for _ in range(_MOST_LOOKS):
                if not wanted or servers.lives != life:
                    break
                for index in sorted(wanted):
                    if servers.take_leader(topic, index):
                        self._story.note(f"{topic}-{index} has no leader")
                        taken.append(index)
                wanted -= set(taken)
                await sleep_ms(_LOOK_MS)
            await sleep_ms(lasts_ms if taken else 0)
        finally:
            if taken and servers.lives == life:
                self._story.note(f"{topic} has leaders again")
                servers.elect_leaders((topic, index) for index in taken)
