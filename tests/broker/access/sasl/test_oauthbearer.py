"""Unsigned tokens: which are taken."""

import base64
import json
from typing import Any

import pytest

from broker.access.sasl.exchange import Identity, Refused
from broker.access.sasl.oauthbearer import OAuthBearerExchange

NOW_MS = 1_000_000_000
GOOD: dict[str, Any] = {"sub": "alice", "iat": 999_990, "exp": 1_000_060}
INVALID = b'{"status":"invalid_token"}'


def piece(content: object) -> bytes:
    """A part of a token."""
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=")


def message(claims: object, *, alg: str = "none", signature: bytes = b"", authorization: bytes = b"") -> bytes:
    """The client's first."""
    token = b".".join((piece({"alg": alg}), piece(claims), signature))
    return b"n," + authorization + b",\x01auth=Bearer " + token + b"\x01\x01"


def answered(token: bytes, **options: str) -> tuple[bytes, Identity | None]:
    """The server's first token, and the client's identity."""
    exchange = OAuthBearerExchange(options, NOW_MS)
    return exchange.step(token), exchange.identity


def test_a_good_token() -> None:
    """A valid token gives the connection its subject as identity, until the token expires."""
    assert answered(message(GOOD)) == (b"", Identity("alice", 1_000_060_000))
    assert answered(message({"sub": "alice", "exp": 1_000_060.5})) == (b"", Identity("alice", 1_000_060_500))
    assert answered(message(GOOD, authorization=b"a=alice"))[1] == Identity("alice", 1_000_060_000)


def test_the_token_may_come_behind_other_keys() -> None:
    """As in RFC 7628, 3.1, where host and port are before it."""
    token = message(GOOD).replace(b",\x01auth", b",\x01host=server.example.com\x01port=9092\x01auth")
    assert answered(token)[1] == Identity("alice", 1_000_060_000)
    assert answered(token[:-1] + b"traceId=1\x01\x01")[1] == Identity("alice", 1_000_060_000)


@pytest.mark.parametrize(
    "token",
    [
        message({**GOOD, "exp": 1_000_000}),
        message({**GOOD, "exp": "soon"}),
        message({**GOOD, "exp": True}),
        message({"sub": "alice"}),
        message({**GOOD, "sub": " "}),
        message({**GOOD, "sub": 7}),
        message({**GOOD, "sub": "a\ud800"}),
        message({**GOOD, "iat": 1_000_001}),
        message({**GOOD, "iat": 1_000_060}),
        message(GOOD, alg="HS256"),
        message(GOOD, signature=b"eA"),
        message([]),
        b"n,,\x01auth=Bearer nonsense\x01\x01",
        b"n,,\x01auth=Bearer a.b.\x01\x01",
    ],
)
def test_a_bad_token_is_answered_with_its_error_and_then_refused(token: bytes) -> None:
    """The client answers with a byte 1, and is refused with the same."""
    exchange = OAuthBearerExchange({}, NOW_MS)
    assert exchange.step(token) == INVALID
    with pytest.raises(Refused) as refused:
        exchange.step(b"\x01")
    assert (refused.value.message, exchange.identity) == (INVALID.decode(), None)


def test_options_move_the_bounds() -> None:
    """Skew, the claim with the principal, the required scope."""
    late = message({**GOOD, "exp": 999_999})
    assert answered(late)[1] is None
    assert answered(late, unsecuredValidatorAllowableClockSkewMs="2000")[1] == Identity("alice", 999_999_000)
    named = message({**GOOD, "who": "bob"})
    assert answered(named, unsecuredValidatorPrincipalClaimName="who")[1] == Identity("bob", 1_000_060_000)
    needed = {"unsecuredValidatorRequiredScope": "read write"}
    assert answered(message(GOOD), **needed)[0] == b'{"status":"insufficient_scope","scope":"read write"}'
    assert answered(message({**GOOD, "scope": ["write", "read", "x"]}), **needed)[1] is not None


@pytest.mark.parametrize("token", [b"", b"n,,", b"auth=Bearer x", b"n,,\x01auth=Basic x\x01\x01"])
def test_what_is_no_message_is_refused_at_once(token: bytes) -> None:
    """Bytes that are no OAUTHBEARER message are refused at once, without a reason."""
    with pytest.raises(Refused) as refused:
        answered(token)
    assert refused.value.message is None


def test_an_authorization_id_has_to_be_the_token_s() -> None:
    """An authorization id that is not the token's subject is refused with both names."""
    with pytest.raises(Refused) as refused:
        answered(message(GOOD, authorization=b"a=bob"))
    assert refused.value.message is not None
    assert "(bob)" in refused.value.message
    assert "(alice)" in refused.value.message


@pytest.mark.parametrize("scope", [[[]], [{}], [1], {}, 1])
def test_scopes_that_are_none(scope: object) -> None:
    """A scope of any other JSON type grants nothing: the token is valid unless a scope is required."""
    assert answered(message({**GOOD, "scope": scope}))[1] == Identity("alice", 1_000_060_000)
    refused, identity = answered(message({**GOOD, "scope": scope}), unsecuredValidatorRequiredScope="kafka")
    assert (json.loads(refused)["status"], identity) == ("insufficient_scope", None)
