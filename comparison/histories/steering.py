"""Brokers that stop, are killed or are paused while requests wait; afterwards the cluster is as it was before.

Kafka's coordinators are where the hash of a name and the leaders of the internal topics put them. So a script chooses
names that one broker coordinates, and may move their coordinator to another broker.
"""

from collections.abc import Callable, Mapping

from comparison.histories.multi_broker import wait_in_sync
from comparison.histories.quiescence import (
    SET,
    TOPIC,
    Restless,
    coordinator,
    deadline_for,
    partitions_of,
    wait_metadata,
    wait_reassigned,
    wait_restarted,
)
from comparison.histories.replicas import wait_replicated
from comparison.histories.step_request import PATIENCE_MS, Step
from comparison.target import Target
from comparison.values import OFFSETS, TRANSACTIONS
from protocol.apis import ApiKey
from protocol.java import absolute_hash
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

AWAY = {"pause": True, "resume": False, "stop": True, "kill": True, "start": False}
"""Step at a broker -> whether the broker then gives no response; for clusters that have `Target.steer`."""
ENDS = {"stop", "kill"}
LASTING = {*ENDS, "missed", "move_coordinator", "controllers"}
"""Steps after which brokers have to come back, and coordinators to return."""
GROUPS, TRANSACTIONAL_IDS = 0, 1
INTERNAL = {GROUPS: OFFSETS, TRANSACTIONAL_IDS: TRANSACTIONS}
_PREFIXES = 10_000
"""How many prefixes are tried: of three brokers, one in 81 has four names where they are wanted. Ours."""
_MOST_IDS = 3_000
"""A broker has a block of a thousand producer ids, and asks for the next one when a tenth is left: one more is ours."""


def steer(target: Target, do: str, broker: int) -> None:
    """Do that to a broker. One that was started is in sync afterwards."""
    if target.steer is None:
        return
    target.steer(do, broker)
    (target.away.add if AWAY[do] else target.away.discard)(broker)
    if do in ENDS:
        target.ended.add(broker)
        if aside := target.connections.pop(f"aside@{broker}", None):
            aside.close()
    elif do == "start":
        target.ended.discard(broker)
        wait_in_sync(target)


def wait_missed(target: Target, broker: int) -> None:
    """Wait until no broker that responds lists this one: the controller has fenced it, and each has applied that."""
    deadline = deadline_for(f"broker {broker} is missed")
    for other in target.present:
        while broker in _listed(target, other):
            deadline.check()
    wait_metadata(target)


def _listed(target: Target, broker: int) -> set[int]:
    brokers = target.call(ApiKey.DESCRIBE_CLUSTER, 0, DescribeClusterRequest(), broker).brokers
    return {each.broker_id for each in brokers}


# --- controllers -----------------------------------------------------------------------------------------------------


def steer_controllers(target: Target, how: str, which: str) -> None:
    """Pause, resume, stop, kill or start controllers; from then on nothing waits for their changes of metadata."""
    target.leaderless = True
    if target.steer_controllers is not None:
        target.steer_controllers(how, which)


def wait_resigned(target: Target) -> None:
    """Wait until no controller is active."""
    if target.steer_controllers is not None:
        target.steer_controllers("resigned", "")


def wait_elected(target: Target) -> None:
    """Wait until a controller is active, and has all that the brokers had to forward.

    A broker forwards one request at a time, so that what it has forwarded last is answered after all others.
    """
    if target.steer_controllers is not None:
        target.steer_controllers("elected", "")
    resource = AlterConfigsResource(TOPIC, target.probe, [AlterableConfig("retention.ms", SET, "1000000")])
    for broker in target.present:
        request = IncrementalAlterConfigsRequest([resource], True)
        target.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request, broker)
    target.leaderless = False
    wait_metadata(target)
    wait_reassigned(target)


def restore_controllers(target: Target) -> None:
    """Let all controllers go on or start, and wait until one is active."""
    if target.steer_controllers is not None:
        target.steer_controllers("restore", "all")
        wait_elected(target)


def exhaust_ids(target: Target, broker: int) -> None:
    """Initialise producers at a broker until it has no ids left."""
    for _ in range(_MOST_IDS):
        if target.call(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(None, 60_000), broker).error_code:
            return


WAITS: Mapping[str, Callable[[Target], None]] = {"elected": wait_elected, "resigned": wait_resigned}
"""Steps that wait for controllers."""


# --- coordinators ----------------------------------------------------------------------------------------------------


def _kind(name: str) -> int:
    """Return the kind of coordinator by the first letter of a symbol: x0 is a transactional id, all others groups."""
    return TRANSACTIONAL_IDS if name.startswith("x") else GROUPS


def choose_names(target: Target, coordinators: Mapping[str, int]) -> None:
    """Choose the prefix of the script's names so that each of these has its coordinator at that broker."""
    prefix = target.names.prefix
    counts = {topic: partitions_of(target, topic) for topic in INTERNAL.values()}
    for number in range(_PREFIXES):
        target.names.prefix = f"{prefix}{number}."
        if all(_placed(target, _index(target, name, counts))[0] == at for name, at in coordinators.items()):
            break
    actual = {name: coordinator(target, target.called(name), _kind(name)) for name in coordinators}
    if actual != coordinators:
        raise Restless(f"the coordinators are {actual}, not {coordinators}")


def _index(target: Target, name: str, counts: Mapping[str, int]) -> int:
    """Return the partition that a name belongs to."""
    return absolute_hash(target.called(name)) % counts[INTERNAL[_kind(name)]]


def move_coordinator(target: Target, step: Step) -> None:
    """Elect another coordinator of a name: `to` becomes the first replica of its partition."""
    topic = INTERNAL[_kind(step["name"])]
    index = _index(target, step["name"], {topic: partitions_of(target, topic)})
    others = [replica for replica in _placed(target, index) if replica != step["to"]]
    _place(target, topic, index, [step["to"], *others])
    wait_metadata(target)


def _placed(target: Target, index: int) -> list[int]:
    """Return the replicas that `assign_internal_topics` gives a partition."""
    brokers = list(range(1, len(target.brokers) + 1))
    start = index % len(brokers)
    return brokers[start:] + brokers[:start]


def _place(target: Target, topic: str, index: int, replicas: list[int]) -> None:
    reassigned = ReassignableTopic(topic, [ReassignablePartition(index, replicas)])
    request = AlterPartitionReassignmentsRequest(PATIENCE_MS, topics=[reassigned])
    target.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, request)
    election = ElectLeadersRequest([TopicPartitions(topic, [index])], PATIENCE_MS, 0)
    target.call(ApiKey.ELECT_LEADERS, 2, election)


# --- as before -------------------------------------------------------------------------------------------------------


def bring_back(target: Target) -> None:
    """Let all brokers go on or start, and wait until each is in sync and has all records."""
    for broker in sorted(target.away, key=lambda each: each in target.ended):  # one that starts waits for the others
        steer(target, "start" if broker in target.ended else "resume", broker)
    wait_in_sync(target)
    wait_replicated(target, internal=True)


def restore_coordinators(target: Target) -> None:
    """Bring the coordinators back to where `assign_internal_topics` put them, and wait until they are loaded."""
    for topic in INTERNAL.values():
        request = MetadataRequest([MetadataRequestTopic(topic)], False)
        for part in target.call(ApiKey.METADATA, 12, request).topics[0].partitions:
            placed = _placed(target, part.partition_index)
            if part.leader_id != placed[0] or list(part.replica_nodes) != placed:
                _place(target, topic, part.partition_index, placed)
    wait_restarted(target)
