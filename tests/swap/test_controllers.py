"""The directories of three controllers and a broker, continued by Kafka's processes, and by ours again."""

from pathlib import Path

import pytest

from comparison.target import Target
from protocol.apis import ApiKey
from protocol.messages.api_versions import ApiVersionsRequest
from protocol.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from protocol.messages.metadata import MetadataRequest
from protocol.types import uuid_text
from tests.clients.targets import oracle_release
from tests.differential.quorum import KafkaQuorum, directory_id
from tests.scenarios.core.asking import created, fetch, produced, records_of
from tests.scenarios.core.batches import batch
from tests.serving import Server, start, until
from tests.storage.kafka_tools import need_kafka
from tests.wire import Wire

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]
CONTROLLERS = (3000, 3001, 3002)


class Laid(KafkaQuorum):
    """Kafka's processes, with directories where ours are."""

    def data(self, node: int) -> Path:
        """As `--controllers` lays them out."""
        return self.folder / "data" / f"{'controller' if node in CONTROLLERS else 'broker'}-{node}"


class Continued(Laid):
    """Kafka's processes over directories that are formatted."""

    def _format(self, *, dynamic: bool) -> None:
        """Nothing is left to do."""


def ours(folder: Path, *, dynamic: bool) -> Server:
    """A cluster of the release of the real one, with three controllers; ``dynamic``: the log has the voters."""
    features = {"features": {"kraft.version": 1}} if dynamic else {}
    return Server(start(controllers=3, data_dir=str(folder / "data"), as_version=oracle_release(), **features))


def controller_ports(server: Server) -> dict[int, int]:
    """Where the controllers listen."""
    return {each["id"]: each["port"] for each in server.control("GET", "/v1/cluster")["controllers"]}


def topics(wire: Wire) -> set[str]:
    """The names of all topics."""
    return {each.name for each in wire.call(ApiKey.METADATA, 12, MetadataRequest(None)).topics}


def quorum(address: str) -> tuple[int, dict[int, int], set[int]]:
    """The leader's epoch, the voters with their ports, and the observers, as a broker describes them."""
    side = Target(address)
    try:
        request = DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])
        response = side.call(ApiKey.DESCRIBE_QUORUM, 2, request)
    finally:
        side.close()
    ((described,),) = [each.partitions for each in response.topics]
    ports = {each.node_id: each.listeners[0].port for each in response.nodes}
    voters = {each.replica_id: ports[each.replica_id] for each in described.current_voters}
    return described.leader_epoch, voters, {each.replica_id for each in described.observers}


def kraft_version(wire: Wire) -> int:
    """The finalized level; 0 if the voters are configured."""
    features = wire.call(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("test", "1")).finalized_features
    return next((each.max_version_level for each in features if each.name == "kraft.version"), 0)


def stop(kafka: KafkaQuorum) -> None:
    """End all nodes in good order."""
    for node in (1, *CONTROLLERS):
        kafka.end(node, clean=True)


@pytest.mark.parametrize("dynamic", [False, True], ids=["configured", "recorded"])
def test_kafka_continues_with_three_controllers_and_we_after_it(tmp_path: Path, dynamic: bool) -> None:
    """Topics, records and voters stay, the epoch only rises; each side reads what the other one wrote."""
    need_kafka()
    server = ours(tmp_path, dynamic=dynamic)
    wire = server.wire()
    created(wire, "before")
    produced(wire, "before", batch(b"a", b"b"))
    server.control("POST", "/v1/controllers/3000/kill")
    created(wire, "after-a-failure")
    server.control("POST", "/v1/controllers/3000/start")
    epoch, voters, _ = quorum(server.addresses[0])
    ports = controller_ports(server)
    assert voters == ports
    assert kraft_version(wire) == dynamic
    server.stop()

    kafka = Continued(tmp_path, dynamic=dynamic, ports=ports)
    try:
        kafka.start()
        wire = Wire(kafka.bootstrap)
        assert {"before", "after-a-failure"} <= topics(wire)
        until(lambda: not fetch(wire, "before").error_code, "the partition to have its leader", 60)
        assert [record.value for record in records_of(fetch(wire, "before"))] == [b"a", b"b"]
        later, voters, observers = quorum(kafka.bootstrap)
        assert later > epoch
        assert (voters, observers) == (ports, {1})
        assert kraft_version(wire) == dynamic
        created(wire, "of-kafka")
        until(lambda: not fetch(wire, "of-kafka").error_code, "the new partition to have its leader", 60)
        produced(wire, "before", batch(b"c"))
        wire.close()
        stop(kafka)
    finally:
        kafka.close()

    server = ours(tmp_path, dynamic=dynamic)
    wire = server.wire()
    assert {"before", "after-a-failure", "of-kafka"} <= topics(wire)
    assert [record.value for record in records_of(fetch(wire, "before"))] == [b"a", b"b", b"c"]
    last, voters, _ = quorum(server.addresses[0])
    assert last > later
    assert voters == controller_ports(server)
    assert kraft_version(wire) == dynamic
    server.stop()


def test_recorded_voters_of_kafka_are_continued_by_us_and_by_kafka_again(tmp_path: Path) -> None:
    """Its directory ids stay, our ports replace the recorded ones, and Kafka's controllers find each other by them."""
    need_kafka()
    kafka: KafkaQuorum = Laid(tmp_path, dynamic=True)
    try:
        kafka.start()
        wire = Wire(kafka.bootstrap)
        created(wire, "of-kafka")
        epoch, voters, _ = quorum(kafka.bootstrap)
        wire.close()
        stop(kafka)
    finally:
        kafka.close()
    assert set(voters) == set(CONTROLLERS)

    server = ours(tmp_path, dynamic=True)
    wire = server.wire()
    assert "of-kafka" in topics(wire)
    created(wire, "of-ours")
    ports = controller_ports(server)
    later, voters, _ = quorum(server.addresses[0])
    assert later > epoch
    assert voters == ports
    directories = {each["id"]: each["directory_id"] for each in server.control("GET", "/v1/cluster")["controllers"]}
    assert directories == {each: uuid_text(directory_id(each)) for each in CONTROLLERS}
    server.stop()

    kafka = Continued(tmp_path, dynamic=True, ports=ports)
    try:
        kafka.start()
        wire = Wire(kafka.bootstrap)
        assert {"of-kafka", "of-ours"} <= topics(wire)
        last, voters, observers = quorum(kafka.bootstrap)
        assert last > later
        assert (voters, observers) == (ports, {1})
        wire.close()
    finally:
        kafka.close()
