"""Verbs that add, list, show and remove faults."""

from broker.control import fault_text
from broker.control.fault_parser import read_action, read_match
from broker.control.problems import not_found
from broker.control.request import ControlRequest
from broker.control.verbs import answers
from broker.steering.faults.rules import Fault
from control_api.answers.faults import Faults, FaultState
from control_api.faults import FaultList, FaultRequest, FaultWait
from control_api.verb import Removed


def state_of(fault: Fault) -> FaultState:
    """Describe a fault for an answer."""
    return FaultState(
        id=fault.id,
        hits=fault.hits,
        match=fault.description["match"],
        do=fault.description["do"],
        skip=fault.skip,
        times=fault.times,
        probability=fault.probability,
        remaining=fault.remaining,
        meets=fault_text.meets(
            fault.description["match"], skip=fault.skip, times=fault.times, probability=fault.probability
        ),
        does=fault_text.does(fault.description["do"]),
    )


@answers("faults add")
async def add(request: ControlRequest, body: FaultRequest) -> FaultState:
    """Add a fault. It applies after the existing faults."""
    match = read_match(body.get("match", {}), request.source)
    action = read_action(body["do"], match)
    description = {"match": request.section("match"), "do": request.section("do")}
    if match.api is not None:
        description["match"]["api"] = match.api.title
    fault = request.source.faults.add(
        match, action, description, skip=body["skip"], times=body["times"], probability=body["probability"]
    )
    return state_of(fault)


@answers("faults list")
async def read_all(request: ControlRequest, query: FaultList) -> Faults:
    """List all faults, oldest first; or those that matched no request."""
    faults = request.source.faults.faults.values()
    return {"faults": [state_of(fault) for fault in faults if not (query["unmet"] and fault.hits)]}


@answers("faults show")
async def read(request: ControlRequest, query: FaultWait) -> FaultState:
    """Show a fault; with wait_hits, wait for that many hits or until the timeout (real time) is over."""
    fault = _named(request)
    await fault.wait_hits(query["wait_hits"], query["timeout_ms"] / 1000)
    return state_of(fault)


@answers("faults remove")
async def remove(request: ControlRequest) -> FaultState:
    """Remove one fault."""
    fault = _named(request)
    request.source.faults.remove(fault.id)
    return state_of(fault)


@answers("faults clear")
async def clear(request: ControlRequest) -> Removed:
    """Remove all faults."""
    gone = len(request.source.faults.faults)
    request.source.faults.clear()
    return {"removed": gone}


def _named(request: ControlRequest) -> Fault:
    name = request.names["fault"]
    fault = request.source.faults.faults.get(name)
    if fault is None:
        ids = list(request.source.faults.faults)
        # The newest are the likely ones, and ten fit on a line.
        there = f"there are {', '.join(ids[-10:])}" if ids else "there are none; a reset removes all faults"
        raise not_found(f"there is no fault {name}; {there}")
    return fault
