"""Steps that clients hardly ever send: share state, as brokers keep it for each other; the quorum; log directories."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from comparison.histories.step_request import Builder, Settle, Step, StepRequest
from comparison.target import Target
from protocol.apis import ApiKey
from protocol.messages import delete_share_group_state as deleted
from protocol.messages import initialize_share_group_state as initialized
from protocol.messages import read_share_group_state as read
from protocol.messages import read_share_group_state_summary as summary
from protocol.messages import write_share_group_state as written
from protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from protocol.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from protocol.messages.sasl_handshake import SaslHandshakeRequest
from protocol.messages.unregister_broker import UnregisterBrokerRequest
from protocol.messages.unregister_controller import UnregisterControllerRequest

NO_DIRECTORY = UUID(int=77)  # any that no node has
CLUSTER_IN_TEXT = re.compile(r'match the cluster id "[^"]+"')
Place = Mapping[str, Any]


def _initialize(group: str, topic_id: UUID, place: Place) -> tuple[ApiKey, Any]:
    part = initialized.PartitionData(place["partition"], place["state_epoch"], place["start"])
    topics = [initialized.InitializeStateData(topic_id, [part])]
    return ApiKey.INITIALIZE_SHARE_GROUP_STATE, initialized.InitializeShareGroupStateRequest(group, topics)


def _write(group: str, topic_id: UUID, place: Place) -> tuple[ApiKey, Any]:
    epochs = place["state_epoch"], place["leader_epoch"]
    batches = [written.StateBatch(*batch) for batch in place["batches"]]
    part = written.PartitionData(place["partition"], *epochs, place["start"], batches, place["complete"])
    topics = [written.WriteStateData(topic_id, [part])]
    return ApiKey.WRITE_SHARE_GROUP_STATE, written.WriteShareGroupStateRequest(group, topics)


def _read(group: str, topic_id: UUID, place: Place) -> tuple[ApiKey, Any]:
    topics = [read.ReadStateData(topic_id, [read.PartitionData(place["partition"], place["leader_epoch"])])]
    return ApiKey.READ_SHARE_GROUP_STATE, read.ReadShareGroupStateRequest(group, topics)


def _summarize(group: str, topic_id: UUID, place: Place) -> tuple[ApiKey, Any]:
    part = summary.PartitionData(place["partition"], place["leader_epoch"])
    topics = [summary.ReadStateSummaryData(topic_id, [part])]
    return ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, summary.ReadShareGroupStateSummaryRequest(group, topics)


def _delete(group: str, topic_id: UUID, place: Place) -> tuple[ApiKey, Any]:
    topics = [deleted.DeleteStateData(topic_id, [deleted.PartitionData(place["partition"])])]
    return ApiKey.DELETE_SHARE_GROUP_STATE, deleted.DeleteShareGroupStateRequest(group, topics)


_OF_STATE: Mapping[str, Callable[[str, UUID, Place], tuple[ApiKey, Any]]] = {
    "initialize": _initialize,
    "write": _write,
    "read": _read,
    "summarize": _summarize,
    "delete": _delete,
}


def share_state(target: Target, step: Step) -> StepRequest:
    """Build a request for one share partition's state: `what` is initialize, write, read, summarize or delete."""
    group = target.called(step["group"]) if step["group"] else ""
    key, request = _OF_STATE[step["what"]](group, target.topic_id(step["topic"]), step)
    return StepRequest(key, step["v"], request, step["c"])


def quorum(target: Target, step: Step) -> StepRequest:
    """DescribeQuorum, without the offsets of a log that grows by itself."""
    topics = [TopicData(target.called(topic), [PartitionData(partition)]) for topic, partition in step["places"]]

    def view(answer: Any) -> Any:
        return answer.changed(
            nodes=[node.changed(listeners=[]) for node in answer.nodes],
            topics=[topic.changed(partitions=[_still(part) for part in topic.partitions]) for topic in answer.topics],
        )

    return StepRequest(
        ApiKey.DESCRIBE_QUORUM, step["v"], DescribeQuorumRequest(topics), step["c"], reads=True, view=view
    )


def _still(part: Any) -> Any:
    voters = [
        voter.changed(log_end_offset=0, last_fetch_timestamp=0, last_caught_up_timestamp=0)
        for voter in part.current_voters
    ]
    return part.changed(high_watermark=0, leader_epoch=0, current_voters=voters, observers=[])


def move_log_dirs(target: Target, step: Step) -> StepRequest:
    """AlterReplicaLogDirs to a directory that no broker has."""
    topics = [AlterReplicaLogDirTopic(target.called(topic), [partition]) for topic, partition in step["places"]]
    request = AlterReplicaLogDirsRequest([AlterReplicaLogDir(step["path"], topics)])
    return StepRequest(ApiKey.ALTER_REPLICA_LOG_DIRS, step["v"], request, step["c"])


def topology(_target: Target, step: Step) -> StepRequest:
    """UnregisterBroker, UnregisterController, AddRaftVoter and RemoveRaftVoter of a node that does not exist."""
    node, cluster_id = step["node"], step.get("cluster_id")
    requests: Mapping[str, tuple[ApiKey, Any]] = {
        "broker": (ApiKey.UNREGISTER_BROKER, UnregisterBrokerRequest(node)),
        "controller": (ApiKey.UNREGISTER_CONTROLLER, UnregisterControllerRequest(node)),
        "add_voter": (
            ApiKey.ADD_RAFT_VOTER,
            # Any timeout and port: the node is refused before.
            AddRaftVoterRequest(cluster_id, 1000, node, NO_DIRECTORY, [Listener("CONTROLLER", "localhost", 1)]),
        ),
        "remove_voter": (ApiKey.REMOVE_RAFT_VOTER, RemoveRaftVoterRequest(cluster_id, node, NO_DIRECTORY)),
    }
    key, request = requests[step["what"]]
    return StepRequest(key, step["v"], request, step["c"], settle=Settle.METADATA, view=_of_any_cluster)


def _of_any_cluster(answer: Any) -> Any:
    text = answer.error_message and CLUSTER_IN_TEXT.sub("match the cluster id", answer.error_message)
    return answer.changed(error_message=text)


def handshake(_target: Target, step: Step) -> StepRequest:
    """SaslHandshake on a listener without SASL."""
    request = SaslHandshakeRequest(step["mechanism"])
    return StepRequest(ApiKey.SASL_HANDSHAKE, step["v"], request, step["c"])


def authenticate(_target: Target, step: Step) -> StepRequest:
    """SaslAuthenticate on a listener without SASL."""
    request = SaslAuthenticateRequest(step["text"].encode())
    return StepRequest(ApiKey.SASL_AUTHENTICATE, step["v"], request, step["c"])


STEPS: dict[str, Builder] = {
    "share_state": share_state,
    "quorum": quorum,
    "move_log_dirs": move_log_dirs,
    "topology": topology,
    "handshake": handshake,
    "authenticate": authenticate,
}
