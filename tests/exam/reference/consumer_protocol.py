"""The reference consumer as a member of a group of the consumer protocol (KIP-848): one heartbeat does everything."""

import time
import uuid
from typing import Any

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tests.exam.reference.consumer import DEADLINE_S, GROUP, Place, ReferenceConsumer
from tests.exam.reference.network import Lost, Refused, first_error

JOINS, LEAVES, LEAVES_FOR_A_WHILE = 0, -1, -2
OUT = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})


class ProtocolConsumer(ReferenceConsumer):
    """A consumer."""

    epoch = JOINS
    is_member = False

    def _keep_membership(self) -> bool:
        if not self.topics or time.monotonic() < self.next_heartbeat:
            return True
        self.next_heartbeat = time.monotonic() + self.options["heartbeat_interval_ms"] / 1000
        self.member_id = self.member_id or str(uuid.uuid4())
        answer = self._heartbeat(self.epoch)
        code = answer.error_code
        if code in OUT and "never-joins-again" not in self.mutations:
            self.stopped = "stops-when-removed" in self.mutations
            self.positions, self.epoch, self.next_heartbeat = {}, JOINS, 0.0
            self._discard(lambda _place: True)
        elif code is not ErrorCode.NONE:
            self.stopped = True
            raise Refused("fatal", code, code.name)
        else:
            self.epoch, self.is_member = answer.member_epoch, True
            if answer.assignment is not None:
                self._take({(name, p) for name, p in self._places(answer.assignment.topic_partitions)})
        return True

    def _heartbeat(self, epoch: int) -> Any:
        owned = [TopicPartitions(self._id(t), [p for name, p in self.positions if name == t])
                 for t in sorted({name for name, _ in self.positions})]  # fmt: skip
        request = ConsumerGroupHeartbeatRequest(
            self.options["group"], self.member_id, epoch, self._instance(), rebalance_timeout_ms=5_000,
            topic_partitions=owned, subscribed_topic_names=self.topics,
        )  # fmt: skip
        return self._ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)

    def _id(self, name: str) -> Any:
        """The id of a topic."""
        deadline = time.monotonic() + DEADLINE_S
        answer = self.network.ask_any(ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic(name)]), deadline)
        return answer.topics[0].topic_id

    def _places(self, assigned: Any) -> list[Place]:
        names = {self._id(name): name for name in self.topics}
        if "everybody-gets-everything" in self.mutations:
            return [("many", each) for each in range(3)]
        return [(names[each.topic_id], p) for each in assigned for p in each.partitions if each.topic_id in names]

    def _take(self, places: set[Place]) -> None:
        """Give up what is not assigned any more; begin the rest at its committed offsets."""
        if "ignores-revocation" not in self.mutations:
            self.positions = {place: offset for place, offset in self.positions.items() if place in places}
            self._discard(lambda place: place not in places)
        added = sorted(places - self.positions.keys())
        names = sorted({name for name, _ in added})
        topics = [OffsetFetchRequestTopics(each, [p for name, p in added if name == each]) for each in names]
        if not added:
            return
        group = OffsetFetchRequestGroup(self.options["group"], topics, self.member_id, self.epoch)
        response = self._ask(ApiKey.OFFSET_FETCH, 9, OffsetFetchRequest(groups=[group], require_stable=True))
        code = first_error(response)
        if code is ErrorCode.STALE_MEMBER_EPOCH:
            self.next_heartbeat = 0.0  # whose answer has the newest epoch, and the assignment again
            return
        if code is not ErrorCode.NONE:
            raise Refused("other", code, code.name)
        committed = {
            (topic.name, each.partition_index): each.committed_offset
            for group in response.groups
            for topic in group.topics
            for each in topic.partitions
        }
        for place in added:
            self._start(place, committed.get(place, -1))

    def commit(self) -> None:
        """Commit the positions with the member's epoch. Raises Refused."""
        if self.epoch == JOINS:
            raise Refused("retriable", ErrorCode.REBALANCE_IN_PROGRESS, "the member has not joined")
        topics = [
            OffsetCommitRequestTopic(name, [OffsetCommitRequestPartition(p, offset)])
            for (name, p), offset in self.positions.items()
        ]
        request = OffsetCommitRequest(self.options["group"], self.epoch, self.member_id, -1, topics)
        if "commits-once" in self.mutations:
            address = self.network.coordinator(GROUP, self.options["group"], time.monotonic() + DEADLINE_S)
            self.network.ask(address, ApiKey.OFFSET_COMMIT, 9, request)
            return
        deadline = time.monotonic() + DEADLINE_S
        while True:
            answer = self._ask(ApiKey.OFFSET_COMMIT, 9, request)
            codes = {each.error_code for topic in answer.topics for each in topic.partitions}
            if ErrorCode.STALE_MEMBER_EPOCH in codes:
                self.next_heartbeat = 0.0
                self._keep_membership()
                self.network.pause(deadline)
                request.generation_id_or_member_epoch = self.epoch
                continue
            for code in codes - {ErrorCode.NONE}:
                raise Refused("other", code, code.name)
            return

    def close(self) -> None:
        """Leave the group."""
        if self.is_member and "closes-without-leaving" not in self.mutations:
            try:
                self._heartbeat(LEAVES if self._instance() is None else LEAVES_FOR_A_WHILE)
            except (Lost, Refused):
                self.next_heartbeat = 0.0  # the session will end by itself
        self.network.close()
