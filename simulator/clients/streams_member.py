"""Members of streams groups (KIP-1071): they own tasks, and all have the same topology.

Each subtopology has one source topic, so that an active task is one partition of it; the member that has the task
reads that partition and commits its offsets. The first subtopology has a store, so that its tasks may also be standby
tasks.
"""

from collections.abc import Collection, Sequence
from typing import Any

from protocol.apis import ApiKey
from protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from simulator.clients.consumer import REBALANCE_TIMEOUT_MS
from simulator.clients.consumer_member import ConsumerMember, Subscription
from simulator.history import Place

STREAMS_GROUP = "streams"
_STORE = f"{STREAMS_GROUP}-store-changelog"
_STANDBY = "standby of "
_NEVER = {0: "STALE_TOPOLOGY", 1: "MISSING_SOURCE_TOPICS", 2: "INCORRECTLY_PARTITIONED_TOPICS", 4: "SHUTDOWN"}
"""Statuses that no member may get: all have one topology, its source topics exist, and none requests a shutdown."""


class StreamsMember(ConsumerMember):
    """A member with one subtopology per topic in ``sources``. ``process`` is the id of its process."""

    def __init__(
        self, *arguments: Any, sources: Sequence[str], process: str, standbys: int, instance: str | None
    ) -> None:
        everything = [Subscription(sources)]
        super().__init__(*arguments, group=STREAMS_GROUP, choices=everything, instance=instance)
        self._sources, self._process, self._standbys = list(sources), process, standbys
        self._ids = {topic: f"of-{topic}" for topic in sources}
        self._topics = {own: topic for topic, own in self._ids.items()}
        self._standby: frozenset[Place] = frozenset()

    async def _keep(self) -> bool:
        """Keep the membership; join again if a lost response may have had tasks, once the faults are over."""
        if self._missed_ms is not None and self.world.over and self.epoch > 0:
            self.note("   drops its tasks, and joins again")
            self._forget()
        return await super()._keep()

    def _timed_since(self, sent_ms: int) -> int:
        """Return the time of a lost response until tasks are listed, which happens when they change or a member joins.

        Kafka does not repeat a lost list, so that no response can rule a revocation out.
        """
        return sent_ms if self._missed_ms is None else self._missed_ms

    def _held(self) -> frozenset[Place]:
        return self.owned | {(_STANDBY + topic, index) for topic, index in self._standby}

    def _forget(self) -> None:
        super()._forget()
        self._standby = frozenset()

    async def _send_heartbeat(self) -> StreamsGroupHeartbeatResponse:
        request = StreamsGroupHeartbeatRequest(
            self.group, self.name, self.epoch, instance_id=self.instance,
            active_tasks=None, standby_tasks=None, warmup_tasks=None, client_tags=None, task_offsets=None,
            task_end_offsets=None,
        )  # fmt: skip
        if self.epoch == 0:
            request.topology = self._topology()
            request.process_id, request.client_tags = self._process, []
            request.rebalance_timeout_ms = REBALANCE_TIMEOUT_MS
        if self._reported != self._held() or self.epoch == 0:
            request.active_tasks, request.standby_tasks = self._tasks(self.owned), self._tasks(self._standby)
            request.warmup_tasks = []
        answer: StreamsGroupHeartbeatResponse = await self._ask(
            ApiKey.STREAMS_GROUP_HEARTBEAT, 0, request, f"epoch {self.epoch}", once=True
        )
        return answer

    async def _send_leave(self, epoch: int) -> None:
        request = StreamsGroupHeartbeatRequest(
            self.group, self.name, epoch, instance_id=self.instance,
            active_tasks=None, standby_tasks=None, warmup_tasks=None, client_tags=None, task_offsets=None,
            task_end_offsets=None,
        )  # fmt: skip
        await self._ask(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, request, "leaves")

    def _topology(self) -> Topology:
        stores = {self._sources[0]: [TopicInfo(_STORE)]}
        return Topology(
            0,
            [
                Subtopology(self._ids[topic], [topic], state_changelog_topics=stores.get(topic, []))
                for topic in self._sources
            ],
        )

    def _tasks(self, places: Collection[Place]) -> list[TaskIds]:
        topics = sorted({topic for topic, _ in places})
        return [TaskIds(self._ids[name], sorted(p for t, p in places if t == name)) for name in topics]

    def _places(self, tasks: Sequence[TaskIds] | None) -> list[Place]:
        return [(self._topics[each.subtopology_id], index) for each in tasks or () for index in each.partitions]

    async def _assigned(self, answer: StreamsGroupHeartbeatResponse) -> frozenset[Place] | None:
        for each in answer.status or ():
            if each.status_code in _NEVER:
                self.history.violate(f"{self.name}: a member of {self.group} got the status {_NEVER[each.status_code]}")
        lists = answer.active_tasks, answer.standby_tasks, answer.warmup_tasks
        if lists == (None, None, None):
            return None
        if None in lists:
            self.history.violate(f"{self.name}: some lists of tasks are null, others are not")
        self._missed_ms = None
        active, standby, warmup = (self._places(each) for each in lists)
        self._check(active, standby, warmup)
        self._standby = frozenset(standby)
        await self.topic_names(self._sources)  # commits name topics by their ids
        return frozenset(active)

    def _check(self, active: Sequence[Place], standby: Sequence[Place], warmup: Sequence[Place]) -> None:
        """Check that no task is listed twice, all exist, and standby tasks have a store and are configured."""
        everything, counts = [*active, *standby, *warmup], self.world.topics
        if len({*everything}) < len(everything):
            self.history.violate(f"{self.name} has a task twice: {active}, {standby}, {warmup}")
        for topic, index in everything:
            if not 0 <= index < counts[topic]:
                self.history.violate(f"{self.name} has the task {self._ids[topic]} {index}, which does not exist")
        kept = [each for each in standby if each[0] == self._sources[0]]
        if warmup or len(kept) < len(standby) or (standby and not self._standbys):
            self.history.violate(
                f"{self.name} has standby or warm-up tasks that are not configured: {standby}, {warmup}"
            )
