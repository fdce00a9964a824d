"""Shared by the handlers of ACLs: invalid codes, the required authorizer, filters."""

from broker.coordination.metadata.acls import AclFilter
from broker.request.answers import Disconnect
from broker.request.context import RequestContext
from protocol.acls import UNKNOWN
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.create_acls import AclCreation
from protocol.messages.delete_acls import DeleteAclsFilter
from protocol.messages.describe_acls import DescribeAclsRequest


def check_codes(*items: AclCreation | DeleteAclsFilter | DescribeAclsRequest) -> None:
    """Refuse codes of 0 (UNKNOWN). Quirk: Kafka closes the connection for them, but answers other unknown codes.

    Raises:
        Disconnect: there is such a code.
    """
    for item in items:
        if isinstance(item, AclCreation):
            codes = {item.resource_type, item.resource_pattern_type}
        else:
            codes = {item.resource_type_filter, item.pattern_type_filter}
        if UNKNOWN in codes | {item.operation, item.permission_type}:
            raise Disconnect("an ACL with a code of 0 (unknown)")


def require_authorizer(ctx: RequestContext) -> None:
    """Raise SECURITY_DISABLED if the broker has no authorizer."""
    if ctx.node.authorizer is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")


def filter_of(requested: DeleteAclsFilter | DescribeAclsRequest) -> AclFilter:
    """Return the ACL filter of a request."""
    return AclFilter(
        requested.resource_type_filter,
        requested.resource_name_filter,
        requested.pattern_type_filter,
        requested.principal_filter,
        requested.host_filter,
        requested.operation,
        requested.permission_type,
    )
