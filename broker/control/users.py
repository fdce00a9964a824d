"""Verbs about SCRAM users.

Credentials are stored as by AlterUserScramCredentials (KIP-554). Releases before 2.7, and 3.3 to 3.4, do not have that
request: there ``kafka-configs --zookeeper`` was used, or SCRAM users could not be created.
"""

from collections.abc import Iterable

from broker.access.sasl.scram import credential, salted
from broker.control.problems import not_found, unprocessable
from broker.control.request import ControlRequest
from broker.control.verbs import answers
from broker.coordination.metadata import scram
from broker.coordination.metadata.features import METADATA_VERSION, SCRAM_LEVEL
from broker.coordination.metadata.scram import MECHANISMS
from broker.time.rng import unguessable
from control_api.answers.users import User, Users
from control_api.spelling import suggestion
from control_api.users import CredentialQuery, Mechanism, NewCredential
from protocol.errors import KafkaError
from protocol.log_records.metadata_security import UserScramCredentialRecord

_NAMES: dict[int, Mechanism] = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_SALT_BYTES = 20  # as many as a salt of ScramFormatter has (160 bits)


@answers("users list")
async def listed(request: ControlRequest) -> Users:
    """List all users, by name."""
    stored = scram.describe(request.cluster.image, ())
    return {
        "users": [
            _user(name, credentials)
            for name, credentials in sorted(stored.items())
            if not isinstance(credentials, KafkaError)
        ]
    }


@answers("users set")
async def set_password(request: ControlRequest, body: NewCredential) -> User:
    """Set a user's credential for a mechanism."""
    if request.cluster.image.features.get(METADATA_VERSION, SCRAM_LEVEL) < SCRAM_LEVEL:
        raise unprocessable(f"metadata.version is below {SCRAM_LEVEL}, the first with SCRAM in KRaft")
    name, mechanism = request.names["user"], MECHANISMS[body["mechanism"]]
    salt = unguessable(8 * _SALT_BYTES).to_bytes(_SALT_BYTES, "big")
    password = salted(mechanism, body["password"], salt, body["iterations"])
    await _alter(request, upsertions=[credential(name, mechanism, salt, password, body["iterations"])])
    return _user(name, _stored(request))


@answers("users delete")
async def delete(request: ControlRequest, query: CredentialQuery) -> User:
    """Remove one credential of a user, or all; return what remains. Raises Problem 404 if there is none."""
    name, wanted, mine = request.names["user"], query.get("mechanism"), _stored(request)
    doomed = [record for record in mine if wanted is None or record.mechanism == MECHANISMS[wanted]]
    if not mine:
        raise not_found(
            f"there is no SCRAM user {name!r}{suggestion(name, {user for user, _ in request.cluster.image.scram})}"
        )
    if not doomed:
        raise not_found(f"SCRAM user {name!r} has no password for {wanted}")
    for record in doomed:
        await _alter(request, deletions=[(name, record.mechanism)])
    return _user(name, _stored(request))


def _stored(request: ControlRequest) -> list[UserScramCredentialRecord]:
    return [record for record in request.cluster.image.scram.values() if record.name == request.names["user"]]


async def _alter(
    request: ControlRequest,
    *,
    deletions: Iterable[tuple[str, int]] = (),
    upsertions: Iterable[UserScramCredentialRecord] = (),
) -> None:
    answered, records = scram.alter(request.cluster.image, deletions, upsertions)
    for problem in answered.values():
        if problem is not None:
            raise unprocessable(problem.message or problem.code.name)
    await request.cluster.metadata.ask(lambda machine, _now_ms, token: machine.remember(records, token))


def _user(name: str, stored: Iterable[UserScramCredentialRecord]) -> User:
    return User(name=name, mechanisms=tuple(_NAMES[each] for each in sorted({each.mechanism for each in stored})))
