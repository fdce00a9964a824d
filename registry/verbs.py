"""The registry's verbs of the control plane."""

from collections.abc import Callable, Mapping
from dataclasses import asdict

from broker.cluster.beside import Function
from broker.control.problems import unprocessable
from broker.control.request import ControlRequest
from control_api.answers.registry import RegistryFaults, RegistryFaultState, RegistryInfo
from control_api.registry import RegistryFault
from control_api.verb import Removed
from registry.faults import Faults
from registry.state import State


def verbs_of(url: str, state: Callable[[], State], faults: Faults) -> Mapping[str, Function]:
    """Return verb -> function."""

    async def show(request: ControlRequest) -> RegistryInfo:  # noqa: ARG001
        live = [each for each in state().all_versions() if not each.deleted]
        return RegistryInfo(url, len({each.subject for each in live}), len(live))

    async def fail(request: ControlRequest, body: RegistryFault) -> RegistryFaultState:  # noqa: ARG001
        if "status" not in body and not body.get("delay_ms"):
            raise unprocessable("a fault needs 'status' or 'delay_ms', such as {\"status\": 50002}", "status")
        if not 400 <= int(str(body.get("status", 400))[:3]) <= 599:
            raise unprocessable("'status' begins with a status from 400 to 599, such as 500 or 50002", "status")
        return RegistryFaultState(**asdict(faults.add(body)))

    async def list_all(request: ControlRequest) -> RegistryFaults:  # noqa: ARG001
        return {"faults": [RegistryFaultState(**asdict(each)) for each in faults.all.values()]}

    async def heal(request: ControlRequest) -> Removed:  # noqa: ARG001
        return {"removed": faults.clear()}

    return {"registry show": show, "registry fail": fail, "registry faults": list_all, "registry heal": heal}
