"""Exchanges of several requests: versions, and SASL against the broker's own side."""

from collections.abc import Iterator
from typing import Any

import pytest

from protocol.apis import ApiKey
from protocol.client.sasl import BadScram, Credentials, Rejected, Scram, UnsupportedMechanism, authenticate
from protocol.client.steps import run
from protocol.client.versions import negotiate, newest
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from protocol.messages.sasl_handshake import SaslHandshakeResponse

SERVED = ApiVersionsResponse(ErrorCode.NONE, [ApiVersion(0, 3, 9), ApiVersion(3, 0, 99), ApiVersion(11, 99, 100)])
NONCE = "fyko+d2lbbFgONRv9qkxdawL"


class Broker:
    """Answers requests with these responses in turn, and notes the requests."""

    def __init__(self, *responses: Any) -> None:
        self._responses: Iterator[Any] = iter(responses)
        self.requests: list[tuple[ApiKey, int, Any]] = []

    def __call__(self, key: ApiKey, version: int, message: Any) -> Any:
        """The next response."""
        self.requests.append((key, version, message))
        return next(self._responses)


def test_an_old_broker_is_asked_again_in_version_0() -> None:
    """After UNSUPPORTED_VERSION ApiVersions is sent again as version 0 (KIP-511)."""
    broker = Broker(ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION), SERVED)
    assert run(negotiate("test", "1"), broker)[0] == (3, 9)
    assert [version for _, version, _ in broker.requests] == [3, 0]


def test_another_error_of_api_versions_is_raised() -> None:
    """Any other error of ApiVersions is raised, because the client cannot go on."""
    with pytest.raises(KafkaError, match="INVALID_REQUEST"):
        run(negotiate("test", "1"), Broker(ApiVersionsResponse(ErrorCode.INVALID_REQUEST)))


def test_the_newest_version_is_one_that_both_know() -> None:
    """Within the bounds of the caller; none if there is no such version, or no such API."""
    served = run(negotiate("test", "1"), Broker(SERVED))
    assert newest(served, ApiKey.PRODUCE) == 9
    assert newest(served, ApiKey.PRODUCE, at_most=5) == 5
    assert newest(served, ApiKey.PRODUCE, at_most=2) is None
    assert newest(served, ApiKey.PRODUCE, at_least=10) is None
    assert newest(served, ApiKey.METADATA) == 13
    assert newest(served, ApiKey.JOIN_GROUP) is None
    assert newest(served, ApiKey.FETCH) is None


def test_plain_sends_user_and_password_once() -> None:
    """And returns the session's lifetime."""
    broker = Broker(SaslHandshakeResponse(), SaslAuthenticateResponse(session_lifetime_ms=500))
    assert run(authenticate(Credentials("PLAIN", "alice", "secret"), NONCE), broker) == 500
    assert broker.requests[1][2].auth_bytes == b"\0alice\0secret"


def test_a_rejected_bearer_token_is_acknowledged() -> None:
    """RFC 7628: the reason comes in a challenge, the error after its acknowledgement."""
    reason = SaslAuthenticateResponse(auth_bytes=b'{"status":"invalid_token"}')
    broker = Broker(
        SaslHandshakeResponse(), reason, SaslAuthenticateResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, "expired")
    )
    with pytest.raises(Rejected, match="authentication failed: expired") as error:
        run(authenticate(Credentials("OAUTHBEARER", token="abc"), NONCE), broker)
    assert error.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert [request.auth_bytes for _, _, request in broker.requests[1:]] == [b"n,,\x01auth=Bearer abc\x01\x01", b"\x01"]


def test_a_mechanism_that_the_broker_does_not_serve() -> None:
    """The error names those that it serves."""
    broker = Broker(SaslHandshakeResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["PLAIN"]))
    with pytest.raises(UnsupportedMechanism, match="does not serve SASL SCRAM-SHA-512, but PLAIN"):
        run(authenticate(Credentials("SCRAM-SHA-512"), NONCE), broker)


def test_scram_computes_the_example_of_its_standard() -> None:
    """The client's SCRAM messages are those of RFC 7677, section 3."""
    scram = Scram(Credentials("SCRAM-SHA-256", "user", "pencil"), "rOprNGfwEbeRWgbNEkqO")
    challenge = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert scram.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert scram.final(challenge).endswith(b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    scram.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    with pytest.raises(BadScram, match="does not know the password"):
        scram.check("v=\u00e9".encode())
    with pytest.raises(BadScram, match="does not know the password"):
        scram.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5=")


@pytest.mark.parametrize(
    "ending",
    [
        *(b"s=abc,i=4096", b"s=\xff,i=4096", b"s=YWJj,i=4096,\xff", b"s=%,i=4096"),
        *(b"s=YWJj,i=%d" % count for count in (0, 4095, 100_001, 2**31 - 1, 10**20)),
    ],
)
def test_a_challenge_that_cannot_be_right_is_an_error(ending: bytes) -> None:
    """Of salts, iteration counts and bytes; and not one of Python."""
    with pytest.raises(BadScram, match="SCRAM"):
        Scram(Credentials("SCRAM-SHA-256", "alice", "secret"), NONCE).final(f"r={NONCE}x,".encode() + ending)


def test_a_challenge_to_another_nonce_is_an_error() -> None:
    """A server's nonce that does not begin with the client's is an error: it may be a replay."""
    with pytest.raises(BadScram, match="SCRAM"):
        Scram(Credentials("SCRAM-SHA-256", "alice", "secret"), NONCE).final(b"r=other,s=YWJj,i=4096")


def test_a_delegation_token_and_special_characters_of_a_name() -> None:
    """KIP-48: an extension; RFC 5802: commas and equals signs are escaped."""
    scram = Scram(Credentials("SCRAM-SHA-256", "a,b=c", "", by_token=True), NONCE)
    assert scram.first() == f"n,,n=a=2Cb=3Dc,r={NONCE},tokenauth=true".encode()
