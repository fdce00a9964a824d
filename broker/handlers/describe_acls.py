"""DescribeAcls: the ACLs that a filter finds (KIP-140, patterns KIP-290).

Versions 1-3; 0, where all patterns are literal, for releases before 4.0. Not done: nothing.
"""

from itertools import groupby
from operator import attrgetter

from broker.acl_requests import check_codes, filter_of
from broker.chain import Api
from broker.context import AclOperation, RequestContext
from broker.coordination.metadata.acls import find
from broker.topology import may_on_cluster
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

_PATTERN = attrgetter("resource_type", "pattern_type", "resource_name")


async def handle(request: DescribeAclsRequest, ctx: RequestContext) -> DescribeAclsResponse:
    """Core G.9; grouped by what they are about."""
    check_codes(request)
    if not may_on_cluster(ctx, AclOperation.DESCRIBE):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if ctx.node.authorizer is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    found = sorted(find(ctx.cluster.image, filter_of(request)), key=_PATTERN)
    return DescribeAclsResponse(
        resources=[
            DescribeAclsResource(
                resource_type,
                name,
                pattern_type,
                [AclDescription(acl.principal, acl.host, acl.operation, acl.permission_type) for acl in acls],
            )
            for (resource_type, pattern_type, name), acls in groupby(found, _PATTERN)
        ]
    )


def refuse(request: DescribeAclsRequest, error: KafkaError, version: int) -> DescribeAclsResponse:  # noqa: ARG001
    """At the top."""
    return DescribeAclsResponse(error_code=error.code, error_message=error.message)


API = Api(ApiKey.DESCRIBE_ACLS, (1, 3), handle, refuse, removed=0)
