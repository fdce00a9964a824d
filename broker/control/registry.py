"""Commands of the schema registry on a server without one; a registry answers them itself (``Cluster.beside``)."""

from broker.control.problems import Problem, conflict
from broker.control.request import ControlRequest
from broker.control.verbs import answers
from control_api.answers.registry import RegistryFaults, RegistryFaultState, RegistryInfo
from control_api.registry import RegistryFault
from control_api.verb import Removed


def _none() -> Problem:
    return conflict("this server has no schema registry; start it with --schema-registry PORT")


@answers("registry show")
async def show(request: ControlRequest) -> RegistryInfo:  # noqa: ARG001
    """Refuse: this server has no schema registry."""
    raise _none()


@answers("registry fail")
async def fail(request: ControlRequest, body: RegistryFault) -> RegistryFaultState:  # noqa: ARG001
    """Refuse: this server has no schema registry."""
    raise _none()


@answers("registry faults")
async def faults(request: ControlRequest) -> RegistryFaults:  # noqa: ARG001
    """Refuse: this server has no schema registry."""
    raise _none()


@answers("registry heal")
async def heal(request: ControlRequest) -> Removed:  # noqa: ARG001
    """Refuse: this server has no schema registry."""
    raise _none()
