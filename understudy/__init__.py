"""Understudy: a mock Apache Kafka cluster in its own process, controlled from Python.

    with understudy.start(brokers=3) as kafka:
        kafka.bootstrap_servers
        kafka.clock.advance(minutes=15)

Names are imported on first use, because the server also imports this package and has to start within 0.4 s.
"""

from typing import TYPE_CHECKING, Any

from understudy.version import __version__

if TYPE_CHECKING:
    from control_api.fault_actions import Delay, Disconnect, Drop, Error
    from understudy.aio import AsyncCluster, AsyncFault, aconnect, astart
    from understudy.client import Cluster, Fault, connect, start
    from understudy.errors import ConformanceError, ControlError, StartError, UnderstudyError, UnmetFaults, Unreachable

HOMES = {
    "control_api.fault_actions": ("Delay", "Disconnect", "Drop", "Error"),
    "understudy.aio": ("AsyncCluster", "AsyncFault", "aconnect", "astart"),
    "understudy.client": ("Cluster", "Fault", "connect", "start"),
    "understudy.errors": (
        "ConformanceError",
        "ControlError",
        "StartError",
        "UnderstudyError",
        "UnmetFaults",
        "Unreachable",
    ),
}

__all__ = [
    "AsyncCluster",
    "AsyncFault",
    "Cluster",
    "ConformanceError",
    "ControlError",
    "Delay",
    "Disconnect",
    "Drop",
    "Error",
    "Fault",
    "StartError",
    "UnderstudyError",
    "UnmetFaults",
    "Unreachable",
    "__version__",
    "aconnect",
    "astart",
    "connect",
    "start",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    import importlib

    if name == "simulation":
        return importlib.import_module("understudy.simulation")
    for module, names in HOMES.items():
        if name in names:
            value = getattr(importlib.import_module(module), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
