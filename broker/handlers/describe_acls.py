"""DescribeAcls: lists the ACLs that match a filter (KIP-140, patterns KIP-290).

Versions 1-3; 0, with literal patterns only, for releases before 4.0. Not done: nothing.
"""

from itertools import groupby
from operator import attrgetter

from broker.coordination.metadata.acls import find
from broker.request.acls import check_codes, filter_of
from broker.request.api import Api, top_level_with_message
from broker.request.context import AclOperation, RequestContext
from broker.request.topology import check_on_cluster
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
    """Return the ACLs that match the filter, grouped by resource (core G.9)."""
    # Codes before permission, as Kafka fails on them while it parses (core G.9.1); the authorizer last (core G.9.2).
    check_codes(request)
    check_on_cluster(ctx, AclOperation.DESCRIBE)
    if ctx.node.authorizer is None:
        raise KafkaError(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    matches = sorted(find(ctx.cluster.image, filter_of(request)), key=_PATTERN)
    return DescribeAclsResponse(
        resources=[
            DescribeAclsResource(
                resource_type,
                name,
                pattern_type,
                [AclDescription(acl.principal, acl.host, acl.operation, acl.permission_type) for acl in acls],
            )
            for (resource_type, pattern_type, name), acls in groupby(matches, _PATTERN)
        ]
    )


API: Api[DescribeAclsRequest, DescribeAclsResponse] = Api(
    ApiKey.DESCRIBE_ACLS, handle, top_level_with_message(DescribeAclsResponse)
)
