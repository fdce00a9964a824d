"""One run: a cluster and its clients, some minutes of faults, a time without faults, and the checks."""

from collections.abc import Collection, Mapping
from pathlib import Path
from random import Random

from simulator.changes import require_all_replicas
from simulator.checker import Log, check, check_copies
from simulator.clients.administrator import SHARE_VERSION, Administrator
from simulator.clients.client import Client, World
from simulator.clients.consumer import Fetcher, Member
from simulator.clients.operator import Operator
from simulator.clients.producer import TIMEOUT_MS
from simulator.clients.share_member import SHARE_GROUP
from simulator.clients.transaction_prober import STRICT
from simulator.cluster import RELEASES
from simulator.disks import write_disks
from simulator.engine import Cut, Engine
from simulator.epochs import validate_on_all_replicas
from simulator.faults import Nemesis
from simulator.hanging import HangingTransactions
from simulator.history import LAST_EPOCH, History, Place
from simulator.internal_topics import InternalTopics
from simulator.liveness import check_liveness
from simulator.loop import now_ms, sleep_ms
from simulator.plan import CHANGE, COORDINATORS, HOLD, LAG, RELEASE, WORLD, plan
from simulator.replicas import compare_replicas, find_duplicates, fingerprint
from simulator.result import Result
from simulator.share_lives import WRITE_TIMEOUT_MS, ShareLives
from simulator.start_offsets import StartOffsets
from simulator.workload import (
    CONSUMER,
    COPIERS,
    ISOLATION,
    OTHER,
    RULES,
    SHARE,
    SOURCE,
    STANDBYS,
    STREAMS,
    TARGET,
    Workload,
)
from simulator.worlds import Worlds
from storage.files import MemoryFiles

BROKERS = 3  # as many as replicas in production
VARIED = {
    "transactional.id.expiration.ms": ("604800000", "5000"),
    "transaction.remove.expired.transaction.cleanup.interval.ms": ("2000",),
    "producer.id.expiration.ms": ("86400000",),
}
"""Broker setting -> values, of which each run has one."""
VARIED_OF_STREAMS = {STANDBYS: ("0", "1"), "group.streams.initial.rebalance.delay.ms": ("0", "1000")}
GRACE_MS = 10_000
"""Time after the last fault until brokers and clients must have recovered: two of the clients' timeouts."""
SCAN_MS = 4_000
"""Time within which a coordinator finds and aborts a transaction that has timed out.

Its interval in these runs, and as much to spare.
"""
DRAIN_MS, MOST_DRAINS = 5_000, 24
"""Interval between the checks whether the copiers are done, and the most checks.

Two minutes in all, after which a copier hangs.
"""

QUIET_ROUNDS, MOST_ROUNDS = 20, 600
"""Fetch rounds of the share group's last member: how many without records end it, and the most.

Ours, six seconds, longer than a lock; and three minutes.
"""
KINDS = (CONSUMER, SHARE, LAG, CHANGE, RULES, HOLD, RELEASE, WORLD, STREAMS, COORDINATORS)
"""Optional kinds of a run: members of groups of these protocols, followers that fall behind, an administrator,
clients that break further rules, transactions that are held between their steps, other features and releases,
snapshots to which the cluster is restored, coordinators that wait, answer late or move."""

MOST_AFTER_S = 900
"""Limit of virtual time for the end of a run; without broken promises it takes less than four minutes."""


class Run(Engine):
    """The run of one seed. ``only``: the numbers of the faults that happen; None for all.

    ``kinds``: the optional kinds (:data:`KINDS`); None for those that the seed determines.
    ``data_dir``: a new folder for the brokers' final directories; None: they are not written.
    """

    def __init__(
        self,
        seed: int,
        minutes: float,
        only: Collection[int] | None = None,
        kinds: Collection[str] | None = None,
        data_dir: Path | None = None,
    ) -> None:
        super().__init__(seed, minutes * 60 + MOST_AFTER_S)
        self.minutes, self.data_dir = minutes, data_dir
        self.committed: Mapping[Place, Log] = {}
        self.disks: Mapping[int, MemoryFiles] = {}
        self.broken_ms: int | None = None
        """When the first promise was broken that counts, in virtual ms."""
        self._until_ms: float | None = None
        self._counted = 0
        """How many broken promises have been judged."""
        self._read: Fetcher | None = None
        """The last one that has read all logs to their ends."""
        self.loop.advanced = self._watch
        self._chance = Random(f"{seed} setup")  # noqa: S311 - replayed
        self.topics = {SOURCE: self._chance.randrange(1, 3), OTHER: self._chance.randrange(1, 3), TARGET: 2}
        self.kinds = kinds_of(seed) if kinds is None else frozenset(kinds)
        if RULES in self.kinds:
            self.topics[STRICT] = 1
        settings = {name: self._chance.choice(values) for name, values in VARIED.items()}
        own = Random(f"{seed} settings of streams")  # noqa: S311 - replayed
        settings |= {name: own.choice(values) for name, values in VARIED_OF_STREAMS.items()}
        if COORDINATORS in self.kinds:
            settings["share.coordinator.write.timeout.ms"] = str(WRITE_TIMEOUT_MS)
        self.make_servers(BROKERS, self.topics, settings)
        self._share_lives = ShareLives(self.servers)
        self._hanging = HangingTransactions(self.servers)
        self._internal_topics = InternalTopics(self.servers)
        self._start_offsets = StartOffsets(self.servers, lambda: self.network.now_us)
        history = History(
            lambda: self.network.now_us,
            # The response to a fencing at the old level may arrive after the level was raised.
            highest_epoch=lambda: LAST_EPOCH + (RELEASE in self.kinds or not self.servers.fences_give_ids),
        )
        self.world = World(self.network, history, self.topics, seed, brokers_ms=self._brokers_ms)
        self.servers.violate = history.violate
        self.servers.leaves = lambda: self._hanging.settle(self.history)
        self.world.features_change = RELEASE in self.kinds
        self.world.ids_expire = int(settings["transactional.id.expiration.ms"]) < MOST_AFTER_S * 1000
        if RELEASE in self.kinds:
            self.servers.play(Random(f"{seed} release").choice(RELEASES))  # noqa: S311 - replayed
        self.world.elapsed_ms = lambda: now_ms() + self.servers.pushed_ms
        self.world.raise_epoch = self.servers.raise_epoch
        self.world.has_last_epoch = self.servers.has_last_epoch
        self.world.coordinators_wait = COORDINATORS in self.kinds
        self.world.share_life = self._share_lives.number
        self.workload = Workload(self.world, self._chance, self.kinds, int(settings[STANDBYS]))
        faults = plan(seed, minutes, BROKERS, self.kinds)
        self.faults = [each for each in faults if only is None or each.number in only]

    @property
    def history(self) -> History:
        """History of the cluster's current state; another one after a restore or a reset."""
        return self.world.history

    def _brokers_ms(self) -> int:
        """Return the time of the brokers' clock in ms."""
        return self.servers.cluster.clock.now_ms()

    def result(self) -> Result:
        """Run the seed and return the result. Raises FileExistsError: the folder for the directories exists by now."""
        self._play()
        if self.data_dir is not None and self.disks:
            write_disks(self.disks, self.data_dir)
        broken, excused = self._hanging.judged(self.history)
        return Result(
            self.seed,
            broken,
            self.trace.digest,
            self.trace.lines,
            round(self.loop.now_s * 1000),
            self.faults,
            self.trace,
            dict(self.history.progress),
            self.committed,
            [*self.servers.stranded, *excused],
            bool(self.servers.left_out_markers),
            self.broken_ms,
        )

    def first_broken_ms(self, until_ms: float) -> int | None:
        """Run the seed until a promise is broken that counts, or until then; return when that was, in virtual ms."""
        self._until_ms = until_ms
        self._play()
        return self.broken_ms

    def _watch(self) -> None:
        """Note when a promise is broken; end a run that is played only for that."""
        self._note_broken()
        if self._until_ms is not None and (self.broken_ms is not None or self.loop.now_s * 1000 > self._until_ms):
            raise Cut

    def _note_broken(self) -> None:
        if self.broken_ms is None and len(self.history.violations) > self._counted:
            self._counted = len(self.history.violations)
            self._hanging.settle(self.history)
            if self._hanging.judged(self.history)[0]:
                self.broken_ms = round(self.loop.now_s * 1000)

    def _play(self) -> None:
        self.play(
            self._main, self._hanging.observed(), self._start_offsets.observed(), self._internal_topics.observed()
        )
        self._note_broken()

    def violate(self, what: str) -> None:
        """Note a broken promise."""
        self.history.violate(what)

    # --- the run -----------------------------------------------------------------------------------------------------

    async def _main(self) -> None:
        await self.servers.start()
        self._prepare()
        self.workload.start()
        worlds = Worlds(self.servers, self.world, self.workload, self._prepare)
        administrator = Administrator(self.world, "administrator", [SHARE_VERSION] if SHARE in self.kinds else [])
        nemesis = Nemesis(self.servers, self.network, self.workload, worlds, administrator)
        self.world.quiet = nemesis.quiet
        self.history.deliveries.disturbed_us = lambda: nemesis.disturbed_us
        self.history.deliveries.excuse_of = self._start_offsets.why
        if COORDINATORS in self.kinds:
            self.history.deliveries.slow = True
            self.servers.between_brokers = self.servers.cluster.between_brokers = nemesis.of_coordinators.travel
        await nemesis.run(self.faults)
        left_ms = self.minutes * 60_000 - now_ms()
        await sleep_ms(max(left_ms, 0))
        await nemesis.end()
        self.world.over = True
        await sleep_ms(GRACE_MS)
        await self._operate()
        await check_liveness(self.world, self.workload)
        await self._finish(nemesis)

    def _prepare(self) -> None:
        """Configure the cluster for the run's clients, after a start and after each reset."""
        if STRICT in self.topics:
            require_all_replicas(self.servers, STRICT)

    async def _operate(self) -> None:
        """Abort transactions that hang, and create topics that are missing, in Kafka, too, as an operator does.

        Others are found at the end.
        """
        operator = Operator(self.world, "operator")
        for each in self._hanging.hanging():
            await operator.abort(each.place, each.producer_id, each.epoch, each.coordinator_epoch)
            self._hanging.aborted.append(each)
        for topic in self._internal_topics.missing():
            await operator.create(topic)
        operator.close()

    async def _finish(self, nemesis: Nemesis) -> None:
        await self.workload.stop(feeding=True)
        await sleep_ms(TIMEOUT_MS + SCAN_MS)  # abandoned transactions time out
        await self._drain()
        self.history.deliveries.check_refused(self._share_lives.number)
        await self.workload.stop(feeding=False)
        final = await self._read_all()
        self.history.violations += compare_replicas(self.servers.cluster)
        before = fingerprint(self.servers.cluster)
        self.world.calm = False
        nemesis.note("all brokers are killed and start again")
        await self.servers.restart_all(clean=False)
        after = fingerprint(self.servers.cluster)
        await sleep_ms(5_000)  # time to load all coordinators and to elect leaders
        self.world.calm = True
        for key in sorted(before.keys() | after.keys()):
            if before.get(key) != after.get(key):
                self.history.violate(f"{key} was {before.get(key)}, and is {after.get(key)} after a restart")
        again = await self._read_all()
        for place, log in final.items():
            if list(again[place][: len(log)]) != list(log):
                self.history.violate(f"{place[0]}-{place[1]} holds other records after a restart")
        check(self.history, again)
        await self._check_deliveries(again)
        check_copies(self.history, again, await self._offsets(), SOURCE, TARGET)
        self.history.violations += find_duplicates(self.servers.cluster)
        if COORDINATORS in self.kinds and self._read is not None:
            await validate_on_all_replicas(self.servers, self.world, self._read.positions, self._read.epochs)
        for error in self.servers.tasks.failures:
            self.history.violate(f"a broker's task failed: {error!r}")
        self._hanging.settle(self.history)
        self.committed = again
        self.disks = self.servers.end(clean=True)
        self.servers.tasks.cancel()

    async def _drain(self) -> None:
        """Let the copiers copy the remaining records, until no more arrive for a while, or the limit is reached."""
        copied = -1
        for _ in range(MOST_DRAINS):
            before, copied = copied, self._copied()
            if copied == before:
                return
            await sleep_ms(DRAIN_MS)
        self.history.violate(f"the copiers still copy {MOST_DRAINS * DRAIN_MS} ms after the last record")

    def _copied(self) -> int:
        """Count the records and markers in the copiers' target topic."""
        logs = (self.servers.cluster.partitions[TARGET, index].logs for index in range(self.topics[TARGET]))
        return sum(max(each.log_end_offset for each in replicas.values()) for replicas in logs)

    async def _check_deliveries(self, final: Mapping[Place, Log]) -> None:
        """Let a last member of the share group fetch the available records, and check all deliveries."""
        if SHARE not in self.kinds:
            return
        auditor = self.workload.share_member("share-auditor", greedy=True)
        await auditor.set_up()
        before, quiet = -1, 0
        for _ in range(MOST_ROUNDS):
            if await auditor.keep():
                await auditor.consume()
            own = self.history.deliveries.given_to(auditor.name)
            quiet, before = (quiet + 1 if own == before else 0), own
            if quiet == QUIET_ROUNDS:
                break
            await sleep_ms(300)  # between two looks: locks of other members end meanwhile
        else:
            self.history.violate(f"{SHARE_GROUP} delivers records without end")
        await auditor.leave()
        auditor.close()
        for topic in self.workload.share_topics:
            for index in range(self.topics[topic]):
                self.history.deliveries.check(
                    SHARE_GROUP, (topic, index), final[topic, index], auditor.name,
                    committed=self.workload.isolation == ISOLATION[0],
                )  # fmt: skip

    async def _offsets(self) -> dict[Place, int]:
        """Return the offsets that the copiers have committed."""
        client = Client(self.world, "auditor")
        member = Member(client, COPIERS, [SOURCE])
        member.assigned = frozenset((SOURCE, index) for index in range(self.topics[SOURCE]))
        await member.load_positions()
        client.close()
        return member.fetcher.positions

    async def _read_all(self) -> dict[Place, Log]:
        """Read all committed records from the beginning; no open transaction may hold any back by then."""
        reader = Client(self.world, "auditor")
        fetcher = Fetcher(reader)
        final: dict[Place, Log] = {}
        for topic, count in sorted(self.topics.items()):
            for index in range(count):
                place = topic, index
                fetcher.positions[place] = 0
                records: list[tuple[int, bytes]] = []
                while True:
                    position = fetcher.positions[place]
                    records += await fetcher.fetch(place)
                    if fetcher.positions[place] == position:
                        break
                leader = self.servers.cluster.partitions[place].led_by(await reader.leader(place))
                if leader.log_end_offset != position:
                    self.history.violate(
                        f"{topic}-{index} is readable up to {position} of {leader.log_end_offset}: a transaction hangs"
                    )
                final[place] = records
                await fetcher.validate(place)
                await fetcher.validate_epochs(place, read_to_the_end=True)
        self._read = fetcher
        reader.close()
        return final


def kinds_of(seed: int) -> frozenset[str]:
    """Return the optional kinds that a seed determines."""
    chance = Random(f"{seed} kinds")  # noqa: S311 - replayed from the seed
    # Four of the ten on average: they meet each other, and each is missing in most runs, which keeps stories readable.
    return frozenset(kind for kind in KINDS if chance.random() < 0.4)


def run(
    seed: int,
    minutes: float = 0.5,  # arbitrary: time for some faults, and a trace that can be read
    only: Collection[int] | None = None,
    kinds: Collection[str] | None = None,
    data_dir: Path | None = None,
) -> Result:
    """Run one seed."""
    return Run(seed, minutes, only, kinds, data_dir).result()
