"""A broker that hangs up right behind an answer, as one does that is shut down: the client still has the answer."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from protocol.apis import ApiKey
from protocol.codec import decode_header, encode_response
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from protocol.types import Message
from tests.proxy.conftest import ProxyTo
from tests.serving import until
from tests.wire import PATIENCE_S, Closed

LARGE = 32 << 20
"""More than the system keeps of a connection between two processes."""


class Parting:
    """A broker that answers one request of each connection, and closes it."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.others = 0
        """How many brokers its metadata names beside itself; each time they are others."""
        self._named = 1
        self.may_close, self.has_closed = threading.Event(), threading.Event()
        self.may_close.set()
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def address(self) -> str:
        """``HOST:PORT``."""
        return f"127.0.0.1:{self.port}"

    def close(self) -> None:
        """No more."""
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                with client, client.makefile("rb") as incoming:
                    frame = bytearray(incoming.read(int.from_bytes(incoming.read(4), "big")))
                    header = decode_header(frame)
                    answer = self._answer(ApiKey(header.api_key))
                    parts = encode_response(header.api_key, header.api_version, header.correlation_id, answer)
                    client.sendall(b"".join(parts))
                    self.may_close.wait(PATIENCE_S)
                self.has_closed.set()

    def _answer(self, key: ApiKey) -> Message:
        if key is ApiKey.HEARTBEAT:
            return HeartbeatResponse()
        if key is ApiKey.API_VERSIONS:
            return ApiVersionsResponse()
        if key is ApiKey.FETCH:
            return FetchResponse(responses=[FetchableTopicResponse("t", [PartitionData(records=b"x" * LARGE)])])
        brokers = [MetadataResponseBroker(1, "127.0.0.1", self.port)]
        for _ in range(self.others):
            self._named += 1
            brokers.append(MetadataResponseBroker(self._named, "localhost", self.port))
        return MetadataResponse(brokers=brokers, cluster_id="parting")


@pytest.fixture
def parting() -> Iterator[Parting]:
    """The broker."""
    broker = Parting()
    yield broker
    broker.close()


@pytest.mark.parametrize(
    ("key", "version", "request_of", "others"),
    [
        pytest.param(ApiKey.HEARTBEAT, 4, HeartbeatRequest("g", 1, "m"), 0, id="passed-as-bytes"),
        pytest.param(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("c", "1"), 0, id="read"),
        pytest.param(ApiKey.METADATA, 9, MetadataRequest(topics=None), 0, id="metadata"),
        pytest.param(ApiKey.METADATA, 9, MetadataRequest(topics=None), 3, id="metadata-with-new-brokers"),
    ],
)
def test_the_last_answer_arrives(
    parting: Parting, proxy_to: ProxyTo, key: ApiKey, version: int, request_of: Message, others: int
) -> None:
    """Also where the proxy opens listeners before it passes; then the connection ends."""
    proxy = proxy_to(parting.address)
    parting.others = others
    for _ in range(5):
        with proxy.wire() as wire:
            response = wire.call(key, version, request_of)
            with pytest.raises(Closed):
                wire.receive_frame()
        assert len(getattr(response, "brokers", ())) == (others + 1 if key is ApiKey.METADATA else 0)


def test_a_large_last_answer_arrives(parting: Parting, proxy_to: ProxyTo) -> None:
    """Most of it is still at the proxy when the broker hangs up."""
    with proxy_to(parting.address).wire() as wire:
        response = wire.call(ApiKey.FETCH, 12, FetchRequest())
        with pytest.raises(Closed):
            wire.receive_frame()
    assert len(response.responses[0].partitions[0].records) == LARGE


def test_an_answer_that_is_read_slowly_arrives(parting: Parting, proxy_to: ProxyTo) -> None:
    """The broker hangs up while the client pauses in the middle of it."""
    proxy = proxy_to(parting.address)
    parting.may_close.clear()
    with proxy.wire() as wire:
        wire.send(ApiKey.FETCH, 12, FetchRequest())
        until(wire.has_answer, "the first bytes")
        parting.may_close.set()
        assert parting.has_closed.wait(PATIENCE_S)
        for _ in range(3):  # by then the proxy has noticed
            proxy.control("GET", "/v1/health")
        response = wire.answer()
    assert len(response.responses[0].partitions[0].records) == LARGE
