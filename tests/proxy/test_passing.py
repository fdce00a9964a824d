"""What passes the proxy: addresses in every version, bytes that it cannot read, the ends of connections, SASL."""

import socket
import struct
import urllib.request
from typing import Any

import pytest

from protocol.apis import ApiKey
from protocol.codec import known_versions
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.describe_cluster import DescribeClusterRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.metadata import MetadataRequest
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.records import Record, build_batch
from tests.conftest import BrokerWith
from tests.proxy.conftest import ProxyTo
from tests.serving import Server, until
from tests.wire import Closed, Wire, framed, header


@pytest.fixture
def three(broker_with: BrokerWith) -> Server:
    """Three brokers of ours, behind the proxy."""
    server = broker_with(brokers=3, topics={"t": 3})
    server.make_coordinators()
    return server


@pytest.fixture
def proxy(three: Server, proxy_to: ProxyTo) -> Server:
    """A proxy in front of them."""
    return proxy_to(three.addresses[0])


def versions(key: ApiKey, low: int = 0) -> list[Any]:
    """Every version of an API that a broker of ours serves."""
    known = known_versions(key)
    assert known is not None
    return [pytest.param(key, version, id=f"{key.title}-{version}") for version in range(low, known[1] + 1)]


REQUESTS = {
    ApiKey.METADATA: MetadataRequest(topics=None),
    ApiKey.DESCRIBE_CLUSTER: DescribeClusterRequest(),
    ApiKey.FIND_COORDINATOR: FindCoordinatorRequest(key="g", coordinator_keys=["g"]),
}


def without_addresses(response: Any) -> Any:
    """A response whose brokers are at no address."""
    changed: dict[str, Any] = {
        name: [each.changed(host="", port=0) for each in getattr(response, name)]
        for name in ("brokers", "coordinators")
        if getattr(response, name, None)
    }
    if getattr(response, "host", None):
        changed |= {"host": "", "port": 0}
    return response.changed(**changed)


@pytest.mark.parametrize(
    ("key", "version"),
    [*versions(ApiKey.METADATA, 1), *versions(ApiKey.DESCRIBE_CLUSTER), *versions(ApiKey.FIND_COORDINATOR)],
)
def test_addresses_are_the_proxys_and_all_else_is_the_brokers(
    three: Server, proxy: Server, key: ApiKey, version: int
) -> None:
    """In every version: only host and port differ from the direct answer, and each leads to the broker it names."""
    request = REQUESTS[key]
    direct, passed = three.wire().call(key, version, request), proxy.wire().call(key, version, request)
    assert without_addresses(passed) == without_addresses(direct)
    listed = [*getattr(passed, "brokers", ()), *getattr(passed, "coordinators", ())]
    assert listed
    known = {f"{each['host']}:{each['port']}": each["id"] for each in proxy.control("GET", "/v1/cluster")["brokers"]}
    for each in listed:
        address = f"{each.host}:{each.port}"
        assert address not in three.addresses
        assert known[address] == getattr(each, "broker_id", getattr(each, "node_id", None))


def test_a_leader_hint_leads_through_the_proxy(proxy: Server) -> None:
    """Beside NOT_LEADER_OR_FOLLOWER the answer has the new leader's endpoint (KIP-951): the proxy's for it."""
    metadata = proxy.wire().call(ApiKey.METADATA, 12, MetadataRequest(topics=None))
    (topic,) = [each for each in metadata.topics if each.name == "t"]
    leader = next(each.leader_id for each in topic.partitions if each.partition_index == 0)
    wrong = next(each for each in metadata.brokers if each.node_id != leader)
    with Wire(f"{wrong.host}:{wrong.port}") as wire:
        fetched = FetchRequest(
            max_bytes=1 << 20,
            topics=[FetchTopic(topic_id=topic.topic_id, partitions=[FetchPartition(0, partition_max_bytes=1 << 20)])],
        )
        response = wire.call(ApiKey.FETCH, 16, fetched)
    ports = {each.node_id: each.port for each in metadata.brokers}
    assert [(each.node_id, each.port) for each in response.node_endpoints] == [(leader, ports[leader])]


def test_brokers_beyond_the_last_port_have_a_free_one(three: Server, proxy_to: ProxyTo) -> None:
    """The first has the highest port that there is, so none follows it."""
    proxy = proxy_to(three.addresses[0], advertise="127.0.0.1:65535")
    (first,) = proxy.control("GET", "/v1/cluster")["brokers"]
    with Wire(f"127.0.0.1:{first['listeners'][0]['bound_port']}") as wire:
        brokers = wire.call(ApiKey.METADATA, 9, MetadataRequest(topics=None)).brokers
    assert [each.port for each in brokers if each.node_id == 1] == [65535]
    for each in brokers:
        address = f"{each.host}:{each.port}"
        assert address not in three.addresses
        if each.node_id != 1:
            with Wire(address) as wire:
                assert wire.call(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("c", "1")).api_keys


def test_what_is_unknown_passes_as_bytes(proxy: Server) -> None:
    """An API key that is not served reaches the broker, which closes the connection."""
    wire = proxy.wire()
    wire.send_bytes(framed(header(ApiKey.API_VERSIONS, 99)))
    assert wire.receive_frame()[:6] == struct.pack(">ih", 7, 35), "UNSUPPORTED_VERSION, from the proxy itself"
    wire.send_bytes(framed(header(999, 0)))
    with pytest.raises(Closed):
        wire.receive_frame()


def connections(server: Server) -> int:
    """Those that are open at a server of ours."""
    url = f"{server.process.ready.control_url}/metrics"
    lines = urllib.request.urlopen(url, timeout=60).read().decode().splitlines()  # noqa: S310 - ours
    return sum(int(float(line.split()[1])) for line in lines if line.startswith("understudy_connections{"))


def test_a_client_that_hangs_up_hangs_up_upstream(three: Server, proxy: Server) -> None:
    """Also in the middle of a long poll; and each client has one connection upstream."""
    wire = proxy.wire()
    wire.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    assert connections(three) == 1
    waiting = FetchRequest(max_wait_ms=60_000, min_bytes=1 << 20, max_bytes=1 << 20, topics=[])
    wire.send(ApiKey.FETCH, 12, waiting, answered=False)
    wire.close()
    until(lambda: connections(three) == 0, "the connection upstream is closed")


def test_a_client_that_sends_nothing_is_connected_too(three: Server, proxy: Server) -> None:
    """The broker counts it, and may close it: idle, or one connection too many."""
    wire = proxy.wire()
    until(lambda: connections(three) == 1, "a connection upstream")
    three.control("POST", "/v1/brokers/1/kill")
    wire.check_closed()


def test_a_client_of_a_broker_that_is_down_is_closed_at_once(proxy_to: ProxyTo) -> None:
    """It does not have to send a request to find out."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    proxy = proxy_to(f"127.0.0.1:{port}")
    proxy.wire().check_closed()


def test_a_broker_that_hangs_up_hangs_up_the_client(three: Server, proxy: Server) -> None:
    """A killed broker resets; the client's idle connection ends too."""
    wire = proxy.wire()
    wire.call(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    three.control("POST", "/v1/brokers/1/kill")
    with pytest.raises(Closed):
        wire.receive_frame()


@pytest.mark.parametrize("count", [1, 5])
def test_requests_that_ask_for_no_answer_pass_in_order(three: Server, proxy: Server, count: int) -> None:
    """acks=0, then a hang-up at once: the record is written all the same."""
    place = next(
        each["id"] for each in three.control("GET", "/v1/cluster")["brokers"]
        if each["id"] == three.control("GET", "/v1/topics/t/partitions/0")["leader"]
    )  # fmt: skip
    proxy.wire().call(ApiKey.METADATA, 12, MetadataRequest(topics=None))
    known = {each["id"]: f"{each['host']}:{each['port']}" for each in proxy.control("GET", "/v1/cluster")["brokers"]}
    with Wire(known[place]) as wire:
        produced = ProduceRequest(
            acks=0,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData("t", partition_data=[PartitionProduceData(0, build_batch([Record(0, 1, b"k", b"v")]))])
            ],
        )
        for _ in range(count):
            wire.send(ApiKey.PRODUCE, 9, produced, answered=False)

    def written() -> bool:
        return bool(three.control("GET", "/v1/topics/t/partitions/0")["high_watermark"] == count)

    until(written, "all records are written")
    seen = proxy.control("GET", "/v1/journal?api=Produce")["entries"]
    assert [each["outcome"] for each in seen] == ["asked for no answer"] * count
