"""Delegation tokens, for clients that have authenticated (TOK; core I.7)."""

import base64
from typing import Any

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from tests.conftest import BrokerWith
from tests.scenarios import sasl
from tests.scenarios.sasl import ALICE, BOB, Guarded, ScramClient, authenticate, handshake
from tests.wire import Closed, Wire

DAY_MS = 86_400_000
KEY: dict[str, object] = {"delegation.token.secret.key": "the key"}


@pytest.fixture
def guarded(broker_with: BrokerWith) -> Guarded:
    """A cluster with a key for tokens."""
    return sasl.guarded(broker_with, **KEY)


def created(wire: Wire, *renewers: str, lifetime_ms: int = -1, owner: str | None = None) -> Any:
    """CreateDelegationToken."""
    named = [CreatableRenewers(*renewer.split(":")) for renewer in renewers]
    kind = None if owner is None else "User"
    request = CreateDelegationTokenRequest(named, lifetime_ms, kind, owner)
    return wire.call(ApiKey.CREATE_DELEGATION_TOKEN, 3, request)


def renewed(wire: Wire, proof: bytes, period_ms: int = -1) -> Any:
    """RenewDelegationToken."""
    return wire.call(ApiKey.RENEW_DELEGATION_TOKEN, 2, RenewDelegationTokenRequest(proof, period_ms))


def expired(wire: Wire, proof: bytes, period_ms: int) -> Any:
    """ExpireDelegationToken."""
    return wire.call(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, ExpireDelegationTokenRequest(proof, period_ms))


def described(wire: Wire, *owners: str) -> list[Any]:
    """DescribeDelegationToken; the tokens of these owners."""
    request = DescribeDelegationTokenRequest([DescribeDelegationTokenOwner("User", owner) for owner in owners])
    answer = wire.call(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, request)
    assert answer.error_code is ErrorCode.NONE
    return list(answer.tokens)


def test_an_owner_has_a_type(guarded: Guarded) -> None:
    """A name alone fails the request, which names the requester as the owner (seen on 4.4.0)."""
    request = CreateDelegationTokenRequest([], -1, None, "bob")
    refused = guarded.known(ALICE).call(ApiKey.CREATE_DELEGATION_TOKEN, 3, request)
    assert refused.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert (refused.principal_type, refused.principal_name, refused.max_timestamp_ms) == ("User", "alice", -1)
    assert created(guarded.known(ALICE)).error_code is ErrorCode.NONE


def test_TOK_01_a_token_s_life(guarded: Guarded) -> None:
    """Created, described, renewed by a permitted user, expired; then it is unknown."""
    alice, bob = guarded.known(ALICE), guarded.known(BOB)
    token = created(alice, "User:bob", lifetime_ms=3 * DAY_MS)
    assert token.error_code is ErrorCode.NONE
    assert (token.principal_type, token.principal_name) == ("User", "alice")
    assert (token.token_requester_principal_type, token.token_requester_principal_name) == ("User", "alice")
    assert token.max_timestamp_ms - token.issue_timestamp_ms == 3 * DAY_MS
    assert token.expiry_timestamp_ms - token.issue_timestamp_ms == DAY_MS
    proof = bytes(token.hmac)
    assert len(proof) == 64
    (description,) = [each for each in described(alice, "alice") if each.token_id == token.token_id]
    assert (bytes(description.hmac), description.max_timestamp, description.expiry_timestamp) == (
        proof,
        token.max_timestamp_ms,
        token.expiry_timestamp_ms,
    )
    assert [(each.principal_type, each.principal_name) for each in description.renewers] == [("User", "bob")]
    assert token.token_id in {each.token_id for each in described(bob, "alice")}
    later = renewed(bob, proof, 5000)
    assert later.error_code is ErrorCode.NONE
    assert later.expiry_timestamp_ms < token.expiry_timestamp_ms
    assert renewed(bob, proof).expiry_timestamp_ms >= token.expiry_timestamp_ms
    assert renewed(alice, b"nothing").error_code is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert expired(alice, proof, -1).error_code is ErrorCode.NONE
    assert token.token_id not in {each.token_id for each in described(alice, "alice")}
    assert renewed(alice, proof).error_code is ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_TOK_01_only_those_who_are_named_may(guarded: Guarded) -> None:
    """63 for others; 67 for a renewer who is no user."""
    alice, bob = guarded.known(ALICE), guarded.known(BOB)
    proof = bytes(created(alice).hmac)
    assert renewed(bob, proof).error_code is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert expired(bob, proof, -1).error_code is ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert created(alice, "Group:bobs").error_code is ErrorCode.INVALID_PRINCIPAL_TYPE
    assert expired(alice, proof, -1).error_code is ErrorCode.NONE


def test_TOK_01_a_token_instead_of_a_password(guarded: Guarded) -> None:
    """SCRAM with the token's id and its proof; who came so is the owner, and may make no further tokens."""
    alice = guarded.known(ALICE)
    token = created(alice, lifetime_ms=60_000)
    password = base64.b64encode(bytes(token.hmac))
    wire, client = guarded.stranger(), ScramClient(token.token_id, password)
    handshake(wire, "SCRAM-SHA-256")
    challenge = authenticate(wire, client.first(b",tokenauth=true"))
    passed = authenticate(wire, client.final(bytes(challenge.auth_bytes)))
    assert passed.error_code is ErrorCode.NONE
    assert 0 < passed.session_lifetime_ms <= 60_000
    assert created(wire).error_code is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert expired(alice, bytes(token.hmac), -1).error_code is ErrorCode.NONE
    wire, client = guarded.stranger(), ScramClient(token.token_id, password)
    handshake(wire, "SCRAM-SHA-256")
    assert authenticate(wire, client.first(b",tokenauth=true")).error_code is ErrorCode.SASL_AUTHENTICATION_FAILED


def test_TOK_02_strangers_get_none(guarded: Guarded) -> None:
    """A requester that may not have a token gets DELEGATION_TOKEN_REQUEST_NOT_ALLOWED (64), with times of -1."""
    answer = created(guarded.server.wire())
    assert answer.error_code is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert (answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms) == (-1, -1, -1)
    assert (answer.principal_type, answer.principal_name, answer.token_id) == ("User", "ANONYMOUS", "")
    for answer in (renewed(guarded.server.wire(), b"x"), expired(guarded.server.wire(), b"x", -1)):
        assert answer.error_code is ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_TOK_02_without_a_key_there_are_none(broker_with: BrokerWith) -> None:
    """Without a master key each token API is refused with DELEGATION_TOKEN_AUTH_DISABLED (61)."""
    wire = sasl.guarded(broker_with).known()
    answer = created(wire)
    assert answer.error_code is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert (answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms) == (0, 0, 0)
    assert renewed(wire, b"x").error_code is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert expired(wire, b"x", -1).error_code is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def test_TOK_02_renewers_are_users(guarded: Guarded) -> None:
    """67, of the broker itself, with times of -1."""
    answer = created(guarded.known(ALICE), "Group:staff")
    assert answer.error_code is ErrorCode.INVALID_PRINCIPAL_TYPE
    assert (answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms) == (-1, -1, -1)


def test_tokens_are_found_by_their_renewers(guarded: Guarded) -> None:
    """Owners that are named mean all who own, requested or may renew a token."""
    alice = guarded.known(ALICE)
    token = created(alice, "User:carol")
    assert [each.token_id for each in described(alice, "carol")] == [token.token_id]
    assert described(alice, "dave") == []


def test_a_token_that_is_removed_ends_now(guarded: Guarded) -> None:
    """Any negative period expires a token at once."""
    alice = guarded.known(ALICE)
    token = created(alice)
    answer = expired(alice, bytes(token.hmac), -(2**63))
    assert answer.error_code is ErrorCode.NONE
    assert token.issue_timestamp_ms <= answer.expiry_timestamp_ms < token.expiry_timestamp_ms


def test_a_token_that_has_expired_opens_a_session_that_is_over(guarded: Guarded) -> None:
    """Until it is purged: the login passes, and the next request ends the connection."""
    alice = guarded.known(ALICE)
    token = created(alice)
    assert expired(alice, bytes(token.hmac), 0).error_code is ErrorCode.NONE
    guarded.server.control("POST", "/v1/clock/advance", {"ms": 1000})
    wire, client = guarded.stranger(), ScramClient(token.token_id, base64.b64encode(bytes(token.hmac)))
    handshake(wire, "SCRAM-SHA-256")
    challenge = authenticate(wire, client.first(b",tokenauth=true"))
    passed = authenticate(wire, client.final(bytes(challenge.auth_bytes)))
    assert (passed.error_code, passed.session_lifetime_ms) == (ErrorCode.NONE, 0)
    with pytest.raises(Closed):
        described(wire)
