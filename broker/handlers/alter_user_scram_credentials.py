"""AlterUserScramCredentials: sets and deletes SCRAM credentials of users (KIP-554).

Version 0. Not done: nothing.
"""

from broker.access.sasl.scram import credential
from broker.coordination.metadata import scram
from broker.coordination.metadata.features import METADATA_VERSION, SCRAM_LEVEL
from broker.coordination.metadata.scram import MECHANISMS
from broker.request.api import Api
from broker.request.context import AclOperation, RequestContext
from broker.request.topology import check_on_cluster
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.metadata_security import UserScramCredentialRecord
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialUpsertion,
)


async def handle(request: AlterUserScramCredentialsRequest, ctx: RequestContext) -> AlterUserScramCredentialsResponse:
    """Alter the credentials of each user, all or none (core G.11)."""
    check_on_cluster(ctx, AclOperation.ALTER)
    # Only then: a requester without permission does not learn the level (ControllerApis, then QuorumController).
    if ctx.cluster.image.features.get(METADATA_VERSION, SCRAM_LEVEL) < SCRAM_LEVEL:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM")
    deletions = [(each.name, each.mechanism) for each in request.deletions]
    upsertions = [_stored(each) for each in request.upsertions]
    answers, records = scram.alter(ctx.cluster.image, deletions, upsertions)
    await ctx.cluster.metadata.ask(lambda machine, _now_ms, token: machine.remember(records, token))
    return AlterUserScramCredentialsResponse(results=[_result(user, error) for user, error in answers.items()])


def _stored(wanted: ScramCredentialUpsertion) -> UserScramCredentialRecord:
    """Build the stored credential, without keys if the mechanism is unknown or the salted password is empty."""
    if wanted.mechanism not in MECHANISMS.values() or not wanted.salted_password:
        return UserScramCredentialRecord(wanted.name, wanted.mechanism, iterations=wanted.iterations)
    salt, password = bytes(wanted.salt), bytes(wanted.salted_password)
    return credential(wanted.name, wanted.mechanism, salt, password, wanted.iterations)


def _result(user: str, error: KafkaError | None) -> AlterUserScramCredentialsResult:
    if error is None:
        return AlterUserScramCredentialsResult(user, ErrorCode.NONE, None)
    return AlterUserScramCredentialsResult(user, error.code, error.message)


def refuse(
    request: AlterUserScramCredentialsRequest,
    error: KafkaError,
    version: int,  # noqa: ARG001
) -> AlterUserScramCredentialsResponse:
    """Put the error on every user, once."""
    users = dict.fromkeys([*(each.name for each in request.deletions), *(each.name for each in request.upsertions)])
    return AlterUserScramCredentialsResponse(results=[_result(user, error) for user in users])


API: Api[AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse] = Api(
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS, handle, refuse
)
