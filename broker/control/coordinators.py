"""Who coordinates which group and which transactional id, and verbs that move them."""

from typing import TYPE_CHECKING, Any

from broker.control.asked import Asked
from broker.control.log import lead
from broker.control.problems import unprocessable
from broker.coordination.runtime import Runtime
from broker.node import GROUP_TOPIC, TRANSACTION_TOPIC, Node, partition_for
from broker.partition import ReplicatedPartition

if TYPE_CHECKING:
    from broker.cluster import Cluster

MOVE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "type": {"enum": ["group", "transaction"]},
        "key": {"type": "string", "description": "group id or transactional id"},
        "broker": {"type": "integer", "description": "id of the new coordinator; it may be the old one"},
        "loading_ms": {"type": "integer", "minimum": 0, "default": 0, "description": "by the cluster's clock"},
    },
    "required": ["type", "key", "broker"],
    "additionalProperties": False,
}
_TOPICS = {"group": GROUP_TOPIC, "transaction": TRANSACTION_TOPIC}


def shards(node: Node, topic: str) -> dict[int, Runtime[Any]]:
    """The coordinators of a kind that a broker has, by partition."""
    found: dict[int, Runtime[Any]] = node.group_shards if topic == GROUP_TOPIC else node.transaction_shards
    return found


def runtimes(cluster: "Cluster", topic: str) -> list[tuple[Node, Runtime[Any]]]:
    """All coordinators of a kind, with their brokers."""
    return [(node, runtime) for node in cluster.nodes.values() for runtime in shards(node, topic).values()]


def coordinator_of(cluster: "Cluster", topic: str, key: str) -> tuple[Node, Runtime[Any]] | None:
    """Who coordinates a key now, if anybody does."""
    found = partition_of_key(cluster, topic, key)
    if found is None:
        return None
    node = cluster.nodes.get(found.state.leader)
    runtime = None if node is None else shards(node, topic).get(found.index)
    return None if node is None or runtime is None else (node, runtime)


def partition_of_key(cluster: "Cluster", topic: str, key: str) -> ReplicatedPartition | None:
    """The partition of an internal topic that a key belongs to, if the topic is there."""
    known = cluster.image.topics.get(topic)
    return None if known is None else cluster.partitions.get((topic, partition_for(key, len(known.partitions))))


async def move(asked: Asked) -> dict[str, Any]:
    """Give a group or a transactional id another coordinator, which may take its time to load."""
    asked.only("type", "key", "broker", "loading_ms")
    kind, key = asked.body.get("type"), asked.body.get("key")
    if kind not in _TOPICS:
        raise unprocessable(f"'type' is group or transaction, not {kind!r}", "type")
    if not isinstance(key, str) or not key:
        raise unprocessable(f"'key' must be a group id or a transactional id, not {key!r}", "key")
    broker, loading_ms = asked.integer("broker", least=1), asked.integer("loading_ms", 0)
    cluster, topic = asked.cluster, _TOPICS[kind]
    if topic not in cluster.image.topics:
        await cluster.metadata.ask(lambda machine, _now_ms, to: machine.create_internal_topic(topic, to))
    found = partition_of_key(cluster, topic, key)
    assert found is not None
    cluster.hosting.loading_ms = loading_ms
    try:
        if found.state.leader == broker:
            cluster.hosting.reload(found)
        else:
            await lead(asked, found, broker)
    finally:
        cluster.hosting.loading_ms = 0
    return {"type": kind, "key": key, "broker": found.state.leader, "partition": found.index, "loading_ms": loading_ms}
