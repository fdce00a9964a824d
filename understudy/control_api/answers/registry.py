"""The schema registry and its faults, as the server holds them."""

from dataclasses import dataclass
from typing import Annotated, TypedDict

from understudy.control_api.fields import About


@dataclass(frozen=True, slots=True)
class RegistryInfo:
    """GET /v1/registry."""

    url: str
    subjects: Annotated[int, About("how many have a version that is not deleted")] = 0
    versions: Annotated[int, About("how many are not deleted")] = 0


@dataclass(frozen=True, slots=True)
class RegistryFaultState:
    """A fault of the registry, and how many requests it has met. `skip` counts down."""

    id: str
    hits: int = 0
    path: str = ""
    method: str | None = None
    status: int | None = None
    message: str = ""
    delay_ms: int = 0
    skip: int = 0
    times: int = 1


class RegistryFaults(TypedDict):
    """Faults of the registry, the oldest first."""

    faults: list[RegistryFaultState]
