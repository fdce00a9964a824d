"""Faults of coordinators, which wait for their followers, answer other brokers late, or move while an id changes."""

from collections.abc import Callable, Collection
from random import Random

from broker.coordination.coordinators import GROUP_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC
from broker.coordination.transaction.transitions import MAX_EPOCH
from broker.partitions.transactions.markers import Step
from simulator.clients.prober import PROBER
from simulator.cluster import Servers
from simulator.history import LAST_EPOCH
from simulator.loop import sleep_ms
from simulator.network import Network
from simulator.plan import Fault
from simulator.share_lives import SHARE_WRITES_LAST_MS

_LOGS = GROUP_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC
_LOOK_MS, _MOST_LOOKS = 20, 300
"""Interval between the looks whether a transaction is held at the last epoch, and the most looks.

Ours, six seconds in all, longer than a transaction lasts.
"""


class CoordinatorFaults:
    """Carries out the faults of the kind ``coordinators``.

    ``powerless``: brokers that lost power and have not come back. ``may_be_killed`` returns whether a broker may be
    killed now. ``start_another`` starts another instance of a client, and returns a line about it.
    """

    def __init__(
        self,
        servers: Servers,
        network: Network,
        note: Callable[[str], None],
        powerless: Collection[int],
        may_be_killed: Callable[[int], bool],
        start_another: Callable[[Random], str],
    ) -> None:
        self._servers, self._network, self._note = servers, network, note
        self._powerless, self._may_be_killed, self._start_another = powerless, may_be_killed, start_another
        self._late: list[tuple[int, int, Random]] = []
        """Until when answers are late, in virtual microseconds, and by how many ms at most."""

    # --- replicas ----------------------------------------------------------------------------------------------------

    async def lag(self, fault: Fault, chance: Random) -> None:
        """Stop all fetches of a coordinator's partition for a while, so that the coordinator waits with its answers.

        The followers may leave the ISR, which then is smaller than ``min.insync.replicas``, and the coordinator may be
        killed. A share coordinator's partition is left alone for longer than partition leaders repeat a write. While a
        transaction coordinator waits, an operator may start a client again that seems to hang.
        """
        servers = self._servers
        places = sorted(each for each in servers.cluster.partitions if each[0] in _LOGS)
        # Mostly followers leave the ISR, so that the wait ends; seldom the leader is killed in it.
        shrink, kill = chance.random() < 0.6, chance.random() < 0.3
        if not places:
            return
        place = chance.choice(places)
        name, life, leader = f"{place[0]}-{place[1]}", servers.lives, servers.cluster.partitions[place].state.leader
        held = [broker for broker in sorted(servers.cluster.nodes) if servers.hold_follower(*place, broker)]
        if not held:
            return
        self._note(f"brokers {held} stop fetching {name}")
        lasts_ms = fault.lasts_ms
        if shrink and place[0] == SHARE_TOPIC:
            lasts_ms, kill = SHARE_WRITES_LAST_MS + fault.lasts_ms, False
        # Half: the other half waits, as Kafka's own clients do.
        impatient = place[0] == TRANSACTION_TOPIC and chance.random() < 0.5
        try:
            if impatient:
                await sleep_ms(chance.randrange(min(lasts_ms, 1_000)))
                self._note(self._start_another(chance))
                shrink = False  # which would refuse the new instance
            await sleep_ms(min(lasts_ms, 500))  # time for writes that then wait
            if shrink and servers.lives == life and self._leads(place, leader):
                gone = [broker for broker in held if servers.take_out_of_sync(*place, broker)]
                self._note(f"brokers {gone} leave the ISR of {name}")
            await sleep_ms(lasts_ms)
            if kill and servers.lives == life and self._leads(place, leader) and self._may_be_killed(leader):
                # Down for a second: shorter than clients wait.
                await self._restart(leader, f"which coordinates {name}", 1_000)
        finally:
            if servers.lives == life:
                self._note(f"brokers {held} fetch {name} again")
                for broker in held:
                    servers.let_go(*place, broker)

    def _leads(self, place: tuple[str, int], broker: int) -> bool:
        """Whether a broker that runs and has all its records leads a partition."""
        servers = self._servers
        there = broker in servers.up and broker not in (*self._powerless, *servers.broken, *servers.paused)
        return there and servers.cluster.partitions[place].state.leader == broker

    async def _restart(self, broker: int, what: str, down_ms: int) -> None:
        self._note(f"broker {broker}, {what}, is killed")
        life = self._servers.lives
        self._servers.kill(broker)
        await sleep_ms(down_ms)
        if self._servers.lives == life and broker not in self._servers.up:
            self._note(f"broker {broker} starts")
            await self._servers.start_one(broker)

    # --- answers to other brokers ------------------------------------------------------------------------------------

    async def late_verification(self, fault: Fault, chance: Random) -> None:
        """Let answers of transaction coordinators to partition leaders arrive late for a while."""
        # From a client's backoff to more than half of its timeout, 5 s.
        most_ms = chance.choice((100, 1_000, 3_000))
        self._note(f"answers of transaction coordinators to leaders take up to {most_ms} ms")
        self._late.append((self._network.now_us + fault.lasts_ms * 1000, most_ms, chance))

    async def travel(self) -> None:
        """Wait for as long as an answer of a coordinator is on its way to another broker."""
        self._late = [each for each in self._late if each[0] > self._network.now_us]
        late_ms = max((chance.randrange(most_ms) for _, most_ms, chance in self._late), default=0)
        if late_ms:
            await sleep_ms(late_ms)

    def end(self) -> None:
        """Let all answers arrive at once from now on."""
        self._late.clear()

    # --- producer ids ------------------------------------------------------------------------------------------------

    async def rotate(self, fault: Fault, chance: Random) -> None:
        """Move or kill a transaction coordinator while the markers of a producer's last epoch are held.

        The producer has the id that follows by then.
        """
        servers, life = self._servers, self._servers.lives
        runtimes = [each for node in servers.cluster.nodes.values() for each in node.coordinators.transactions.values()]
        known = sorted({name for each in runtimes for name in each.machine.transactions if not name.startswith(PROBER)})
        if not known:
            return
        # The leadership moves in more than half of the cases: a kill costs the run seconds.
        name, kill = chance.choice(known), chance.random() < 0.4
        if not servers.raise_epoch(name, LAST_EPOCH - 1):
            return
        self._note(f"{name} has one of its last epochs, the last of which is held")
        try:
            if await self._held_at_the_last_epoch(name) and servers.lives == life:
                coordinator, index = servers.coordinated_at(name) or (0, 0)
                if kill and coordinator and self._may_be_killed(coordinator):
                    await self._restart(coordinator, f"which coordinates {name}", 1_000)
                elif servers.move_leader(TRANSACTION_TOPIC, index, fault.broker):
                    self._note(f"broker {fault.broker} leads {TRANSACTION_TOPIC}-{index}")
                await sleep_ms(500)  # time to load the partition, and to go on
        finally:
            if servers.lives == life:
                self._note(f"the markers of {name} are written again")
                servers.release(name)

    async def _held_at_the_last_epoch(self, name: str) -> bool:
        """Hold the markers of a transaction at the last epoch; return False if there is none in time."""
        servers, life = self._servers, self._servers.lives
        for _ in range(_MOST_LOOKS):
            if servers.lives != life:
                return False
            nodes = servers.cluster.nodes.values()
            runtimes = [each for node in nodes if node.up for each in node.coordinators.transactions.values()]
            copies = [own for each in runtimes if (own := each.machine.transactions.get(name)) is not None]
            holds = servers.cluster.markers.holds
            if any(own.producer_epoch >= MAX_EPOCH - 1 for own in copies) and holds.held(name) is None:
                holds.hold(name, Step.PREPARE)
            if any(own.producer_epoch == MAX_EPOCH for own in copies) and (holds.held(name) or (None, False))[1]:
                return True
            await sleep_ms(_LOOK_MS)
        return False
