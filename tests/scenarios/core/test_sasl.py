"""Who is there, before anything else may be asked (SAS, SCR; core I.7)."""

import pytest

from broker.handlers import sasl_authenticate
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.conftest import BrokerWith
from tests.scenarios import sasl
from tests.scenarios.sasl import ALICE, BOB, Guarded, ScramClient, authenticate, handshake, upsertion
from tests.versions import every_version
from tests.wire import Wire

METADATA = MetadataRequest([MetadataRequestTopic("foo")], allow_auto_topic_creation=False)
OTHER_NAME = "Authentication failed: Client requested an authorization id that is different from username"
GENERIC = "Authentication failed during authentication due to invalid credentials with SASL mechanism {}"


@pytest.fixture
def guarded(broker_with: BrokerWith) -> Guarded:
    """A cluster whose second listener asks who is there."""
    return sasl.guarded(broker_with)


@pytest.fixture
def forgetful(broker_with: BrokerWith) -> Guarded:
    """One that asks again after two seconds."""
    return sasl.guarded(broker_with, **{"connections.max.reauth.ms": 2000})


def metadata_error(wire: Wire) -> ErrorCode:
    """The error of a topic in Metadata."""
    code: ErrorCode = wire.call(ApiKey.METADATA, 9, METADATA).topics[0].error_code
    return code


# --- PLAIN -----------------------------------------------------------------------------------------------------------


@every_version(sasl_authenticate.API)
def test_SAS_01_a_name_and_its_password(guarded: Guarded, version: int) -> None:
    """0 without bytes, and the connection is as any other."""
    wire = guarded.stranger()
    answer = handshake(wire, "PLAIN")
    assert (answer.error_code, list(answer.mechanisms)) == (ErrorCode.NONE, sasl.MECHANISMS)
    passed = authenticate(wire, ALICE, version)
    assert (passed.error_code, bytes(passed.auth_bytes), passed.session_lifetime_ms) == (ErrorCode.NONE, b"", 0)
    assert metadata_error(wire) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("token", "problem"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0unknown\0secret", "Authentication failed: Invalid username or password"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"bob\0alice\0secret", OTHER_NAME),
        (b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"a\0b\0c\0d\0e", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
    ],
)  # fmt: skip
def test_SAS_01_who_is_refused_hears_why(guarded: Guarded, token: bytes, problem: str) -> None:
    """58 with a text, then the connection is closed."""
    wire = guarded.stranger()
    handshake(wire, "PLAIN")
    answer = authenticate(wire, token)
    assert (answer.error_code, answer.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, problem)
    wire.check_closed()


def test_SAS_02_a_mechanism_that_is_not_there(guarded: Guarded) -> None:
    """An unknown mechanism gets 33 with the mechanisms that there are."""
    wire = guarded.stranger()
    answer = handshake(wire, "FOO")
    assert (answer.error_code, list(answer.mechanisms)) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, sasl.MECHANISMS)
    wire.check_closed()


def test_SAS_03_nothing_is_answered_before(guarded: Guarded) -> None:
    """Before the authentication a request closes the connection without a response."""
    wire = guarded.stranger()
    wire.send(ApiKey.METADATA, 9, METADATA)
    wire.check_closed()


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"\0\0\0\2\xff\xff"])
def test_SAS_03_what_is_no_request_is_not_answered(guarded: Guarded, data: bytes) -> None:
    """HTTP, TLS or a fragment on a SASL port is not answered."""
    wire = guarded.stranger()
    wire.send_bytes(data)
    wire.check_closed()


def test_SAS_03_in_the_middle_it_is_refused(guarded: Guarded) -> None:
    """34 in the request's own way, then the connection is closed."""
    wire = guarded.stranger()
    handshake(wire, "PLAIN")
    assert metadata_error(wire) is ErrorCode.ILLEGAL_SASL_STATE
    wire.check_closed()


def test_a_request_that_is_too_large_for_a_stranger_is_not_read(guarded: Guarded) -> None:
    """`sasl.server.max.receive.size`; who is known may send more (core G.2 S6)."""
    wire = guarded.stranger()
    wire.send_bytes((524_289).to_bytes(4, "big"))
    wire.check_closed()
    wire = guarded.known()
    wire.send_bytes((524_289).to_bytes(4, "big"))
    assert not wire.has_answer()


def test_SAS_04_tokens_without_headers(guarded: Guarded) -> None:
    """After SaslHandshake v0; success is a token of no bytes."""
    wire = guarded.stranger()
    assert handshake(wire, "PLAIN", 0).error_code is ErrorCode.NONE
    wire.send_frame(ALICE)
    assert wire.receive_frame() == b""
    assert metadata_error(wire) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_SAS_04_a_bad_token_without_headers(guarded: Guarded) -> None:
    """Without headers there is no error response."""
    wire = guarded.stranger()
    handshake(wire, "PLAIN", 0)
    wire.send_frame(b"\0alice\0wrong")
    wire.check_closed()


def test_SAS_05_versions_are_requested_once(guarded: Guarded) -> None:
    """A refused request does not count."""
    wire = guarded.stranger()
    unknown = wire.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    assert unknown.error_code is ErrorCode.NONE
    wire.send(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("test", "1"))
    wire.check_closed()
    wire = guarded.stranger()
    for _ in range(2):
        refused = wire.call(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("", ""))
        assert refused.error_code is ErrorCode.INVALID_REQUEST
    assert wire.call(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("test", "1")).error_code is ErrorCode.NONE
    assert handshake(wire, "PLAIN").error_code is ErrorCode.NONE


# --- SCRAM -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", [1, 2])
def test_SAS_06_scram(guarded: Guarded, mechanism: int) -> None:
    """Both sides prove that they know the password."""
    sasl.store(guarded.server.wire(), upsertion("carl", mechanism))
    wire, client = guarded.stranger(), ScramClient("carl", b"pw", mechanism)
    handshake(wire, sasl.SCRAM[mechanism])
    challenge = authenticate(wire, client.first())
    assert challenge.error_code is ErrorCode.NONE
    passed = authenticate(wire, client.final(bytes(challenge.auth_bytes)))
    assert (passed.error_code, bytes(passed.auth_bytes)) == (ErrorCode.NONE, client.signature())
    assert metadata_error(wire) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_SAS_06_scram_with_a_wrong_password(guarded: Guarded) -> None:
    """58 at the second message; an unknown user is refused alike, at the first."""
    sasl.store(guarded.server.wire(), upsertion("carl"))
    refused = (ErrorCode.SASL_AUTHENTICATION_FAILED, GENERIC.format("SCRAM-SHA-256"))
    wire, client = guarded.stranger(), ScramClient("carl", b"wrong")
    handshake(wire, "SCRAM-SHA-256")
    challenge = authenticate(wire, client.first())
    assert challenge.error_code is ErrorCode.NONE
    answer = authenticate(wire, client.final(bytes(challenge.auth_bytes)))
    assert (answer.error_code, answer.error_message) == refused
    wire.check_closed()
    wire = guarded.stranger()
    handshake(wire, "SCRAM-SHA-256")
    answer = authenticate(wire, ScramClient("unknown", b"pw").first())
    assert (answer.error_code, answer.error_message) == refused
    wire.check_closed()


@pytest.mark.parametrize("first", [b"", b"p=tls,,n=carl,r=abc", b"n,,n=carl", b"n,,r=abc,n=carl", b"\xff\xfe"])
def test_SAS_06_scram_written_wrongly(guarded: Guarded, first: bytes) -> None:
    """As any other credentials that are not taken."""
    sasl.store(guarded.server.wire(), upsertion("carl"))
    wire = guarded.stranger()
    handshake(wire, "SCRAM-SHA-256")
    answer = authenticate(wire, first)
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        GENERIC.format("SCRAM-SHA-256"),
    )
    wire.check_closed()


# --- again -----------------------------------------------------------------------------------------------------------


def test_SAS_07_a_session_ends(forgetful: Guarded) -> None:
    """The session lifetime is in the response; afterwards nothing is answered."""
    wire = forgetful.stranger()
    handshake(wire, "PLAIN")
    assert authenticate(wire, ALICE, 1).session_lifetime_ms == 2000
    assert metadata_error(wire) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    forgetful.server.advance(3000)
    wire.send(ApiKey.METADATA, 9, METADATA)
    wire.check_closed()


def test_SAS_08_a_session_goes_on(forgetful: Guarded) -> None:
    """Re-authentication: possible at once, then not for a second, and never as another user."""
    wire = forgetful.known()
    assert handshake(wire, "PLAIN").error_code is ErrorCode.NONE
    assert authenticate(wire, ALICE).session_lifetime_ms == 2000
    assert handshake(wire, "PLAIN").error_code is ErrorCode.ILLEGAL_SASL_STATE
    assert metadata_error(wire) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    forgetful.server.advance(1200)
    assert handshake(wire, "PLAIN").error_code is ErrorCode.NONE
    answer = authenticate(wire, BOB)
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        "Cannot change principals during re-authentication from User.alice: User.bob",
    )
    wire.check_closed()


def test_SAS_08_a_session_goes_on_by_its_own_mechanism(forgetful: Guarded) -> None:
    """Another one is agreed to, and then the connection is closed."""
    wire = forgetful.known()
    assert handshake(wire, "SCRAM-SHA-256").error_code is ErrorCode.NONE
    wire.send_bytes(b"\0\0\0\x0a\0\x24\0\2\0\0\0\1\xff\xff")
    wire.check_closed()


def test_SAS_08_without_a_session_lifetime_re_authentication_is_refused(guarded: Guarded) -> None:
    """34, and the connection stays open."""
    wire = guarded.known()
    answer = handshake(wire, "PLAIN")
    assert (answer.error_code, list(answer.mechanisms)) == (ErrorCode.ILLEGAL_SASL_STATE, [])
    assert authenticate(wire, ALICE).error_code is ErrorCode.ILLEGAL_SASL_STATE
    assert metadata_error(wire) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# --- OAUTHBEARER -----------------------------------------------------------------------------------------------------


def test_SAS_09_a_token_determines_the_principal_and_the_session_lifetime(guarded: Guarded) -> None:
    """The session ends when the token expires."""
    now_s = guarded.server.now_ms() // 1000
    wire = guarded.stranger()
    handshake(wire, "OAUTHBEARER")
    passed = authenticate(wire, sasl.unsigned(sub="carl", iat=now_s, exp=now_s + 60))
    assert (passed.error_code, bytes(passed.auth_bytes)) == (ErrorCode.NONE, b"")
    assert 50_000 < passed.session_lifetime_ms <= 60_000
    assert metadata_error(wire) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_SAS_09_an_expired_token(guarded: Guarded) -> None:
    """0 and what is wrong; when the client gives up, 58 with the same."""
    now_s = guarded.server.now_ms() // 1000
    wire = guarded.stranger()
    handshake(wire, "OAUTHBEARER")
    reported = authenticate(wire, sasl.unsigned(sub="carl", iat=now_s - 120, exp=now_s - 60))
    assert (reported.error_code, bytes(reported.auth_bytes)) == (ErrorCode.NONE, b'{"status":"invalid_token"}')
    answer = authenticate(wire, b"\x01")
    assert answer.error_code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == '{"status":"invalid_token"}'
    wire.check_closed()


# --- credentials -----------------------------------------------------------------------------------------------------


def altered(
    wire: Wire, *upsertions: ScramCredentialUpsertion, deletions: tuple[tuple[str, int], ...] = ()
) -> dict[str, tuple[ErrorCode, str | None]]:
    """AlterUserScramCredentials; the result of each user."""
    gone = [ScramCredentialDeletion(*each) for each in deletions]
    request = AlterUserScramCredentialsRequest(gone, upsertions)
    answer = wire.call(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)
    return {each.user: (each.error_code, each.error_message) for each in answer.results}


def described(wire: Wire, *users: str) -> dict[str, tuple[ErrorCode, list[tuple[int, int]]]]:
    """DescribeUserScramCredentials; of each user what is stored."""
    request = DescribeUserScramCredentialsRequest([UserName(user) for user in users])
    answer = wire.call(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, request)
    assert answer.error_code is ErrorCode.NONE
    return {
        each.user: (each.error_code, sorted((info.mechanism, info.iterations) for info in each.credential_infos))
        for each in answer.results
    }


@pytest.fixture
def wire(broker_with: BrokerWith) -> Wire:
    """A connection to a cluster without credentials; on a real one they outlive a test, so user names are new."""
    return broker_with(settings={"unstable.api.versions.enable": "false"}).wire()


def test_SCR_01_iterations_have_bounds(wire: Wire) -> None:
    """4096 to 16384; credentials are described without their keys."""
    code, problem = altered(wire, upsertion("scr1", iterations=4095))["scr1"]
    assert (code, problem) == (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    code, problem = altered(wire, upsertion("scr1", iterations=16_385))["scr1"]
    assert (code, problem) == (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    assert altered(wire, upsertion("scr1"))["scr1"] == (ErrorCode.NONE, None)
    assert described(wire, "scr1")["scr1"] == (ErrorCode.NONE, [(1, 4096)])
    assert altered(wire, upsertion("scr1", 2, iterations=8192))["scr1"] == (ErrorCode.NONE, None)
    assert described(wire)["scr1"] == (ErrorCode.NONE, [(1, 4096), (2, 8192)])


def test_SCR_02_a_user_is_altered_once(wire: Wire) -> None:
    """A user that is named twice gets 92, and nothing is stored."""
    twice = (ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
    assert altered(wire, upsertion("scr2", 1), upsertion("scr2", 2))["scr2"] == twice
    assert described(wire, "scr2")["scr2"][0] is ErrorCode.RESOURCE_NOT_FOUND
    assert altered(wire, upsertion("scr2"))["scr2"] == (ErrorCode.NONE, None)
    assert altered(wire, upsertion("scr2", 2), deletions=(("scr2", 1),))["scr2"] == twice
    assert described(wire, "scr2")["scr2"] == (ErrorCode.NONE, [(1, 4096)])


def test_SCR_03_who_is_not_there(wire: Wire) -> None:
    """An unknown user gets 91, described or deleted; one that is named twice gets 92."""
    missing = "Attempt to delete a user credential that does not exist"
    assert altered(wire, deletions=(("scr3", 1),))["scr3"] == (ErrorCode.RESOURCE_NOT_FOUND, missing)
    assert described(wire, "scr3")["scr3"] == (ErrorCode.RESOURCE_NOT_FOUND, [])
    assert described(wire, "scr3", "scr3")["scr3"][0] is ErrorCode.DUPLICATE_RESOURCE
    assert altered(wire, upsertion("scr3"))["scr3"] == (ErrorCode.NONE, None)
    assert altered(wire, deletions=(("scr3", 1),))["scr3"] == (ErrorCode.NONE, None)
    assert described(wire, "scr3")["scr3"][0] is ErrorCode.RESOURCE_NOT_FOUND


def test_names_and_mechanisms_that_cannot_be(wire: Wire) -> None:
    """93 without a name, 33 for an unknown mechanism."""
    results = altered(wire, upsertion(""), upsertion("scr4", 3))
    assert results[""] == (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    assert results["scr4"] == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")


@pytest.mark.parametrize("mechanism", [1, 2])
def test_an_empty_salted_password_is_not_stored(wire: Wire, mechanism: int) -> None:
    """-1 for that user alone, after the other checks: Java's SecretKeySpec takes no empty key (ScramFormatter)."""
    empty = upsertion("scr5", mechanism).changed(salted_password=b"")
    results = altered(wire, empty, upsertion("scr6"), empty.changed(name="scr7", iterations=1))
    assert results["scr5"] == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert results["scr6"] == (ErrorCode.NONE, None)
    assert results["scr7"] == (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    assert described(wire, "scr5")["scr5"][0] is ErrorCode.RESOURCE_NOT_FOUND
