"""CreateAcls: creates ACLs (KIP-140, patterns KIP-290).

Versions 1-3; 0, with literal patterns only, for releases before 4.0. Not done: nothing.
"""

from broker.coordination.metadata.acls import Acl
from broker.request.acls import check_codes, require_authorizer
from broker.request.api import Api, per_item
from broker.request.context import AclOperation, RequestContext
from broker.request.topology import check_on_cluster
from broker.settings.releases import Behaviour
from protocol.apis import ApiKey
from protocol.errors import KafkaError
from protocol.messages.create_acls import AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse
from protocol.types import ZERO_UUID


async def handle(request: CreateAclsRequest, ctx: RequestContext) -> CreateAclsResponse:
    """Create each ACL, each with its own result (core G.9)."""
    # Codes before permission, as Kafka fails on them while it parses (core G.9.1); the authorizer last (core G.9.2).
    check_codes(*request.creations)
    check_on_cluster(ctx, AclOperation.ALTER)
    require_authorizer(ctx)
    wanted = [_acl(each) for each in request.creations]
    check_hosts = ctx.release.has(Behaviour.ACL_HOSTS_CHECKED)
    answers: list[KafkaError | None] = await ctx.cluster.metadata.ask(
        lambda machine, _now_ms, token: machine.create_acls(wanted, token, check_hosts=check_hosts),
        records=len(wanted),
    )
    return CreateAclsResponse(results=[_result(error) for error in answers])


def _acl(creation: AclCreation) -> Acl:
    return Acl(
        ZERO_UUID,
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def _result(error: KafkaError | None) -> AclCreationResult:
    return AclCreationResult() if error is None else AclCreationResult(error.code, error.message)


API: Api[CreateAclsRequest, CreateAclsResponse] = Api(
    ApiKey.CREATE_ACLS,
    handle,
    per_item(
        lambda request: request.creations,
        lambda _creation, error: _result(error),
        lambda results: CreateAclsResponse(results=results),
    ),
)
