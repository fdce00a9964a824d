"""A broker whose answers cannot be read: an error of the connection, as where it hangs up."""

import socket
import threading
from collections.abc import Iterator

import pytest

from pipeline.transfer.connection import Connection
from pipeline.transfer.security import Security
from pipeline.transfer.wire import Cluster, WireError
from protocol.apis import ApiKey
from protocol.messages.metadata import MetadataRequest

ANSWERS = [
    b"\xff\xff\xff\xff",  # a negative size
    b"\0\0\0\0",
    b"\0\0\0\4\0\0\0\1",
    b"\0\0\0\x0c\0\0\0\1\0\xff\xff\xff\xff\xff\xff\xff",
    b"\0\0\0\x09\0\0\0\1\0\0\0\0\0",
]


@pytest.fixture(params=ANSWERS)
def address(request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    """Of a broker that answers everything with the same bytes."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                while peer.recv(4096):
                    peer.sendall(request.param)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def test_an_answer_that_cannot_be_read_breaks_the_connection(address: tuple[str, int]) -> None:
    """No exception of the codec, which would end an audit that goes on for days."""
    connection = Connection(address, 5.0, Security())
    with pytest.raises(ConnectionError, match="cannot be read"):
        connection.ask(ApiKey.METADATA, MetadataRequest())
    connection.close()


def test_a_cluster_of_such_brokers_cannot_be_used(address: tuple[str, int]) -> None:
    """The error is one sentence: the address, and that its answers cannot be read."""
    with pytest.raises(WireError, match=r"no broker answers at .*cannot be read"):
        Cluster(f"{address[0]}:{address[1]}")


@pytest.mark.parametrize("address", [("a..b", 9092), ("127.0.0.1", 70_000)])
def test_a_place_where_no_broker_can_be(address: tuple[str, int]) -> None:
    """A broker's answer may name one as another broker's."""
    with pytest.raises(OSError, match=r"."):
        Connection(address, 5.0, Security())
