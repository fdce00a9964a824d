"""Validation of a ConsumerGroupHeartbeat, independent of the group (groups C.2.5 to C.2.11)."""

from collections.abc import Sequence

from broker.coordination.group.modern.consumer.member import LEAVING, LEAVING_STATIC
from broker.coordination.group.modern.epochs import JOINING
from broker.coordination.group.rules import CONSUMER_VALIDATION
from broker.coordination.reasons import Refusal
from broker.settings.values import is_blank
from protocol.errors import ErrorCode
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def check(request: ConsumerGroupHeartbeatRequest, assignors: Sequence[str], *, makes_own_id: bool) -> None:
    """Raise KafkaError, INVALID_REQUEST or UNSUPPORTED_ASSIGNOR, with Kafka's message.

    ``makes_own_id``: whether clients generate member ids in the request's version.
    """
    epoch = request.member_epoch
    _require(not is_blank(request.member_id) or not (makes_own_id or epoch > JOINING or epoch == LEAVING),
             "MemberId can't be empty.")  # fmt: skip
    _require(not is_blank(request.group_id), "GroupId can't be empty.")
    _require(request.instance_id is None or not is_blank(request.instance_id), "InstanceId can't be empty.")
    _require(request.rack_id is None or not is_blank(request.rack_id), "RackId can't be empty.")
    if epoch == JOINING:
        _require(request.rebalance_timeout_ms != -1, "RebalanceTimeoutMs must be provided in first request.")
        empty = request.topic_partitions is not None and not request.topic_partitions
        _require(empty, "TopicPartitions must be empty when (re-)joining.")
        _require(
            request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        )
    elif epoch == LEAVING_STATIC:
        _require(request.instance_id is not None, "InstanceId can't be null.")
    _require(epoch >= LEAVING_STATIC, "MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise Refusal(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            *CONSUMER_VALIDATION.row(".11"),
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise Refusal(ErrorCode.INVALID_REQUEST, *CONSUMER_VALIDATION, message)
