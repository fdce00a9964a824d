"""The schema registry and its faults."""

from dataclasses import dataclass
from typing import Annotated, TypedDict

from control_api.fields import About


@dataclass(frozen=True, slots=True)
class RegistryInfo:
    """The schema registry: GET /v1/registry."""

    url: str
    subjects: Annotated[int, About("number of subjects with a version that is not deleted")] = 0
    versions: Annotated[int, About("number of versions that are not deleted")] = 0


@dataclass(frozen=True, slots=True)
class RegistryFaultState:
    """A fault of the registry, and its number of hits. `skip` counts down."""

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
    """Faults of the registry, oldest first."""

    faults: list[RegistryFaultState]
