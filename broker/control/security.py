"""Verbs about ACLs and client quotas, with the rules of CreateAcls, DeleteAcls and AlterClientQuotas."""

import ipaddress
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args
from uuid import UUID

from broker.control.problems import conflict, not_found, unprocessable
from broker.control.request import ControlRequest
from broker.control.verbs import answers
from broker.coordination.metadata import acls
from broker.coordination.metadata.quotas import CLIENT_ID, IP, USER, Alteration, Altered
from broker.settings.releases import Behaviour
from control_api.answers.security import Acl, Acls, Quota, Quotas
from control_api.security import NewAcl, NewQuota, Operation, Pattern, Permission, ResourceKind
from control_api.verb import Removed
from protocol.acls import AclOperation, PatternType, PermissionType, ResourceType
from protocol.errors import KafkaError
from protocol.types import ZERO_UUID

DEFAULT = "<default>"
"""The default entity: users, client ids or addresses without their own quotas. Kafka's tools use this name."""
_OPERATIONS: Mapping[int, Operation] = {AclOperation[each]: each for each in get_args(Operation)}
_RESOURCES: Mapping[int, ResourceKind] = {ResourceType[each]: each for each in get_args(ResourceKind)}
_PATTERNS: Mapping[int, Pattern] = {PatternType[each]: each for each in get_args(Pattern)}
_PERMISSIONS: Mapping[int, Permission] = {PermissionType[each]: each for each in get_args(Permission)}


@answers("acls list")
async def list_acls(request: ControlRequest) -> Acls:
    """List all ACLs, and whether an authorizer enforces them."""
    return {"enforced": _enforced(request), "acls": [_acl(acl) for acl in request.cluster.image.acls.values()]}


@answers("acls add")
async def add_acl(request: ControlRequest, body: NewAcl) -> Acl:
    """Add an ACL, unless it exists. Raises Problem 409 without an authorizer, 422 if Kafka would refuse it."""
    if not _enforced(request):
        raise conflict("the brokers have no authorizer: serve with --set authorizer.class.name=...StandardAuthorizer")
    wanted = acls.Acl(
        ZERO_UUID,
        ResourceType[body["resource_type"]],
        body["resource_name"],
        PatternType[body["pattern"]],
        body["principal"],
        body["host"],
        AclOperation[body["operation"]],
        PermissionType[body["permission"]],
    )
    check_hosts = request.cluster.release.has(Behaviour.ACL_HOSTS_CHECKED)
    answered: list[KafkaError | None] = await request.cluster.metadata.ask(
        lambda machine, _now_ms, token: machine.create_acls([wanted], token, check_hosts=check_hosts)
    )
    (problem,) = answered
    if problem is not None:
        raise unprocessable(problem.message or problem.code.name)
    return next(acl for acl in map(_acl, request.cluster.image.acls.values()) if _is(acl, _acl(wanted)))


@answers("acls remove")
async def remove_acl(request: ControlRequest) -> Removed:
    """Remove an ACL by its id. Raises Problem 404 if it is unknown."""
    wanted = request.cluster.image.acls.get(_uuid(request.names["acl"]))
    if wanted is None:
        raise not_found(f"there is no ACL with the id {request.names['acl']!r}; `acls list` shows them")
    only = acls.AclFilter(
        wanted.resource_type,
        wanted.resource_name,
        wanted.pattern_type,
        wanted.principal,
        wanted.host,
        wanted.operation,
        wanted.permission_type,
    )
    await request.cluster.metadata.ask(lambda machine, _now_ms, token: machine.delete_acls([only], token))
    return {"removed": 1}


@answers("quotas list")
async def list_quotas(request: ControlRequest) -> Quotas:
    """List the entities with quotas, in the order of DescribeClientQuotas."""
    stored = request.cluster.image.quotas
    return {"quotas": [_quota(dict(entity), quotas) for entity, quotas in stored.items()]}


@answers("quotas set")
async def set_quotas(request: ControlRequest, body: NewQuota) -> Quota:
    """Set or remove quotas of an entity; return all of its quotas. Raises Problem 422 if Kafka would refuse it."""
    entity = {kind: None if name == DEFAULT else name for kind, name in _entity(body).items()}
    wanted = Alteration(entity, list(body["quotas"].items()))
    answered: list[Altered] = await request.cluster.metadata.ask(
        lambda machine, _now_ms, token: machine.alter_client_quotas([wanted], token, resolves=_is_address)
    )
    ((_, problem),) = answered
    if problem is not None:
        raise unprocessable(problem.message or problem.code.name)
    return _quota(entity, request.cluster.image.quotas.get(wanted.key, {}))


def _uuid(text: str) -> UUID:
    """Parse an id as it is shown: 8-4-4-4-12 hex digits. In base64 it could begin with "-", like an option."""
    try:
        return UUID(text)
    except ValueError:
        return ZERO_UUID  # the id of no ACL


def _enforced(request: ControlRequest) -> bool:
    return any(node.authorizer is not None for node in request.cluster.nodes.values())


def _entity(body: NewQuota) -> dict[str, str]:
    parts = {USER: body.get("user"), CLIENT_ID: body.get("client_id"), IP: body.get("ip")}
    return {kind: name for kind, name in parts.items() if name is not None}


def _is_address(name: str) -> bool:
    """Return whether a name is an IP address. Host names, which Kafka resolves, are not supported here."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _quota(entity: Mapping[str, str | None], values: Mapping[str, float]) -> Quota:
    named: dict[str, Any] = {kind: DEFAULT if name is None else name for kind, name in entity.items()}
    return Quota(user=named.get(USER), client_id=named.get(CLIENT_ID), ip=named.get(IP), values=dict(values))


def _acl(stored: acls.Acl) -> Acl:
    return Acl(
        id=str(stored.id),
        principal=stored.principal,
        permission=_PERMISSIONS[stored.permission_type],
        operation=_OPERATIONS[stored.operation],
        resource_type=_RESOURCES[stored.resource_type],
        resource_name=stored.resource_name,
        pattern=_PATTERNS[stored.pattern_type],
        host=stored.host,
    )


def _is(stored: Acl, wanted: Acl) -> bool:
    """Return whether two ACLs are equal, ignoring their ids."""
    return replace(stored, id="") == replace(wanted, id="")
