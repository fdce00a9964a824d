"""A broker with an authorizer and two clients: an administrator who may do everything, and a client without rights.

Both are ``User:ANONYMOUS``, for there is no SASL. They connect from two addresses of the loopback network, and the ACLs
distinguish them by those. A real broker's own requests come from the administrator's address.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from protocol.acls import CLUSTER_NAME, AclOperation, PatternType, PermissionType, ResourceType
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest
from protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsFilterResult, DeleteAclsRequest
from protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from tests.conftest import BrokerWith
from tests.server import Server
from tests.wire import Wire

SETTINGS: dict[str, object] = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
}
ADMIN, CLIENT = "127.0.0.1", "127.0.0.2"
ANONYMOUS = "User:ANONYMOUS"
EVERY_KIND = [kind for kind in ResourceType if kind is not ResourceType.ANY]
Acl = tuple[int, str, int, str, str, int, int]
"""Type, name, pattern, principal, host, operation, permission."""


def acl(
    operation: int,
    kind: int,
    name: str,
    *,
    permission: int = PermissionType.ALLOW,
    pattern: int = PatternType.LITERAL,
    principal: str = ANONYMOUS,
    host: str = CLIENT,
) -> AclCreation:
    """An ACL to create; by default it applies to the client."""
    return AclCreation(kind, name, pattern, principal, host, operation, permission)


def created(wire: Wire, *acls: AclCreation, version: int = 3) -> Sequence[AclCreationResult]:
    """CreateAcls; the results in order."""
    results: Sequence[AclCreationResult] = wire.call(ApiKey.CREATE_ACLS, version, CreateAclsRequest(acls)).results
    return results


def described(
    wire: Wire,
    kind: int = ResourceType.ANY,
    name: str | None = None,
    pattern: int = PatternType.ANY,
    *,
    principal: str | None = None,
    host: str | None = None,
    operation: int = AclOperation.ANY,
    permission: int = PermissionType.ANY,
    version: int = 3,
) -> DescribeAclsResponse:
    """DescribeAcls."""
    request = DescribeAclsRequest(kind, name, pattern, principal, host, operation, permission)
    response: DescribeAclsResponse = wire.call(ApiKey.DESCRIBE_ACLS, version, request)
    return response


def acls_of(response: DescribeAclsResponse) -> set[Acl]:
    """The ACLs of a response."""
    assert response.error_code is ErrorCode.NONE, response.error_message
    return {
        (each.resource_type, each.resource_name, each.pattern_type, a.principal, a.host, a.operation, a.permission_type)
        for each in response.resources
        for a in each.acls
    }


def filtered(
    kind: int = ResourceType.ANY,
    name: str | None = None,
    pattern: int = PatternType.ANY,
    *,
    host: str | None = None,
    operation: int = AclOperation.ANY,
) -> DeleteAclsFilter:
    """A filter of DeleteAcls; by default it matches any ACL."""
    return DeleteAclsFilter(kind, name, pattern, None, host, operation, PermissionType.ANY)


def deleted(wire: Wire, *filters: DeleteAclsFilter, version: int = 3) -> Sequence[DeleteAclsFilterResult]:
    """DeleteAcls; the results in order."""
    request = DeleteAclsRequest(filters)
    results: Sequence[DeleteAclsFilterResult] = wire.call(ApiKey.DELETE_ACLS, version, request).filter_results
    return results


class Guarded:
    """One broker, and two connections to it: ``admin`` and ``client``."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.admin, self.client = server.wire(source=ADMIN), server.wire(source=CLIENT)

    def begin(self) -> None:
        """Allow the administrator everything, and all others nothing."""
        every = [(kind, CLUSTER_NAME if kind is ResourceType.CLUSTER else "*") for kind in EVERY_KIND]
        self.allow(*((AclOperation.ALL, kind, name) for kind, name in every), host=ADMIN)

    def allow(self, *rights: tuple[int, int, str], host: str = CLIENT) -> None:
        """Rights: operation, kind of resource, name."""
        self.create(*(acl(*right, host=host) for right in rights))

    def deny(self, *rights: tuple[int, int, str]) -> None:
        """Deny the client these rights: operation, kind of resource, name."""
        self.create(*(acl(*right, permission=PermissionType.DENY) for right in rights))

    def create(self, *acls: AclCreation) -> None:
        """Create valid ACLs."""
        assert {result.error_code for result in created(self.admin, *acls)} == {ErrorCode.NONE}

    def forget(self) -> None:
        """Delete all ACLs of the client."""
        deleted(self.admin, filtered(host=CLIENT))


@contextmanager
def guarded_by(broker_with: BrokerWith) -> Iterator[Guarded]:
    """A broker with an authorizer; a real broker has no ACL left afterwards."""
    stage = Guarded(broker_with(settings=SETTINGS, lazy_coordinators=True))
    stage.begin()
    yield stage
    deleted(stage.server.wire(source=ADMIN), filtered())
