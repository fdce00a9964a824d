"""Verbs that make brokers die, stop, hang and come back."""

from typing import Any

from broker.control.asked import Asked
from broker.control.problems import conflict
from broker.lifecycle import WrongState
from broker.node import Node
from broker.server import PortTaken


def state_of(node: Node) -> str:
    """``running``, ``paused`` or ``down``."""
    paused = node.server is not None and node.server.paused
    return "paused" if node.up and paused else "running" if node.up else "down"


def _state(node: Node) -> dict[str, Any]:
    return {"id": node.id, "state": state_of(node)}


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
