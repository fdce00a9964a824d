"""librdkafka takes the versions of Produce for what a broker can compress; the trap that Kafka 4.x nearly fell into.

Where Produce is listed from version 3, librdkafka up to 2.6 sends its batches uncompressed, and logs that at level
debug only. Kafka lists it from 0 (its pull request 18727). Every release that is played here does.
"""

from collections.abc import Iterator

import pytest

from protocol.apis import ApiKey
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.records.batch import RecordBatch
from protocol.records.compression import Codec
from tests.clients.compatibility.matrix import SETTINGS
from tests.clients.compatibility.players import GOOD, OLD_LIBRDKAFKA, Player
from tests.serving import Server, Servers

TRAPPED = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4)
"""zstd is younger than the version that librdkafka asks for."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("librdkafka 2.3", marks=[pytest.mark.interop, pytest.mark.timeout(300)]),
        pytest.param(OLD_LIBRDKAFKA, marks=[pytest.mark.nightly, pytest.mark.timeout(300)]),
    ],
)
def old(request: pytest.FixtureRequest) -> Iterator[Player]:
    """A librdkafka of the time."""
    player = Player(request.param)
    yield player
    player.close()


def codec_sent(server: Server, player: Player, codec: Codec) -> int:
    """The codec of the first batch that a producer with that codec left in the log."""
    topic = f"sent-{codec.name.lower()}"
    assert player.play(server.addresses[0], topic, codec.name.lower()) == GOOD
    wanted = FetchTopic(topic, [FetchPartition(0, 0, 1 << 20)])
    request = FetchRequest(max_wait_ms=0, max_bytes=1 << 20, topics=[wanted])
    part = server.wire().call(ApiKey.FETCH, 5, request).responses[0].partitions[0]
    return RecordBatch(bytearray(part.records)).codec


@pytest.mark.parametrize("name", ["0.11", "3.9", "4.3"])
def test_what_is_compressed_stays_so(servers: Servers, old: Player, name: str) -> None:
    """Compressed records are returned compressed by every emulated release."""
    server = servers.fresh(settings=SETTINGS)
    server.control("PUT", "/v1/versions", {"as_version": name})
    assert [codec_sent(server, old, codec) for codec in TRAPPED] == list(TRAPPED)


def test_the_trap_can_be_set(servers: Servers, old: Player) -> None:
    """By hand, as on a broker that lists what it serves: the same producers send their batches as they are."""
    server = servers.fresh(settings=SETTINGS)
    server.control("PUT", "/v1/versions", {"Produce": {"min": 3, "max": 13}})
    assert [codec_sent(server, old, codec) for codec in TRAPPED] == [Codec.NONE] * len(TRAPPED)
