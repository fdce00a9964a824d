"""A broker whose SCRAM messages are wrong: a client's connection ends, and the proxy serves the others."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.request.answers import Disconnect
from pipeline.transfer.security import Security
from protocol.apis import ApiKey
from protocol.codec import RequestHeader, decode_request
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from protocol.messages.sasl_handshake import SaslHandshakeResponse
from protocol.types import Message
from proxy import authentication
from proxy.authentication import authenticate
from proxy.link import Link
from proxy.upstream import Upstream
from tests.proxy.conftest import ProxyTo
from tests.proxy.scripted import Scripted
from tests.wire import Closed

LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
WRONG = [
    *(b"s=abc,i=4096", b"s=\xff,i=4096", b"s=YWJj,i=4096,\xff"),
    *(b"s=YWJj,i=%d" % count for count in (0, 4095, 100_001, 2**31 - 1, 10**20)),
]


class Wrong(Scripted):
    """A broker that authenticates no client: its first SCRAM message ends with what it is given."""

    def __init__(self, ending: bytes) -> None:
        super().__init__(lambda _: SaslHandshakeResponse(mechanisms=["SCRAM-SHA-256"]))
        self._ending = ending

    def answer(self, header: RequestHeader, frame: bytearray) -> Message:
        """The first SCRAM message, or the mechanisms."""
        request = decode_request(frame, header)
        if not isinstance(request, SaslAuthenticateRequest):
            return super().answer(header, frame)
        return SaslAuthenticateResponse(auth_bytes=first_answer(bytes(request.auth_bytes), self._ending))


def first_answer(message: bytes, ending: bytes) -> bytes:
    """The server's first message: the client's nonce, and what else it has."""
    nonce = message.rpartition(b"r=")[2]
    return b"r=" + nonce + b"x," + ending


@pytest.fixture
def wrong() -> Iterator[Wrong]:
    """The broker."""
    broker = Wrong(WRONG[0])
    yield broker
    broker.close()


class Answering:
    """A connection to a broker that answers with these bytes, behind the correlation id."""

    broker = "a broker"
    renew_at_s: float | None = None

    def __init__(self, answers: list[bytes]) -> None:
        self._answers = answers

    async def ask(self, _frame: bytes) -> bytearray:
        """The next answer, or an empty one."""
        return bytearray(4) + (self._answers.pop(0) if self._answers else b"")


HANDSHAKES = st.sampled_from([b"", b"\0\0" + b"\0\0\0\1\0\x0dSCRAM-SHA-256"]) | st.binary(max_size=40)


@given(HANDSHAKES, st.lists(st.binary(max_size=60), max_size=2), st.sampled_from(["PLAIN", "SCRAM-SHA-256"]))
def test_any_answers_end_the_connection_or_authenticate(handshake: bytes, others: list[bytes], mechanism: str) -> None:
    """There is no other error, which would end the proxy."""
    link = cast("Link", Answering([handshake, *others]))
    security = Security("SASL_PLAINTEXT", mechanism, "alice", "secret")
    with suppress(Disconnect):
        asyncio.run(authenticate(link, security))
        assert mechanism == "PLAIN"  # for SCRAM the broker has to know the password


class Mute:
    """A connection to a broker that takes requests and answers none."""

    broker = "mute:9092"
    is_open = True

    def close(self) -> None:
        """Close it."""
        self.is_open = False

    async def ask(self, _frame: bytes) -> bytearray:
        """Never."""
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_broker_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each connection of a client left one upstream that nothing closed."""
    monkeypatch.setattr(authentication, "PATIENCE_S", 0.01)
    security = Security("SASL_PLAINTEXT", "PLAIN", "alice", "secret")
    link = Mute()
    with pytest.raises(Disconnect, match=r"mute:9092 does not answer to SASL within 0\.01 s"):
        await authentication.in_time(authenticate(cast("Link", link), security), cast("Link", link))
    assert not link.is_open


def test_the_proxy_outlives_it(wrong: Wrong, proxy_to: ProxyTo, tmp_path: Path) -> None:
    """Two clients are refused one after the other."""
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        f'sasl.jaas.config={LOGIN} username="alice" password="secret";\n'
    )
    proxy = proxy_to(wrong.address, client_config=str(config))
    for _ in range(2):
        with pytest.raises(Closed):
            proxy.wire().call(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("c", "1"))
    assert proxy.control("GET", "/v1/health")["status"]


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 70_000), ("127.0.0.1", -1), ("a\0b", 9092), ("a..b", 9092)])
async def test_a_place_where_no_broker_can_be(host: str, port: int) -> None:
    """A broker's answer may name any as another broker's; the client's connection ends."""
    with pytest.raises(Disconnect, match="cannot be reached"):
        await Link.open(host, port, None)


@pytest.mark.parametrize("host", ["a\0b", "a..b"])
async def test_a_name_that_no_host_has_is_no_known_broker(host: str) -> None:
    """A host name that cannot be resolved is no known broker, and raises nothing."""
    assert not await Upstream(1, "127.0.0.1", 9092).is_at(host, 9092)
