"""Brokers that are larger or later than what is known here: no client is led past the proxy."""

import struct
from collections.abc import Iterator
from typing import Any, cast

import pytest

from protocol.apis import ApiKey
from protocol.codec import RequestHeader, known_versions
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse
from protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from protocol.readers import MOST_ELEMENTS
from protocol.types import Message
from tests.proxy.conftest import ProxyTo
from tests.proxy.scripted import Scripted
from tests.serving import until
from tests.wire import Closed, framed, header

LATER = cast("Any", 9999)
"""An error code that no release has so far."""


class Other(Scripted):
    """Its metadata has very many replicas, or an error that is unknown here, as the other answers have."""

    def __init__(self) -> None:
        super().__init__(self._response)
        self.replicas = 0

    def _response(self, header: RequestHeader) -> Message:
        match header.api_key:
            case ApiKey.API_VERSIONS:
                return ApiVersionsResponse()
            case ApiKey.FIND_COORDINATOR:
                return FindCoordinatorResponse(coordinators=[Coordinator("g", 1, "127.0.0.1", self.port, LATER)])
            case ApiKey.DESCRIBE_CLUSTER:
                brokers = [DescribeClusterBroker(1, "127.0.0.1", self.port)]
                return DescribeClusterResponse(error_code=LATER, cluster_id="other", brokers=brokers)
        topic = MetadataResponseTopic(name="t", error_code=LATER)
        if self.replicas:
            partition = MetadataResponsePartition(replica_nodes=range(self.replicas))
            topic = MetadataResponseTopic(name="t", partitions=[partition])
        return MetadataResponse([MetadataResponseBroker(1, "127.0.0.1", self.port)], [topic], cluster_id="other")


@pytest.fixture
def other() -> Iterator[Other]:
    """The broker."""
    broker = Other()
    yield broker
    broker.close()


def test_metadata_of_a_very_large_cluster_has_the_proxys_addresses(other: Other, proxy_to: ProxyTo) -> None:
    """An answer may have more elements than a request: each partition of three replicas has seven."""
    other.replicas = MOST_ELEMENTS + 1
    proxy = proxy_to(other.address)
    response = proxy.wire().call(ApiKey.METADATA, 9, MetadataRequest(topics=None))
    (broker,) = response.brokers
    assert f"{broker.host}:{broker.port}" == proxy.addresses[0]
    assert len(response.topics[0].partitions[0].replica_nodes) == other.replicas


@pytest.mark.parametrize(
    ("key", "version", "request_of"),
    [
        pytest.param(ApiKey.METADATA, 9, MetadataRequest(topics=None), id="Metadata"),
        pytest.param(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=["g"]), id="FindCoordinator"),
        pytest.param(ApiKey.DESCRIBE_CLUSTER, 0, DescribeClusterRequest(), id="DescribeCluster"),
    ],
)
def test_addresses_that_cannot_be_read_reach_no_client(
    other: Other, proxy_to: ProxyTo, key: ApiKey, version: int, request_of: Message
) -> None:
    """Its connection is closed, and the log has the reason."""
    proxy = proxy_to(other.address)
    since = proxy.log_position()
    with pytest.raises(Closed):
        proxy.wire().call(key, version, request_of)
    reason = "the broker's response has addresses in it, and cannot be read: 9999 is not a valid ErrorCode"

    def logged() -> list[Any]:
        return [each["api"] for each in proxy.log_lines(since) if each.get("reason") == reason]

    assert until(logged, "a line in the log") == [key.title]


def test_api_versions_of_a_later_release_are_refused(other: Other, proxy_to: ProxyTo) -> None:
    """A broker that serves it would offer what cannot be read here; the client asks again for less (KIP-511)."""
    low, high = known_versions(ApiKey.API_VERSIONS) or (0, 0)
    proxy = proxy_to(other.address)
    wire = proxy.wire()
    wire.send_bytes(framed(header(ApiKey.API_VERSIONS, high + 1) + b"\1\1\0"))
    assert wire.receive_frame() == struct.pack(">ihihhh", 7, 35, 1, ApiKey.API_VERSIONS, low, high)
    assert other.headers == []
    wire.call(ApiKey.API_VERSIONS, high, ApiVersionsRequest("c", "1"))
    assert [each.api_version for each in other.headers] == [high]
    seen = proxy.control("GET", "/v1/journal?api=ApiVersions")["entries"]
    assert [(each["version"], each["error"]) for each in seen] == [(high + 1, "UNSUPPORTED_VERSION"), (high, None)]


@pytest.mark.parametrize("key", [ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER])
def test_addresses_of_a_later_version_are_not_asked_for(other: Other, proxy_to: ProxyTo, key: ApiKey) -> None:
    """By a client that uses what ApiVersions did not offer: its connection is closed, as by a broker."""
    _, high = known_versions(key) or (0, 0)
    wire = proxy_to(other.address).wire()
    wire.send_bytes(framed(header(key, high + 1) + bytes(10)))
    wire.check_closed()
    assert other.headers == []
