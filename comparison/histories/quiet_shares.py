"""Waiting until share groups are idle: no state is being initialized or deleted, and all records are released.

Kafka responds to a heartbeat before it has initialized the state of the share partitions, and closes a session before
it has released the member's records; both take only milliseconds.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from comparison.histories.end_state import Ends, answers_of_shares, coordinators_log, state_requests
from comparison.histories.quiescence import deadline_for
from comparison.target import Target
from comparison.values import OFFSETS, plain
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.java import absolute_hash
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from protocol.messages.read_share_group_state import ReadShareGroupStateRequest
from protocol.messages.share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from protocol.messages.share_group_describe import ShareGroupDescribeRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

ALIKE_WITHIN_S, DEAD_WITHIN_S = 0.6, 6.0
"""Timeouts in seconds, ours; a dead-letter queue, whose topic has to be created, takes longer."""
ARCHIVING = 3  # the state of a record on its way to that queue (RecordState)
WITHIN_S = 5.0  # ours: Kafka's persister tries again after 1 s, and after 2
WARM_GROUPS = 6
"""Number of groups that is enough to reach every partition of the share coordinator's topic."""
STATE_PARTITIONS = "STATE_PARTITIONS"


def wait_shares(targets: Sequence[Target], since: Ends, group: str) -> None:
    """Wait until a group's state is equal on all clusters, and not changing.

    After the timeout it returns: a permanent difference shows in the next responses.
    """
    until = time.monotonic() + ALIKE_WITHIN_S
    until_dead = time.monotonic() + DEAD_WITHIN_S
    before: str | None = None
    reads = [state_requests(target) for target in targets]
    dying = False
    while time.monotonic() < (until_dead if dying else until):
        views = [_view(target, read, since, group) for target, read in zip(targets, reads, strict=True)]
        dying = any(f"'delivery_state': {ARCHIVING}," in view for view, _ in views)
        quiet = not dying and not any(moving for _, moving in views)
        seen = {view for view, _ in views}
        if quiet and len(seen) == 1 and before in seen:
            return
        before = views[0][0]
        time.sleep(0.004)  # as what is waited for takes some milliseconds


def wait_initialized(target: Target, since: Ends, group: str) -> None:
    """Wait until no state of a group on one cluster is being initialized or deleted, or a timeout is over."""
    until = time.monotonic() + WITHIN_S
    while _moving(target, since, target.called(group)) and time.monotonic() < until:
        time.sleep(0.02)  # short beside WITHIN_S


def _view(target: Target, read: Mapping[str, ReadShareGroupStateRequest], since: Ends, group: str) -> tuple[str, bool]:
    name = target.called(group)
    described = target.call(ApiKey.SHARE_GROUP_DESCRIBE, 1, ShareGroupDescribeRequest([name])).groups[0]
    members = sorted((member.member_id, member.member_epoch) for member in described.members)
    seen = (described.error_code, described.group_state, described.group_epoch, described.assignment_epoch, members)
    symbols = {topic_id: symbol for symbol, topic_id in target.topics.items()}
    states = {
        (group, symbols[topic.topic_id]): [
            (part.partition, part.start_offset, plain(part.state_batches)) for part in topic.partitions
        ]
        for group, answer in answers_of_shares(target, read).items()
        for topic in answer.results
    }
    return str((seen, states)), _moving(target, since, name)


def _moving(target: Target, since: Ends, name: str) -> bool:
    """Whether by the group's last state record a topic is being initialized or deleted."""
    last: dict[str, Any] | None = None
    partitions = [partition for address, topic, partition in since if topic == OFFSETS and address == target.address]
    for partition in partitions:
        if partition == absolute_hash(name) % len(partitions):
            for record in coordinators_log(target, since, OFFSETS, partition):
                about = record.get("is")
                if isinstance(about, dict) and (about.get("kind"), about.get("group_id")) == (STATE_PARTITIONS, name):
                    last = about["value"]
    return last is not None and bool(last["initializing"] or last["deleting"])


def warm_shares(target: Target) -> None:
    """Wait until the share coordinator is available: Kafka creates its topic for the first share group."""
    deadline = deadline_for("the share coordinator loads")
    topics = target.call(ApiKey.METADATA, 12, MetadataRequest([MetadataRequestTopic(target.probe)], False)).topics
    topic_id = topics[0].topic_id
    for number in range(WARM_GROUPS):
        group = f"warm-{target.probe}-{number}"
        target.call(ApiKey.SHARE_GROUP_HEARTBEAT, 1, ShareGroupHeartbeatRequest(group, "W", 0, None, [target.probe]))
        while True:
            fetch = ShareFetchRequest(group, "W", 0, 100, 1, 1000, 1, 1, [FetchTopic(topic_id, [FetchPartition(0)])])
            answer = target.call(ApiKey.SHARE_FETCH, 1, fetch)
            if answer.error_code is ErrorCode.NONE and any(
                part.error_code is ErrorCode.NONE for topic in answer.responses for part in topic.partitions
            ):
                break
            deadline.check()
    target.close()
