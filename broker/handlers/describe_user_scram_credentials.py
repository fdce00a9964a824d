"""DescribeUserScramCredentials: the SCRAM mechanisms of users; salts and keys are never returned (KIP-554).

Version 0. Not done: nothing.
"""

from broker.coordination.metadata import scram
from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext
from broker.request.topology import may_on_cluster
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.metadata_security import UserScramCredentialRecord
from protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


async def handle(
    request: DescribeUserScramCredentialsRequest, ctx: RequestContext
) -> DescribeUserScramCredentialsResponse:
    """Return mechanism and iterations of each user's credentials, never the keys (core G.11)."""
    if not may_on_cluster(ctx, AclOperation.DESCRIBE):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    credentials = scram.describe(ctx.cluster.image, [each.name for each in request.users or ()])
    return DescribeUserScramCredentialsResponse(results=[_result(user, stored) for user, stored in credentials.items()])


def _result(user: str, stored: list[UserScramCredentialRecord] | KafkaError) -> DescribeUserScramCredentialsResult:
    if isinstance(stored, KafkaError):
        return DescribeUserScramCredentialsResult(user, stored.code, stored.message)
    infos = [CredentialInfo(each.mechanism, each.iterations) for each in stored]
    return DescribeUserScramCredentialsResult(user, credential_infos=infos)


def refuse(
    request: DescribeUserScramCredentialsRequest,
    error: KafkaError,
    version: int,  # noqa: ARG001
) -> DescribeUserScramCredentialsResponse:
    """Put the error at the top level, and on an entry without a name for each requested user."""
    results = [DescribeUserScramCredentialsResult("", error.code, None) for _ in request.users or ()]
    return DescribeUserScramCredentialsResponse(error_code=error.code, error_message=None, results=results)


API: Api[DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse] = Api(
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, handle, refuse
)
