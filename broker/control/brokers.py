"""Verbs that make brokers die, stop, hang and come back."""

from typing import TYPE_CHECKING, Any

from broker.control.asked import Asked
from broker.control.problems import conflict, unprocessable
from broker.endpoints import EndpointError, PortTaken
from broker.lifecycle import WrongState
from broker.node import Node

if TYPE_CHECKING:
    from broker.cluster import Cluster


MOST_ID = 1000
"""As many brokers as ``--brokers`` takes."""
ADD: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 1, "maximum": MOST_ID, "description": "by default the next one"},
        "rack": {"type": "string"},
        "port": {"type": "integer", "minimum": 0, "maximum": 65535, "description": "of its first listener; 0: any"},
    },
    "additionalProperties": False,
}


def state_of(node: Node) -> str:
    """``running``, ``paused`` or ``down``."""
    paused = node.server is not None and node.server.paused
    return "paused" if node.up and paused else "running" if node.up else "down"


def _state(node: Node) -> dict[str, Any]:
    return {"id": node.id, "state": state_of(node)}


def told(cluster: "Cluster", node: Node) -> dict[str, Any]:
    """A broker: where clients find it, and whether it is there."""
    registration = cluster.image.brokers.get(node.id)
    endpoint, port = next(iter(node.bound.values()))
    return {
        "id": node.id,
        "host": endpoint.told_host,
        "port": endpoint.told_port(port),
        "rack": node.rack,
        "up": node.up,
        "state": state_of(node),
        "fenced": registration is None or registration.fenced,
        "epoch": node.epoch,
    }


async def add(asked: Asked) -> dict[str, Any]:
    """Add a broker to the cluster, empty; partitions come to it when they are made or moved there."""
    asked.only("id", "rack", "port")
    broker_id = asked.integer("id", least=1) if "id" in asked.body else None
    port = asked.integer("port") if "port" in asked.body else None
    rack = asked.body.get("rack")
    if not isinstance(rack, str | None):
        raise unprocessable(f"'rack' must be a text, not {rack!r}", "rack")
    for name, value, most in (("id", broker_id, MOST_ID), ("port", port, 65535)):
        if value is not None and value > most:
            raise unprocessable(f"{name!r} must be at most {most}, not {value}", name)
    try:
        node = await asked.cluster.lifecycle.add(broker_id, rack=rack, port=port)
    except (WrongState, PortTaken, EndpointError) as error:
        raise conflict(str(error)) from error
    return told(asked.cluster, node)


async def remove(asked: Asked) -> dict[str, Any]:
    """Remove a broker: it stops in good order, leaders move, and the cluster forgets it; its replicas stay listed."""
    node = asked.node()
    try:
        asked.cluster.lifecycle.remove(node)
    except WrongState as error:
        raise conflict(str(error)) from error
    return {"id": node.id, "state": "removed"}


async def kill(asked: Asked) -> dict[str, Any]:
    """Kill a broker: connections are reset, memory is lost, its log is recovered when it starts again."""
    asked.only()
    node = asked.node()
    try:
        asked.cluster.lifecycle.kill(node)
    except WrongState as error:
        raise conflict(str(error)) from error
    return _state(node)


async def stop(asked: Asked) -> dict[str, Any]:
    """Stop a broker in good order: its leaders move to other replicas first."""
    asked.only()
    node = asked.node()
    try:
        asked.cluster.lifecycle.stop(node)
    except WrongState as error:
        raise conflict(str(error)) from error
    return _state(node)


async def start(asked: Asked) -> dict[str, Any]:
    """Start a broker that was killed or stopped, on the ports that it had."""
    asked.only()
    node = asked.node()
    try:
        await asked.cluster.lifecycle.start(node)
    except (WrongState, PortTaken) as error:
        raise conflict(str(error)) from error
    return _state(node)


async def pause(asked: Asked) -> dict[str, Any]:
    """Make a broker hang: it accepts connections and reads nothing more."""
    asked.only()
    node = asked.node()
    try:
        asked.cluster.lifecycle.pause(node)
    except WrongState as error:
        raise conflict(str(error)) from error
    return _state(node)


async def resume(asked: Asked) -> dict[str, Any]:
    """Let a broker that hangs go on."""
    asked.only()
    node = asked.node()
    try:
        asked.cluster.lifecycle.resume(node)
    except WrongState as error:
        raise conflict(str(error)) from error
    return _state(node)
