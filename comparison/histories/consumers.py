"""Steps of consumer groups (KIP-848): heartbeats of members that choose their own ids, and descriptions."""

from collections.abc import Sequence
from typing import Any

from comparison.histories.step_request import Builder, Settle, Step, StepRequest
from comparison.target import Consumer, Target
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions

JOINING = 0
REBALANCE_MS = 120_000  # ours: no member may be removed while a history waits


def _owned(target: Target, consumer: Consumer, owned: str | None) -> Sequence[TopicPartitions] | None:
    """Return the partitions that the member reports: its last assignment, none, too many, or null."""
    if owned is None:
        return None
    parts = {topic: list(each) for topic, each in consumer.assigned.items()} if owned != "none" else {}
    if owned == "more":
        topic = next(iter(target.topics.values()), None)
        if topic is not None:
            parts.setdefault(topic, []).append(0)
    return [TopicPartitions(topic, each) for topic, each in parts.items()]


def beat(target: Target, step: Step) -> StepRequest:
    """ConsumerGroupHeartbeat: `epoch` is a number, or "own", the last one that the member got."""
    consumer = target.consumers.setdefault(step["member"], Consumer())
    epoch = consumer.epoch if step["epoch"] == "own" else step["epoch"]
    topics, regex = step.get("topics"), step.get("regex")
    request = ConsumerGroupHeartbeatRequest(
        group_id=target.called(step["group"]),
        member_id=step["member"],
        member_epoch=epoch + step.get("epoch_shift", 0),
        instance_id=step.get("instance"),
        rack_id=step.get("rack"),
        rebalance_timeout_ms=REBALANCE_MS if epoch == JOINING else -1,
        subscribed_topic_names=None if topics is None else [target.called(topic) for topic in topics],
        server_assignor=step.get("assignor"),
        topic_partitions=_owned(target, consumer, "none" if epoch == JOINING else step.get("owned")),
        subscribed_topic_regex=None if regex is None else regex.replace("^", target.names.prefix),
    )

    def after(answer: Any) -> None:
        if answer.error_code is ErrorCode.NONE:
            consumer.epoch = answer.member_epoch
            if answer.assignment is not None:
                topics = answer.assignment.topic_partitions
                consumer.assigned = {topic.topic_id: list(topic.partitions) for topic in topics}
        elif answer.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            consumer.epoch, consumer.assigned = JOINING, {}

    key = ApiKey.CONSUMER_GROUP_HEARTBEAT
    return StepRequest(key, step["v"], request, step["c"], after, Settle.CONSUMERS, step["group"])


def describe(target: Target, step: Step) -> StepRequest:
    """ConsumerGroupDescribe of groups, perhaps with duplicates."""
    request = ConsumerGroupDescribeRequest([target.called(group) for group in step["groups"]])
    return StepRequest(ApiKey.CONSUMER_GROUP_DESCRIBE, step["v"], request, step["c"], reads=True)


STEPS: dict[str, Builder] = {"beat": beat, "describe_consumer_group": describe}
