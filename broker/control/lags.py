"""The committed offset and the lag of a group in each partition, as Kafka's tools show them.

* Classic and consumer groups: the partitions that are assigned or have a committed offset
  (``kafka-consumer-groups.sh``). Without a committed offset there is no lag, since the client decides where it starts
  (`auto.offset.reset`).
* Streams groups: the input of active tasks too. Without a committed offset the lag is the whole log, as in
  ``kafka-streams-groups.sh``: an application without offsets starts at the beginning of its input.
* Share groups: the partitions that have a state at the share coordinator; the lag is the number of records up to the
  high watermark whose delivery is not complete (KIP-1226), as in DescribeShareGroupOffsets.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from broker.control.topics import log_of
from broker.coordination.coordinators import SHARE_TOPIC
from broker.coordination.group.classic.group import ClassicGroup
from broker.coordination.group.group import Group
from broker.coordination.group.machine import GroupMachine
from broker.coordination.group.modern.consumer.description import held
from broker.coordination.group.modern.consumer.group import ConsumerGroup
from broker.coordination.group.modern.share.group import ShareGroup
from broker.coordination.group.modern.streams.group import StreamsGroup
from broker.coordination.group.modern.streams.topology import input_topics
from broker.coordination.share_state.persister import UNINITIALIZED_COUNT, UNINITIALIZED_OFFSET, SharePartitionKey
from broker.request.node import partition_for
from control_api.answers.groups import PartitionLag
from protocol.consumer_protocol import read_assignment
from storage.log.partition_log import PartitionLog

if TYPE_CHECKING:
    from broker.cluster.cluster import Cluster
    from broker.coordination.share_state.state import ShareState

Place = tuple[str, int]


def lags(cluster: "Cluster", group: Group, machine: GroupMachine) -> Iterator[PartitionLag]:
    """Yield the lag of each partition of a group, by topic and partition."""
    if isinstance(group, ShareGroup):
        yield from _of_share_group(cluster, group, machine)
        return
    committed = {
        (topic, index): offset.commit.offset
        for topic, partitions in machine.offsets.topics(group.group_id).items()
        for index, offset in partitions.items()
    }
    for place in sorted({*committed, *_assigned(cluster, group)}):
        log = _log(cluster, place)
        offset = committed.get(place)
        begins = offset
        if begins is None and log is not None and isinstance(group, StreamsGroup):
            begins = log.log_start_offset
        yield _lag(place, offset, log, begins)


def _lag(place: Place, offset: int | None, log: PartitionLog | None, done: int | None) -> PartitionLag:
    """Build a lag: end offset minus ``done``, which for share groups is start offset plus complete deliveries."""
    topic, index = place
    end = None if log is None else log.high_watermark
    lag = None if end is None or done is None else max(end - done, 0)
    return PartitionLag(topic=topic, partition=index, offset=offset, end_offset=end, lag=lag)


def _log(cluster: "Cluster", place: Place) -> PartitionLog | None:
    hosted = cluster.partitions.get(place)
    return None if hosted is None else log_of(hosted)


def _assigned(cluster: "Cluster", group: Group) -> Iterator[Place]:
    """Yield the partitions assigned to members, without those that no longer exist."""
    for place in _places(cluster, group):
        if place in cluster.partitions:
            yield place


def _places(cluster: "Cluster", group: Group) -> Iterator[Place]:
    if isinstance(group, ClassicGroup) and group.is_consumer_type:
        for member in group.members.values():
            assignment = read_assignment(bytes(member.assignment))
            yield from () if assignment is None else _each(assignment.partitions.items())
    elif isinstance(group, ConsumerGroup):
        topics = cluster.image.topics_by_id
        for consumer in group.members.values():
            yield from _each((topics[each].name, indexes) for each, indexes in held(consumer).items() if each in topics)
    elif isinstance(group, StreamsGroup) and group.topology is not None:
        subtopologies = group.topology.subtopologies
        for task_owner in group.members.values():
            for name, indexes in task_owner.assigned.active.items():
                if name in subtopologies:
                    yield from _each((topic, indexes) for topic in input_topics(subtopologies[name]))


def _each(indexes_by_topic: Iterable[tuple[str, Iterable[int]]]) -> Iterator[Place]:
    return ((topic, index) for topic, indexes in indexes_by_topic for index in indexes)


def _of_share_group(cluster: "Cluster", group: ShareGroup, machine: GroupMachine) -> Iterator[PartitionLag]:
    names = {topic_id: topic.name for topic_id, topic in cluster.image.topics_by_id.items()}
    keys = [
        SharePartitionKey(str(group.group_id), topic_id, index)
        for topic_id, indexes in machine.shares.initialized_partitions(group.group_id).items()
        for index in indexes
        if topic_id in names
    ]
    for key in sorted(keys, key=lambda each: (names[each.topic_id], each.partition)):
        place = names[key.topic_id], key.partition
        state = _share_state(cluster, key)
        offset = done = None
        if state is not None and state.start_offset != UNINITIALIZED_OFFSET:
            offset = state.start_offset
            if state.delivery_complete_count != UNINITIALIZED_COUNT:
                done = offset + state.delivery_complete_count
        yield _lag(place, offset, _log(cluster, place), done)


def _share_state(cluster: "Cluster", key: SharePartitionKey) -> "ShareState | None":
    """Return the share coordinator's state of a share partition; None without a leader, or without a state."""
    topic = cluster.image.topics.get(SHARE_TOPIC)
    if topic is None:
        return None
    partition = cluster.partitions.get((SHARE_TOPIC, partition_for(key.coordinator_key, len(topic.partitions))))
    node = None if partition is None else cluster.nodes.get(partition.state.leader)
    coordinator = None if node is None or partition is None else node.coordinators.share_states.get(partition.index)
    return None if coordinator is None else coordinator.machine.states.get(key)
