"""ACLs and client quotas."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, TypedDict

from control_api.fields import About
from control_api.security import Operation, Pattern, Permission, ResourceKind


@dataclass(frozen=True, slots=True)
class Acl:
    """An ACL: it allows or denies a principal an operation on the resources that match a pattern."""

    id: Annotated[str, About("id for `acls remove`")]
    principal: str
    permission: Permission
    operation: Operation
    resource_type: ResourceKind
    resource_name: str
    pattern: Pattern = "LITERAL"
    host: str = "*"


class Acls(TypedDict):
    """All ACLs, in the order of their creation."""

    enforced: Annotated[bool, About("whether the brokers have an authorizer")]
    acls: list[Acl]


@dataclass(frozen=True, slots=True)
class Quota:
    """Client quotas of one entity: a user, a client id, both, or an address; `<default>` for all others."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None
    values: Mapping[str, float] = field(default_factory=dict)


class Quotas(TypedDict):
    """The quotas of all entities that have any."""

    quotas: list[Quota]
