"""DeleteAcls: deletes the ACLs that match filters (KIP-140, patterns KIP-290).

Versions 1-3; 0, with literal patterns only, for releases before 4.0. Differs from Kafka: a request whose response would
have more than 250,000 ACLs is refused.
"""

from broker.coordination.metadata.acls import Acl, Matches
from broker.request.acls import check_codes, filter_of, require_authorizer
from broker.request.api import Api, per_item
from broker.request.context import AclOperation, RequestContext
from broker.request.topology import check_on_cluster
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

_NONE = ErrorCode.NONE


async def handle(request: DeleteAclsRequest, ctx: RequestContext) -> DeleteAclsResponse:
    """Delete the ACLs that match; each filter's result lists all its matches, shared ones too (core G.9)."""
    # Codes before permission, as Kafka fails on them while it parses (core G.9.1); the authorizer last (core G.9.2).
    check_codes(*request.filters)
    check_on_cluster(ctx, AclOperation.ALTER)
    require_authorizer(ctx)
    filters = [filter_of(each) for each in request.filters]
    answers: list[Matches] = await ctx.cluster.metadata.ask(
        lambda machine, _now_ms, token: machine.delete_acls(filters, token), records=len(filters)
    )
    return DeleteAclsResponse(filter_results=[_result(matches) for matches in answers])


def _result(matches: Matches) -> DeleteAclsFilterResult:
    if isinstance(matches, KafkaError):
        return DeleteAclsFilterResult(matches.code, matches.message)
    return DeleteAclsFilterResult(_NONE, None, [_matching(acl) for acl in matches])


def _matching(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        _NONE,
        None,
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )


API: Api[DeleteAclsRequest, DeleteAclsResponse] = Api(
    ApiKey.DELETE_ACLS,
    handle,
    per_item(
        lambda request: request.filters,
        lambda _filter, error: _result(error),
        lambda filter_results: DeleteAclsResponse(filter_results=filter_results),
    ),
)
