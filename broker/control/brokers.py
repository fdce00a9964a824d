"""Verbs to start, end and pause brokers and controllers, and to fail and repair log directories."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from broker.cluster.lifecycle import WrongState
from broker.control.problems import conflict
from broker.control.request import ControlRequest
from broker.control.verbs import answers
from broker.request.node import Node
from broker.settings.endpoints import EndpointError, PortTaken
from control_api.answers.cluster import Broker, Controller, Listener
from control_api.brokers import (
    BrokerRemoved,
    BrokerState,
    ControllerRemoved,
    ControllerState,
    FailedLogDir,
    NewBroker,
    NewController,
    State,
)
from control_api.encoding import copied
from protocol.types import uuid_text

if TYPE_CHECKING:
    from broker.cluster.cluster import Cluster


def state_of(node: Node) -> State:
    """Return ``running``, ``paused`` or ``down``."""
    return "paused" if node.up and node.server.paused else "running" if node.up else "down"


def _state(node: Node) -> BrokerState:
    return {"id": node.id, "state": state_of(node)}


def broker_of(cluster: "Cluster", node: Node) -> Broker:
    """Describe a broker: its addresses and its state."""
    registration = cluster.image.brokers.get(node.id)
    endpoint, port = next(iter(node.bound.values()))
    return Broker(
        id=node.id,
        host=endpoint.host_for_clients,
        port=endpoint.port_for_clients(port),
        rack=node.rack,
        up=node.up,
        state=state_of(node),
        fenced=registration is None or registration.fenced,
        epoch=node.epoch,
        log_dir_failed=any(log_dir.is_offline for log_dir in node.log_dirs),
        listeners=tuple(copied(Listener, listener) for listener in cluster.listeners_of(node)),
    )


def controller_of(cluster: "Cluster", controller_id: int) -> Controller:
    """Describe a controller: its address, its state, and its part in the quorum."""
    quorum, each = cluster.quorum, cluster.quorum.controllers[controller_id]
    host, port = each.address
    return Controller(
        id=each.id,
        host=host,
        port=port,
        up=each.last is None,
        voter=each.id in quorum.voters,
        active=each.id == quorum.leader_id,
        directory_id=uuid_text(each.directory_id),
    )


@asynccontextmanager
async def _turn(request: ControlRequest) -> AsyncIterator[None]:
    """Wait for the resets, restores and brokers' changes that came before; what is refused becomes Problem 409."""
    async with request.cluster.rebuilding.turn:
        try:
            yield
        except (WrongState, PortTaken, EndpointError) as error:
            raise conflict(str(error)) from error


async def _changed(
    request: ControlRequest, find: Callable[[], Node], change: Callable[[Node], Awaitable[None] | None]
) -> Node:
    """Change a broker or a controller in its turn, and return it."""
    async with _turn(request):
        node = find()
        under_way = change(node)
        if under_way is not None:
            await under_way
    return node


@answers("brokers add")
async def add(request: ControlRequest, body: NewBroker) -> Broker:
    """Add an empty broker to the cluster; it gets partitions when topics are created or replicas reassigned."""
    async with _turn(request):
        node = await request.cluster.lifecycle.add(body.get("id"), rack=body.get("rack"), port=body.get("port"))
        return broker_of(request.cluster, node)


@answers("brokers remove")
async def remove(request: ControlRequest) -> BrokerRemoved:
    """Remove a broker: a controlled shutdown, then the cluster unregisters it; its replicas stay listed."""
    async with _turn(request):
        node = request.node()
        await request.cluster.lifecycle.remove(node)
    return {"id": node.id, "state": "removed"}


@answers("brokers kill")
async def kill(request: ControlRequest) -> BrokerState:
    """Kill a broker: connections are reset, memory is lost, its logs are recovered at its next start."""
    return _state(await _changed(request, request.node, request.cluster.lifecycle.kill))


@answers("brokers stop")
async def stop(request: ControlRequest) -> BrokerState:
    """Stop a broker by a controlled shutdown: its leaders move to other replicas first."""
    return _state(await _changed(request, request.node, request.cluster.lifecycle.stop))


@answers("brokers start")
async def start(request: ControlRequest) -> BrokerState:
    """Start a killed or stopped broker, on the same ports as before."""
    return _state(await _changed(request, request.node, request.cluster.lifecycle.start))


async def _controller_changed(
    request: ControlRequest, change: Callable[[Node], Awaitable[None] | None]
) -> ControllerState:
    node = await _changed(request, request.controller, change)
    return {"id": node.id, "state": state_of(node), "controller": request.cluster.quorum.leader_id}


@answers("controllers add")
async def add_controller(request: ControlRequest, body: NewController) -> Controller:
    """Add a controller as an observer."""
    request.controllers()
    async with _turn(request):
        node = await request.cluster.controller_lifecycle.add(body.get("id"))
        return controller_of(request.cluster, node.id)


@answers("controllers remove")
async def remove_controller(request: ControlRequest) -> ControllerRemoved:
    """Remove a controller that does not vote."""
    async with _turn(request):
        node = request.controller()
        request.cluster.controller_lifecycle.remove(node)
    return {"id": node.id, "state": "removed"}


@answers("controllers kill")
async def kill_controller(request: ControlRequest) -> ControllerState:
    """Kill a controller: the others notice after a while, if it was the active one."""
    return await _controller_changed(request, request.cluster.controller_lifecycle.kill)


@answers("controllers stop")
async def stop_controller(request: ControlRequest) -> ControllerState:
    """Stop a controller; if it was the active one, another is elected at once."""
    return await _controller_changed(request, request.cluster.controller_lifecycle.stop)


@answers("controllers start")
async def start_controller(request: ControlRequest) -> ControllerState:
    """Start a controller that was killed or stopped, on the same port as before."""
    return await _controller_changed(request, request.cluster.controller_lifecycle.start)


@answers("controllers pause")
async def pause_controller(request: ControlRequest) -> ControllerState:
    """Make a controller hang: the others notice after a while, if it was the active one."""
    return await _controller_changed(request, request.cluster.controller_lifecycle.pause)


@answers("controllers resume")
async def resume_controller(request: ControlRequest) -> ControllerState:
    """Resume a paused controller; it follows one that was elected meanwhile."""
    return await _controller_changed(request, request.cluster.controller_lifecycle.resume)


@answers("brokers fail-log-dir")
async def fail_log_dir(request: ControlRequest, body: FailedLogDir) -> BrokerState:
    """Fail one of a broker's log directories, as a disk error does."""
    async with _turn(request):
        node = request.node()
        request.cluster.lifecycle.fail_log_dir(node, body.get("directory"))
    return _state(node)


@answers("brokers repair-log-dir")
async def repair_log_dir(request: ControlRequest) -> BrokerState:
    """Repair the failed log directories, and restart the broker with them, on the same ports."""
    return _state(await _changed(request, request.node, request.cluster.lifecycle.repair_log_dir))


@answers("brokers pause")
async def pause(request: ControlRequest) -> BrokerState:
    """Make a broker hang: it still accepts connections, but reads nothing."""
    node = request.node()
    try:
        request.cluster.lifecycle.pause(node)
    except WrongState as error:
        raise conflict(str(error)) from error
    return _state(node)


@answers("brokers resume")
async def resume(request: ControlRequest) -> BrokerState:
    """Resume a paused broker."""
    node = request.node()
    try:
        request.cluster.lifecycle.resume(node)
    except WrongState as error:
        raise conflict(str(error)) from error
    return _state(node)
