"""A cluster whose clients authenticate: what the rows of SASL share."""

import base64
import functools
import hashlib
import hmac
import json
import re
from dataclasses import dataclass

from protocol.apis import ApiKey
from protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.conftest import BrokerWith
from tests.ports import free_ports
from tests.server import Server
from tests.wire import Wire

MECHANISMS = ["PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256", "OAUTHBEARER"]
"""As a Java set of them is walked."""
SCRAM = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_OF = "listener.name.sasl_plaintext."
_LOGIN = "org.apache.kafka.common.security."
SETTINGS: dict[str, object] = {
    "sasl.enabled.mechanisms": ",".join(MECHANISMS),
    f"{_OF}plain.sasl.jaas.config": f'{_LOGIN}plain.PlainLoginModule required user_alice="secret" user_bob="hush";',
    f"{_OF}scram-sha-256.sasl.jaas.config": f"{_LOGIN}scram.ScramLoginModule required;",
    f"{_OF}scram-sha-512.sasl.jaas.config": f"{_LOGIN}scram.ScramLoginModule required;",
    f"{_OF}oauthbearer.sasl.jaas.config": (
        f'{_LOGIN}oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";'
    ),
}
ALICE, BOB = b"\0alice\0secret", b"\0bob\0hush"
HASHES = {1: "sha256", 2: "sha512"}


@functools.cache
def _port(_settings: str) -> int:
    """Of the listener with SASL, for the whole session: servers are kept by what they were started with."""
    (port,) = free_ports(1)
    return port


@dataclass(frozen=True)
class Guarded:
    """A cluster with a second listener, whose clients authenticate."""

    server: Server
    address: str

    def stranger(self) -> Wire:
        """A connection to that listener, closed when the test is over."""
        return self.server.wire_to(self.address)

    def known(self, token: bytes = ALICE) -> Wire:
        """A connection that has authenticated with PLAIN."""
        wire = self.stranger()
        assert not handshake(wire, "PLAIN").error_code
        assert not authenticate(wire, token).error_code
        return wire


def guarded(broker_with: BrokerWith, **more: object) -> Guarded:
    """Such a cluster, with more settings."""
    address = f"127.0.0.1:{_port(json.dumps(more, sort_keys=True))}"
    return Guarded(broker_with(settings={**SETTINGS, **more}, listeners=[f"SASL_PLAINTEXT://{address}"]), address)


def handshake(wire: Wire, mechanism: str, version: int = 1) -> SaslHandshakeResponse:
    """SaslHandshake."""
    answer: SaslHandshakeResponse = wire.call(ApiKey.SASL_HANDSHAKE, version, SaslHandshakeRequest(mechanism))
    return answer


def authenticate(wire: Wire, token: bytes, version: int = 2) -> SaslAuthenticateResponse:
    """SaslAuthenticate."""
    answer: SaslAuthenticateResponse = wire.call(ApiKey.SASL_AUTHENTICATE, version, SaslAuthenticateRequest(token))
    return answer


# --- SCRAM -----------------------------------------------------------------------------------------------------------


def upsertion(
    user: str, mechanism: int = 1, *, password: bytes = b"pw", iterations: int = 4096, salt: bytes = b"salt"
) -> ScramCredentialUpsertion:
    """A password as clients store it."""
    name = HASHES.get(mechanism, "sha256")
    salted = hashlib.pbkdf2_hmac(name, password, salt, max(iterations, 1))
    return ScramCredentialUpsertion(user, mechanism, iterations, salt, salted)


def store(wire: Wire, *wanted: ScramCredentialUpsertion) -> None:
    """AlterUserScramCredentials that works."""
    request = AlterUserScramCredentialsRequest(upsertions=wanted)
    answer = wire.call(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)
    assert not any(each.error_code for each in answer.results), answer


class ScramClient:
    """The client's side of RFC 5802."""

    def __init__(self, user: str, password: bytes, mechanism: int = 1, nonce: str = "fyko+d2lbbFgONRv9qkxdawL") -> None:
        self._hash, self._password = HASHES[mechanism], password
        self._bare = f"n={user},r={nonce}"
        self._key, self._auth_message = b"", b""

    def first(self, extensions: bytes = b"") -> bytes:
        """Who it is."""
        self._bare += extensions.decode()
        return f"n,,{self._bare}".encode()

    def final(self, challenge: bytes) -> bytes:
        """The proof."""
        nonce, salt, iterations = re.fullmatch(r"r=([^,]+),s=([^,]+),i=(\d+)", challenge.decode()).groups()  # type: ignore[union-attr]
        self._key = hashlib.pbkdf2_hmac(self._hash, self._password, base64.b64decode(salt), int(iterations))
        unproved = f"c=biws,r={nonce}"
        self._auth_message = f"{self._bare},{challenge.decode()},{unproved}".encode()
        client_key = hmac.digest(self._key, b"Client Key", self._hash)
        signature = hmac.digest(hashlib.new(self._hash, client_key).digest(), self._auth_message, self._hash)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        return f"{unproved},p={base64.b64encode(proof).decode()}".encode()

    def signature(self) -> bytes:
        """The server's last message, which proves that it knows the password too."""
        server_key = hmac.digest(self._key, b"Server Key", self._hash)
        return b"v=" + base64.b64encode(hmac.digest(server_key, self._auth_message, self._hash))


# --- OAUTHBEARER -----------------------------------------------------------------------------------------------------


def unsigned(**claims: object) -> bytes:
    """A token without a signature, as the mechanism's first message."""
    pieces = [base64.urlsafe_b64encode(json.dumps(piece).encode()).rstrip(b"=") for piece in ({"alg": "none"}, claims)]
    return b"n,,\x01auth=Bearer " + b".".join([*pieces, b""]) + b"\x01\x01"
