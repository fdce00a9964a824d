"""Validation of a ConsumerGroupHeartbeat, independent of the group (groups C.2.5 to C.2.11)."""

from collections.abc import Sequence
from functools import partial

from broker.coordination.group.modern.epochs import JOINING, LEAVING, LEAVING_STATIC
from broker.coordination.group.modern.validation import check_not_blank, require
from broker.coordination.group.rules import CONSUMER_VALIDATION
from broker.coordination.reasons import Refusal
from protocol.errors import ErrorCode
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

_require = partial(require, CONSUMER_VALIDATION)


def check(request: ConsumerGroupHeartbeatRequest, assignors: Sequence[str], *, makes_own_id: bool) -> None:
    """Raise KafkaError, INVALID_REQUEST or UNSUPPORTED_ASSIGNOR, with Kafka's message.

    ``makes_own_id``: whether clients generate member ids in the request's version.
    """
    epoch = request.member_epoch
    # A client that does not make its own id gets it with the first response, so its join has none. Kafka does not check
    # the id of a static member that leaves for a while (-2) either.
    if makes_own_id or epoch > JOINING or epoch == LEAVING:
        check_not_blank(CONSUMER_VALIDATION, {"MemberId": request.member_id})
    check_not_blank(
        CONSUMER_VALIDATION,
        {"GroupId": request.group_id, "InstanceId": request.instance_id, "RackId": request.rack_id},
    )
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
