"""Faults, and the APIs that they can match."""

from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

from control_api.answers.cluster import VersionRange
from control_api.fields import About


@dataclass(frozen=True, slots=True)
class FaultState:
    """A fault; `match` and `do` are as they were sent."""

    id: str
    hits: int = 0
    match: dict[str, Any] = field(default_factory=dict)
    do: dict[str, Any] = field(default_factory=dict)
    skip: int = 0
    times: int | None = 1
    probability: float = 1.0
    remaining: Annotated[
        int | None, About("number of further requests that it affects; 0: it is exhausted; null: any number")
    ] = None
    meets: Annotated[str, About("`match`, `skip`, `times` and `probability` in plain English")] = ""
    does: Annotated[str, About("`do` in plain English")] = ""

    @property
    def met(self) -> bool:
        """Return whether the fault has applied to a request."""
        return self.hits > 0

    @property
    def exhausted(self) -> bool:
        """Return whether the fault affects no further request."""
        return self.remaining == 0


@dataclass(frozen=True, slots=True)
class ServedApi:
    """An API, with the conditions and effects of faults on its requests."""

    name: str
    key: Annotated[int, About("its number in Kafka's protocol")] = -1
    versions: Annotated[VersionRange | None, About("offered to new connections; null: none")] = None
    conditions: Annotated[
        tuple[str, ...], About("those of topic, partition, group, transactional_id that its requests or responses name")
    ] = ()
    request_conditions: Annotated[
        tuple[str, ...], About("those that its requests name, which a delay or a lost response needs")
    ] = ()
    error_conditions: Annotated[tuple[str, ...], About("those for which its responses have an error code")] = ()
    effects: Annotated[tuple[str, ...], About("fields of `do` that it supports")] = ()
    errors: Annotated[tuple[str, ...], About("error codes that Kafka returns for it")] = ()
    request_fields: Annotated[tuple[str, ...], About("paths in its request, for `request`")] = ()
    response_fields: Annotated[tuple[str, ...], About("paths in its response, for `alter`")] = ()


class Faults(TypedDict):
    """Faults, oldest first."""

    faults: list[FaultState]


class Apis(TypedDict):
    """APIs in the order of their keys, and all error codes."""

    apis: list[ServedApi]
    error_codes: Annotated[list[str], About("all error codes of Kafka except NONE")]
