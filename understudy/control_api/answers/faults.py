"""Faults as the server holds them."""

from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

from understudy.control_api.answers.cluster import VersionRange
from understudy.control_api.fields import About


@dataclass(frozen=True, slots=True)
class FaultState:
    """A fault as the server holds it; `match` and `do` as they were given."""

    id: str
    hits: int = 0
    match: dict[str, Any] = field(default_factory=dict)
    do: dict[str, Any] = field(default_factory=dict)
    skip: int = 0
    times: int | None = 1
    probability: float = 1.0
    remaining: Annotated[
        int | None, About("how many more requests it affects; 0: it is exhausted; null: any number")
    ] = None
    meets: Annotated[str, About("`match`, `skip`, `times` and `probability` in plain English")] = ""
    does: Annotated[str, About("`do` in plain English")] = ""

    @property
    def met(self) -> bool:
        """Whether a request has met it."""
        return self.hits > 0

    @property
    def exhausted(self) -> bool:
        """Whether it affects no further request."""
        return self.remaining == 0


@dataclass(frozen=True, slots=True)
class ServedApi:
    """An API, and what a fault of its requests can match and do."""

    name: str
    key: Annotated[int, About("its number in Kafka's protocol")] = -1
    versions: Annotated[VersionRange | None, About("offered to new connections; null: none")] = None
    conditions: Annotated[
        tuple[str, ...], About("of topic, partition, group, transactional_id: what its requests or answers name")
    ] = ()
    request_conditions: Annotated[
        tuple[str, ...], About("those that its requests name, as a delay or a lost answer needs it")
    ] = ()
    error_conditions: Annotated[tuple[str, ...], About("those for which its answers have an error")] = ()
    effects: Annotated[tuple[str, ...], About("fields of `do` that it can have")] = ()
    errors: Annotated[tuple[str, ...], About("error codes that Kafka gives for it")] = ()
    request_fields: Annotated[tuple[str, ...], About("paths in its request, for `request`")] = ()
    response_fields: Annotated[tuple[str, ...], About("paths in its response, for `alter`")] = ()


class Faults(TypedDict):
    """Faults, the oldest first."""

    faults: list[FaultState]


class Apis(TypedDict):
    """APIs in the order of their keys, and all error codes."""

    apis: list[ServedApi]
    error_codes: Annotated[list[str], About("all that Kafka has but NONE")]
