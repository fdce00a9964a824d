"""The directories of three controllers and a broker, continued by Kafka's processes, and by ours again."""

from pathlib import Path

import pytest

from comparison.target import Target
from protocol.apis import ApiKey
from protocol.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from protocol.messages.metadata import MetadataRequest
from tests.clients.targets import oracle_release
from tests.differential.quorum import KafkaQuorum
from tests.scenarios.core.asking import created, fetch, produced, records_of
from tests.scenarios.core.batches import batch
from tests.serving import Server, start, until
from tests.storage.kafka_tools import need_kafka
from tests.wire import Wire

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]
CONTROLLERS = (3000, 3001, 3002)


class Continued(KafkaQuorum):
    """Kafka's processes over directories of ours."""

    def data(self, node: int) -> Path:
        """As `--controllers` lays them out."""
        return self.folder / "data" / f"{'controller' if node in CONTROLLERS else 'broker'}-{node}"

    def _format(self, *, dynamic: bool) -> None:
        """They are formatted."""


def ours(folder: Path) -> Server:
    """A cluster of the release of the real one, with three controllers."""
    return Server(start(controllers=3, data_dir=str(folder / "data"), as_version=oracle_release()))


def topics(wire: Wire) -> set[str]:
    """The names of all topics."""
    return {each.name for each in wire.call(ApiKey.METADATA, 12, MetadataRequest(None)).topics}


def quorum(address: str) -> tuple[int, set[int], set[int]]:
    """The leader's epoch, the voters, and the observers, as a broker describes them."""
    side = Target(address)
    try:
        request = DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])
        ((described,),) = [each.partitions for each in side.call(ApiKey.DESCRIBE_QUORUM, 2, request).topics]
    finally:
        side.close()
    voters = {each.replica_id for each in described.current_voters}
    return described.leader_epoch, voters, {each.replica_id for each in described.observers}


def test_kafka_continues_with_three_controllers_and_we_after_it(tmp_path: Path) -> None:
    """Topics, records and voters stay, the epoch only rises; each side writes more, which the other one reads."""
    need_kafka()
    server = ours(tmp_path)
    wire = server.wire()
    created(wire, "before")
    produced(wire, "before", batch(b"a", b"b"))
    server.control("POST", "/v1/controllers/3000/kill")
    created(wire, "after-a-failure")
    server.control("POST", "/v1/controllers/3000/start")
    epoch, voters, _ = quorum(server.addresses[0])
    assert voters == set(CONTROLLERS)
    server.stop()

    kafka = Continued(tmp_path)
    try:
        kafka.start()
        wire = Wire(kafka.bootstrap)
        assert {"before", "after-a-failure"} <= topics(wire)
        until(lambda: not fetch(wire, "before").error_code, "the partition to have its leader", 60)
        assert [record.value for record in records_of(fetch(wire, "before"))] == [b"a", b"b"]
        later, voters, observers = quorum(kafka.bootstrap)
        assert later > epoch
        assert (voters, observers) == (set(CONTROLLERS), {1})
        created(wire, "of-kafka")
        until(lambda: not fetch(wire, "of-kafka").error_code, "the new partition to have its leader", 60)
        produced(wire, "before", batch(b"c"))
        wire.close()
        for node in (1, *CONTROLLERS):
            kafka.end(node, clean=True)
    finally:
        kafka.close()

    server = ours(tmp_path)
    wire = server.wire()
    assert {"before", "after-a-failure", "of-kafka"} <= topics(wire)
    assert [record.value for record in records_of(fetch(wire, "before"))] == [b"a", b"b", b"c"]
    last, voters, _ = quorum(server.addresses[0])
    assert last > later
    assert voters == set(CONTROLLERS)
    server.stop()
