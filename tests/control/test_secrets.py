"""No secret is shown anywhere: the journal, its files, the capture, the log, messages, the command line."""

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_configs import AlterableConfig as PlainConfig
from protocol.messages.alter_configs import AlterConfigsRequest
from protocol.messages.alter_configs import AlterConfigsResource as PlainResource
from protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.ports import free_ports
from tests.scenarios.sasl import ScramClient, authenticate, handshake, store, upsertion
from tests.serving import Server, start, until
from tests.wire import Closed, Wire

OF = "listener.name.sasl_plaintext."
LOGIN = "org.apache.kafka.common.security"
BROKER = 4
PASSWORD = "Password-of-alice"
WRONG = "Password-that-is-wrong"
SCRAM_PASSWORD = b"Password-of-scram"
SALT = b"Salt-of-scram"
KEY = "Key-of-tokens"
SETTINGS = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    f"{OF}plain.sasl.jaas.config": f'{LOGIN}.plain.PlainLoginModule required user_alice="{PASSWORD}";',
    f"{OF}scram-sha-256.sasl.jaas.config": f"{LOGIN}.scram.ScramLoginModule required;",
    "delegation.token.secret.key": KEY,
}


@dataclass
class Exposed:
    """A server with all its exposed, and the secrets that were handed to it."""

    server: Server
    listener: str
    journal: Path
    secrets: list[bytes] = field(default_factory=list)

    def stranger(self) -> Wire:
        """A connection to the listener that asks for a name."""
        wire = Wire(self.listener)
        self.server.opened.append(wire)
        return wire

    def known(self) -> Wire:
        """A connection of alice's."""
        wire = self.stranger()
        assert not handshake(wire, "PLAIN").error_code
        assert not authenticate(wire, f"\0alice\0{PASSWORD}".encode()).error_code
        return wire

    def hold(self, *secrets: str | bytes) -> None:
        """Note secrets, as they are and as base64."""
        for each in secrets:
            raw = each.encode() if isinstance(each, str) else each
            self.secrets += [raw, base64.b64encode(raw)]

    def get(self, path: str) -> bytes:
        """What the control plane answers."""
        with urlopen(f"{self.server.process.ready.control_url}{path}", timeout=60) as answer:  # noqa: S310
            return bytes(answer.read())

    def shown(self) -> dict[str, bytes]:
        """All that can be read, by place."""
        self.server.control("POST", "/v1/journal/rotate")
        files = sorted(self.journal.iterdir())
        return {
            "journal": self.get("/v1/journal"),
            "capture": self.get("/v1/journal.pcap"),
            "files": b"".join(each.read_bytes() for each in files),
            "cluster": self.get("/v1/cluster"),
            "log": self.server.process.log_file.read_bytes(),
            "command line": Path(f"/proc/{self.server.pid}/cmdline").read_bytes(),
        }


@pytest.fixture
def exposed(tmp_path: Path) -> Iterator[Exposed]:
    """A server with SASL that writes its journal."""
    (port,) = free_ports(1)
    listener = f"127.0.0.1:{port}"
    process = start(
        settings=SETTINGS, listeners=[f"SASL_PLAINTEXT://{listener}"], journal=tmp_path / "journal", log_level="debug"
    )
    server = Server(process)
    exposed_server = Exposed(server, listener, tmp_path / "journal")
    exposed_server.hold(PASSWORD, KEY)
    yield exposed_server
    server.finish_test()
    process.stop()


def plain(exposed: Exposed) -> None:
    """PLAIN in SaslAuthenticate: taken, and refused."""
    exposed.known()
    stranger = exposed.stranger()
    handshake(stranger, "PLAIN")
    exposed.hold(WRONG)
    assert authenticate(stranger, f"\0alice\0{WRONG}".encode()).error_code is ErrorCode.SASL_AUTHENTICATION_FAILED


def raw_tokens(exposed: Exposed) -> None:
    """PLAIN in frames of its own: after a handshake, and without one."""
    exposed.hold(WRONG)
    first = exposed.stranger()
    first.call(ApiKey.SASL_HANDSHAKE, 0, SaslHandshakeRequest("PLAIN"))
    for wire in (first, exposed.stranger()):
        wire.send_frame(f"\0alice\0{WRONG}".encode())
        with pytest.raises(Closed):
            wire.receive_frame()


def scram(exposed: Exposed) -> None:
    """A password is stored, and a client logs in with it."""
    wanted = upsertion("carol", password=SCRAM_PASSWORD, salt=SALT)
    exposed.hold(SCRAM_PASSWORD, SALT, bytes(wanted.salted_password))
    store(exposed.server.wire(), wanted)
    client, wire = ScramClient("carol", SCRAM_PASSWORD), exposed.stranger()
    handshake(wire, "SCRAM-SHA-256")
    challenge = bytes(authenticate(wire, client.first()).auth_bytes)
    proof = client.final(challenge)
    assert bytes(authenticate(wire, proof).auth_bytes) == client.signature()
    exposed.hold(challenge, proof, client.signature())


def tokens(exposed: Exposed) -> None:
    """A delegation token is made, listed, renewed and ended."""
    alice = exposed.known()
    proof = bytes(alice.call(ApiKey.CREATE_DELEGATION_TOKEN, 3, CreateDelegationTokenRequest([], -1)).hmac)
    exposed.hold(proof)
    assert alice.call(ApiKey.DESCRIBE_DELEGATION_TOKEN, 3, DescribeDelegationTokenRequest(None)).tokens
    assert not alice.call(ApiKey.RENEW_DELEGATION_TOKEN, 2, RenewDelegationTokenRequest(proof, -1)).error_code
    assert not alice.call(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, ExpireDelegationTokenRequest(proof, -1)).error_code


def settings(exposed: Exposed) -> None:
    """Passwords among the settings of a broker, of a topic, and under a name that was misspelled; most are refused."""
    wire = exposed.server.wire()
    for number, name in enumerate(
        ("ssl.key.password", f"{OF}ssl.keystore.password", f"{OF}plain.sasl.jaas.config", "ssl.key.pasword")
    ):
        for broker in ("1", "", "x"):
            value = f"Value-of-{number}-{broker}-hidden"
            exposed.hold(value)
            change = AlterConfigsResource(BROKER, broker, [AlterableConfig(name, 0, value)])
            wire.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest([change]))
            older = PlainResource(BROKER, broker, [PlainConfig(name, value)])
            wire.call(ApiKey.ALTER_CONFIGS, 2, AlterConfigsRequest([older], validate_only=True))
        topic = CreatableTopic("t", 1, 1, [], [CreatableTopicConfig(name, value)])
        wire.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([topic]))


@pytest.mark.parametrize("use", [plain, raw_tokens, scram, tokens, settings])
def test_no_secret_is_shown(exposed: Exposed, use: Callable[[Exposed], None]) -> None:
    """Neither as it is nor as base64; what is no secret is there."""
    use(exposed)
    until(lambda: b"SaslHandshake" in exposed.get("/v1/journal") or use is settings, "the requests")
    shown = exposed.shown()
    leaks = [(place, secret) for place, text in shown.items() for secret in exposed.secrets if secret in text]
    assert leaks == []
    if use is settings:
        for place in ("journal", "capture", "files"):
            assert b"ssl.key.password" in shown[place], place
            assert b"[hidden]" in shown[place], place
    if use is raw_tokens:
        lines = [line for line in exposed.server.log_lines() if line["event"] == "connection closed"]
        assert "api" not in lines[0]  # it would be the token's first bytes


def test_settings_that_are_no_secret_are_shown(exposed: Exposed) -> None:
    """The control: a topic's and a broker's settings are in the journal."""
    wire = exposed.server.wire()
    topic = CreatableTopic("t", 1, 1, [], [CreatableTopicConfig("retention.ms", "12345678")])
    wire.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([topic]))
    change = AlterConfigsResource(BROKER, "1", [AlterableConfig("log.cleaner.threads", 0, "2")])
    wire.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, IncrementalAlterConfigsRequest([change]))
    requests = [each["request"] for each in json.loads(exposed.get("/v1/journal"))["entries"]]
    assert requests[0]["topics"][0]["configs"] == [{"name": "retention.ms", "value": "12345678"}]
    assert requests[1]["resources"][0]["configs"][0]["value"] == "2"


def test_files_of_the_journal_are_their_owner_s_alone(exposed: Exposed) -> None:
    """Files of the journal have mode 0600."""
    exposed.known()
    exposed.server.control("POST", "/v1/journal/rotate")
    modes = {oct(each.stat().st_mode & 0o777) for each in exposed.journal.iterdir()}
    assert modes == {"0o600"}


def test_nonces_of_scram_do_not_follow_from_the_seed(exposed: Exposed) -> None:
    """After a reset the generator begins again; a login that was captured before must not be taken then."""
    nonces = set()
    for _ in range(2):
        exposed.server.reset()
        store(exposed.server.wire(), upsertion("carol", password=SCRAM_PASSWORD))
        wire = exposed.stranger()
        handshake(wire, "SCRAM-SHA-256")
        nonces.add(bytes(authenticate(wire, ScramClient("carol", SCRAM_PASSWORD).first()).auth_bytes))
    assert len(nonces) == 2
