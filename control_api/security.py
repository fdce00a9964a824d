"""Verbs about ACLs and client quotas."""

from collections.abc import Mapping
from typing import Annotated, Literal, Required, TypedDict

from control_api.fields import About
from control_api.verb import Removed, Verb

Operation = Literal[
    "ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT",
]  # fmt: skip
ResourceKind = Literal["TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"]
Permission = Literal["ALLOW", "DENY"]
Pattern = Literal["LITERAL", "PREFIXED"]


class NewAcl(TypedDict, total=False):
    """An ACL to add."""

    principal: Required[Annotated[str, About("principal, such as User:alice", least=1)]]
    operation: Required[Annotated[Operation, About("the operation")]]
    resource_type: Required[Annotated[ResourceKind, About("type of the resource")]]
    resource_name: Required[Annotated[str, About("name of the resource; for a CLUSTER, kafka-cluster", least=1)]]
    pattern: Annotated[Pattern, About("whether the name is literal or a prefix", default="LITERAL")]
    permission: Annotated[Permission, About("whether the operation is allowed", default="ALLOW")]
    host: Annotated[str, About("address of the client", default="*")]


class NewQuota(TypedDict, total=False):
    """Client quotas of one entity: a user, a client id, both, or an address; `<default>` for all others."""

    quotas: Required[
        Annotated[
            Mapping[str, float | None],
            About("quotas by their Kafka names; null removes a quota", least=1, such={"producer_byte_rate": 1024}),
        ]
    ]
    user: Annotated[str, About("user, or <default>", least=1)]
    client_id: Annotated[str, About("client id, or <default>", least=1)]
    ip: Annotated[str, About("address of the client, or <default>", least=1)]


VERBS = (
    Verb("acls list", "GET", "/v1/acls", "acls.list()", "ACLs, in the order of their creation", answer="security.Acls",
         items="acls",
         columns=("id", "principal", "permission", "operation", "resource_type", "resource_name", "pattern", "host"),
         example={}),
    Verb("acls add", "POST", "/v1/acls", "acls.add(principal, operation, resource_type, resource_name)",
         "add an ACL, as CreateAcls does", body=NewAcl, answer="security.Acl",
         example={"principal": "User:alice", "operation": "READ", "resource_type": "TOPIC",
                  "resource_name": "orders"}),
    Verb("acls remove", "DELETE", "/v1/acls/{acl}", "acls[acl].remove()", "remove an ACL", answer=Removed),
    Verb("quotas list", "GET", "/v1/quotas", "quotas.list()", "client quotas by entity", answer="security.Quotas",
         items="quotas", columns=("user", "client_id", "ip", "values"), example={}),
    Verb("quotas set", "POST", "/v1/quotas", "quotas.set(quotas)",
         "set or remove client quotas of one entity, as AlterClientQuotas does", body=NewQuota,
         answer="security.Quota", example={"quotas": {"producer_byte_rate": 1024.0}, "user": "alice"}),
)  # fmt: skip
