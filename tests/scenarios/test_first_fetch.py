"""The first Fetch of a connection does not keep partitions waiting that are not in it, if it is set so."""

import pytest

from protocol.apis import ApiKey
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.conftest import BrokerWith
from tests.serving import Server
from tests.wire import Wire

SETTING = "understudy.first.fetch.max.wait.ms"


def send(wire: Wire) -> None:
    """A Fetch that would wait for an hour of the frozen clock."""
    topic = FetchTopic("t", [FetchPartition(0, 0, 1 << 20)])
    request = FetchRequest(max_wait_ms=3_600_000, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=[topic])
    wire.send(ApiKey.FETCH, 12, request)


def received(wire: Wire) -> int:
    """The size of the records of its response."""
    return len(wire.answer().responses[0].partitions[0].records or b"")


def write(server: Server) -> None:
    """One record, by the control plane."""
    server.control("POST", "/v1/topics/t/records", {"records": [{"value": "v"}]})


@pytest.mark.parametrize("settings", [{SETTING: 0}, {}], ids=["set", "as in Kafka"])
def test_only_the_first_wait_of_a_connection_is_short(broker_with: BrokerWith, settings: dict[str, object]) -> None:
    """It is answered without records; the next one waits for them. By default, the first one waits too."""
    server = broker_with(topics=["t:1"], settings=settings)
    server.freeze()
    with server.wire() as wire:
        send(wire)
        if settings:
            assert received(wire) == 0
            send(wire)
        write(server)
        assert received(wire) > 0
