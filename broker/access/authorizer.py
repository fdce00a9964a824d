"""Authorization like ``StandardAuthorizer``, by the ACLs in the metadata (core G.7, KIP-801).

A broker has an authorizer if ``authorizer.class.name`` is set: Kafka's, or a Python callable in its place. Decisions by
ACLs are cached until the ACLs change.
"""

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Protocol

from broker.coordination.metadata.acls import Acl
from broker.coordination.metadata.image import ClusterImage
from broker.settings import BrokerSettings
from broker.settings.plugins import AuthorizationRequest, load
from control_api.plugins import AUTHORIZER, is_reference
from protocol.acls import ANY_PRINCIPAL, WILDCARD, AclOperation, PatternType, PermissionType, ResourceType
from protocol.subnets import holds

_MOST_KEPT = 10_000  # cached decisions; beyond that, the cache is cleared; an arbitrary bound
# Characters of the names in a cached decision: ours, as clients choose them freely; usual ones are far shorter.
_LONGEST_KEPT = 1000
_IMPLYING: Mapping[AclOperation, frozenset[AclOperation]] = {
    AclOperation.DESCRIBE: frozenset(
        {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER, AclOperation.DESCRIBE}
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS}),
}
"""Operation -> the operations of an ACL that imply it."""
_SOME_NAME = "hardcode"  # Quirk: Authorizer.authorizeByResourceType first checks this name (core G.7.5)


ANONYMOUS = "User:ANONYMOUS"
"""The principal of a client that has not authenticated."""


class Requester(Protocol):
    """The principal and the address of a request."""

    @property
    def principal(self) -> str:
        """The principal, such as ``User:ANONYMOUS``."""
        ...

    @property
    def client_host(self) -> str:
        """The client's address."""
        ...


class Authorizer:
    """Decides by super users, ACLs, and the default for resources without ACLs."""

    def __init__(self, super_users: frozenset[str], *, unless_named: bool) -> None:
        """``unless_named``: resources without ACLs are open to all (``allow.everyone.if.no.acl.found``)."""
        self._super_users, self._unless_named = super_users, unless_named
        self._image: ClusterImage | None = None
        self._changes = -1
        self._named: dict[tuple[int, int, str], list[Acl]] = {}
        self._prefixes: dict[int, set[int]] = {}
        """Resource type -> the lengths of prefixes in its ACLs: only these prefixes of a name are looked up."""
        self._decisions: dict[tuple[str, str, int, int, str | None], bool] = {}

    def allows(
        self, image: ClusterImage, who: Requester, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool:
        """Whether a principal may perform an operation on one resource: rules 1 to 4."""
        if who.principal in self._super_users:
            return True
        self._follow(image)
        key = who.principal, who.client_host, int(operation), int(resource_type), name
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._keep(key, self._decide(who, operation, resource_type, name))
        return decision

    def allows_somewhere(
        self, image: ClusterImage, who: Requester, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Whether a principal may perform an operation on any resource of a type: rule 5."""
        if self.allows(image, who, operation, resource_type, _SOME_NAME):
            return True
        key = who.principal, who.client_host, int(operation), int(resource_type), None
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._keep(key, self._decide_somewhere(image, who, operation, resource_type))
        return decision

    def _keep(self, key: tuple[str, str, int, int, str | None], decision: bool) -> bool:
        if sum(map(len, (key[0], key[1], key[4] or ""))) <= _LONGEST_KEPT:
            if len(self._decisions) >= _MOST_KEPT:
                self._decisions.clear()
            self._decisions[key] = decision
        return decision

    def _follow(self, image: ClusterImage) -> None:
        """Drop the cached decisions if the ACLs have changed."""
        if image is self._image and image.acl_changes == self._changes:
            return
        self._image, self._changes = image, image.acl_changes
        self._decisions.clear()
        self._named, self._prefixes = {}, {}
        for acl in image.acls.values():
            self._named.setdefault((acl.resource_type, acl.pattern_type, acl.resource_name), []).append(acl)
            if acl.pattern_type == PatternType.PREFIXED:
                self._prefixes.setdefault(acl.resource_type, set()).add(len(acl.resource_name))

    def _applicable(self, resource_type: ResourceType, name: str) -> Iterator[Acl]:
        """Yield the ACLs of all principals that apply to a resource: rule 2."""
        yield from self._named.get((resource_type, PatternType.LITERAL, name), ())
        if name != WILDCARD:
            yield from self._named.get((resource_type, PatternType.LITERAL, WILDCARD), ())
        for size in self._prefixes.get(resource_type, ()):
            if size <= len(name):
                yield from self._named.get((resource_type, PatternType.PREFIXED, name[:size]), ())

    def _decide(self, who: Requester, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        allowed: bool | None = None
        for acl in self._applicable(resource_type, name):
            allowed = bool(allowed)
            if not _applies_to(acl, who):
                continue
            if acl.permission_type == PermissionType.DENY:
                if acl.operation in (operation, AclOperation.ALL):
                    return False
            elif acl.operation in (operation, AclOperation.ALL) or acl.operation in _IMPLYING.get(operation, ()):
                allowed = True
        return self._unless_named if allowed is None else allowed

    @staticmethod
    def _decide_somewhere(
        image: ClusterImage, who: Requester, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Whether some ALLOW pattern is not covered by a DENY pattern."""
        allowed: set[tuple[int, str]] = set()
        denied: set[tuple[int, str]] = set()
        for acl in image.acls.values():
            meant = acl.resource_type == resource_type and acl.operation in (operation, AclOperation.ALL)
            if meant and _applies_to(acl, who):
                patterns = denied if acl.permission_type == PermissionType.DENY else allowed
                patterns.add((acl.pattern_type, acl.resource_name))
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        sizes = {len(name) for kind, name in denied if kind == PatternType.PREFIXED}
        return (PatternType.LITERAL, WILDCARD) in allowed or any(
            not _covered(pattern, denied, sizes) for pattern in allowed
        )


class PluginAuthorizer(Authorizer):
    """Asks a Python callable about each action; it has no super users, and ACLs do not count.

    An exception of the callable fails the whole request with UNKNOWN_SERVER_ERROR, as that of a Kafka authorizer.
    """

    def __init__(self, decide: Callable[[AuthorizationRequest], object]) -> None:
        super().__init__(frozenset(), unless_named=False)
        self._ask = decide

    def allows(
        self, image: ClusterImage, who: Requester, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> bool:
        """Whether the callable returns true for the action."""
        del image
        action = AuthorizationRequest(
            who.principal, java_host(who.client_host), operation.name, resource_type.name, name
        )
        return bool(self._ask(action))

    def allows_somewhere(
        self, image: ClusterImage, who: Requester, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Ask about a resource of the name with which Kafka asks; it then looks at ACLs, of which there are none."""
        return self.allows(image, who, operation, resource_type, _SOME_NAME)


def _covered(pattern: tuple[int, str], denied: set[tuple[int, str]], sizes: set[int]) -> bool:
    """Whether a DENY covers a pattern; ``sizes`` are the lengths of the denied prefixes."""
    kind, name = pattern
    if kind == PatternType.LITERAL and pattern in denied:
        return True
    return any((PatternType.PREFIXED, name[:size]) in denied for size in sizes if size <= len(name))


def _applies_to(acl: Acl, who: Requester) -> bool:
    if acl.principal not in (who.principal, ANY_PRINCIPAL):
        return False
    host = java_host(who.client_host)
    return acl.host in (WILDCARD, host) or holds(acl.host, host)


@lru_cache(maxsize=1024)  # ours: addresses of a large test; each is compared with every ACL
def java_host(host: str) -> str:
    """Return an address as Java writes it (``InetAddress.getHostAddress``), for comparison with ACLs: IPv6 in full."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    # Groups of two of its 16 bytes.
    groups = (int.from_bytes(address.packed[at : at + 2], "big") for at in range(0, 16, 2))
    scope = "" if address.scope_id is None else f"%{address.scope_id}"
    return ":".join(f"{group:x}" for group in groups) + scope


@lru_cache(maxsize=1024)  # ours: client ids of a large test, which each request names again
def speaks_as(rules: str, client_id: str) -> str | None:
    """Return an unauthenticated client's principal, by the first matching rule of ``understudy.principals``."""
    for rule in rules.split(";"):
        pattern, _, principal = rule.strip().partition("=")
        if fnmatchcase(client_id, pattern.strip()):
            return principal.strip()
    return None


def authorizer_of(settings: BrokerSettings) -> Authorizer | None:
    """Return the authorizer that a broker's settings configure, if any."""
    name = settings.string(AUTHORIZER)
    if not name:
        return None
    if is_reference(name):
        return PluginAuthorizer(load(name))
    users = (user.strip() for user in settings.string("super.users").split(";"))
    return Authorizer(
        frozenset(user for user in users if user), unless_named=settings.boolean("allow.everyone.if.no.acl.found")
    )
