"""Convert older shapes of a message to the newest one, and back.

A few APIs moved fields between versions: one key became many, a member became a list. Handlers see only the newest
shape; the fields of older versions stay in the message classes for the wire and are filled here.
"""

from collections.abc import Callable
from typing import Any

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResult, AddPartitionsToTxnTransaction
from protocol.messages.delete_topics import DeleteTopicState
from protocol.messages.fetch import ReplicaState
from protocol.messages.find_coordinator import Coordinator
from protocol.messages.leave_group import MemberIdentity, MemberResponse
from protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

Reshape = Callable[[int, Any], None]
"""Version, message -> the message has the fields of the other shape too: it is changed in place."""


# --- FindCoordinator: one key -> many (v4, KIP-699) ------------------------------------------------------------------


def _find_coordinator_request_up(version: int, request: Any) -> None:
    if version < 4:
        request.coordinator_keys = (request.key,)


def _find_coordinator_request_down(version: int, request: Any) -> None:
    if version < 4 and request.coordinator_keys:
        request.key = request.coordinator_keys[0]


def _find_coordinator_response_down(version: int, response: Any) -> None:
    if version < 4 and response.coordinators:
        (coordinator,) = response.coordinators
        response.error_code, response.node_id = coordinator.error_code, coordinator.node_id
        response.host, response.port = coordinator.host, coordinator.port
        # core 0.3.2: the message of versions 1 to 3 is "NONE" on success, and the code's text otherwise; null stays
        text = coordinator.error_message
        response.error_message = coordinator.error_code.name if text is not None and not text else text


def _find_coordinator_response_up(version: int, response: Any) -> None:
    if version < 4:
        coordinator = Coordinator(
            "", response.node_id, response.host, response.port, response.error_code, response.error_message
        )
        response.coordinators = (coordinator,)


# --- OffsetFetch: one group -> many (v8, KIP-709) --------------------------------------------------------------------


def _offset_fetch_request_up(version: int, request: Any) -> None:
    if version < 8:
        topics = request.topics
        if topics is not None:
            topics = tuple(OffsetFetchRequestTopics(topic.name, topic.partition_indexes) for topic in topics)
        request.groups = (OffsetFetchRequestGroup(request.group_id, topics),)


def _offset_fetch_request_down(version: int, request: Any) -> None:
    if version < 8 and request.groups:
        (group,) = request.groups
        request.group_id, topics = group.group_id, group.topics
        if topics is not None:
            topics = tuple(OffsetFetchRequestTopic(topic.name, topic.partition_indexes) for topic in topics)
        request.topics = topics


def _offset_fetch_response_down(version: int, response: Any) -> None:
    if version < 8 and response.groups:
        (group,) = response.groups
        response.error_code = group.error_code
        response.topics = tuple(_older_offsets_topic(topic) for topic in group.topics)


def _offset_fetch_response_up(version: int, response: Any) -> None:
    if version < 8:
        topics = tuple(_newest_offsets_topic(topic) for topic in response.topics)
        response.groups = (OffsetFetchResponseGroup("", topics, response.error_code),)


def _older_offsets_topic(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(topic.name, tuple(_older_offset(p) for p in topic.partitions))


def _older_offset(p: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        p.partition_index, p.committed_offset, p.metadata, p.error_code, p.committed_leader_epoch
    )


def _newest_offsets_topic(topic: OffsetFetchResponseTopic) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(topic.name, tuple(_newest_offset(p) for p in topic.partitions))


def _newest_offset(p: OffsetFetchResponsePartition) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        p.partition_index, p.committed_offset, p.committed_leader_epoch, p.metadata, p.error_code
    )


# --- LeaveGroup: one member -> many (v3, KIP-345) --------------------------------------------------------------------


def _leave_group_request_up(version: int, request: Any) -> None:
    if version < 3:
        request.members = (MemberIdentity(request.member_id),)


def _leave_group_request_down(version: int, request: Any) -> None:
    if version < 3 and request.members:
        request.member_id = request.members[0].member_id


def _leave_group_response_down(version: int, response: Any) -> None:
    if version < 3 and response.members and response.error_code is ErrorCode.NONE:
        response.error_code = response.members[0].error_code


def _leave_group_response_up(version: int, response: Any) -> None:
    if version < 3:
        response.members = (MemberResponse("", None, response.error_code),)


# --- DeleteTopics: names -> names or ids (v6, KIP-516) ---------------------------------------------------------------


def _delete_topics_request_up(version: int, request: Any) -> None:
    if version < 6:
        request.topics = tuple(DeleteTopicState(name) for name in request.topic_names)


def _delete_topics_request_down(version: int, request: Any) -> None:
    if version < 6:
        request.topic_names = tuple(topic.name or "" for topic in request.topics)


# --- AddPartitionsToTxn: one transaction -> many (v4, KIP-890) -------------------------------------------------------


def _add_partitions_request_up(version: int, request: Any) -> None:
    if version < 4:
        transaction = AddPartitionsToTxnTransaction(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            verify_only=False,
            topics=request.v3_and_below_topics,
        )
        request.transactions = (transaction,)


def _add_partitions_request_down(version: int, request: Any) -> None:
    if version < 4 and request.transactions:
        (transaction,) = request.transactions
        request.v3_and_below_transactional_id = transaction.transactional_id
        request.v3_and_below_producer_id = transaction.producer_id
        request.v3_and_below_producer_epoch = transaction.producer_epoch
        request.v3_and_below_topics = transaction.topics


def _add_partitions_response_down(version: int, response: Any) -> None:
    if version < 4 and response.results_by_transaction:
        response.results_by_topic_v3_and_below = response.results_by_transaction[0].topic_results


def _add_partitions_response_up(version: int, response: Any) -> None:
    if version < 4:
        result = AddPartitionsToTxnResult("", response.results_by_topic_v3_and_below)
        response.results_by_transaction = (result,)


# --- the rest --------------------------------------------------------------------------------------------------------


def _metadata_request_up(version: int, request: Any) -> None:
    if version == 0 and not request.topics:
        request.topics = None  # core B.3: v0 has no null; empty means all topics


def _fetch_request_up(version: int, request: Any) -> None:
    if version < 15:  # the replica's id has a struct of its own since (KIP-903)
        request.replica_state = ReplicaState(
            request.replica_id
        )  # a new object: the one that it has is the shared default of all requests


def _join_group_request_up(version: int, request: Any) -> None:
    if version == 0:
        request.rebalance_timeout_ms = request.session_timeout_ms  # groups A.4


NEWEST_REQUEST: dict[int, Reshape] = {
    ApiKey.FETCH: _fetch_request_up,
    ApiKey.METADATA: _metadata_request_up,
    ApiKey.OFFSET_FETCH: _offset_fetch_request_up,
    ApiKey.FIND_COORDINATOR: _find_coordinator_request_up,
    ApiKey.JOIN_GROUP: _join_group_request_up,
    ApiKey.LEAVE_GROUP: _leave_group_request_up,
    ApiKey.DELETE_TOPICS: _delete_topics_request_up,
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions_request_up,
}
"""For requests that were read in an older version."""
OLDER_REQUEST: dict[int, Reshape] = {
    ApiKey.OFFSET_FETCH: _offset_fetch_request_down,
    ApiKey.FIND_COORDINATOR: _find_coordinator_request_down,
    ApiKey.LEAVE_GROUP: _leave_group_request_down,
    ApiKey.DELETE_TOPICS: _delete_topics_request_down,
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions_request_down,
}
"""For requests that one of our clients is about to write."""
NEWEST_RESPONSE: dict[int, Reshape] = {
    ApiKey.OFFSET_FETCH: _offset_fetch_response_up,
    ApiKey.FIND_COORDINATOR: _find_coordinator_response_up,
    ApiKey.LEAVE_GROUP: _leave_group_response_up,
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions_response_up,
}
"""For responses that one of our clients has read."""
OLDER_RESPONSE: dict[int, Reshape] = {
    ApiKey.OFFSET_FETCH: _offset_fetch_response_down,
    ApiKey.FIND_COORDINATOR: _find_coordinator_response_down,
    ApiKey.LEAVE_GROUP: _leave_group_response_down,
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions_response_down,
}
"""For responses that are about to be written."""
