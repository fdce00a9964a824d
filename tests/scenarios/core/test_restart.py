"""A cluster that is started again on its data directory: what is restored, and what is new."""

from pathlib import Path

import pytest

from protocol.apis import ApiKey
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.conftest import BrokerWith
from tests.scenarios.core.asking import created
from tests.scenarios.on_kafka import TARGET, ours_alone
from tests.server import Server


def _leader_epoch(server: Server, name: str) -> int:
    request = MetadataRequest([MetadataRequestTopic(name)], allow_auto_topic_creation=False)
    (topic,) = server.wire().call(ApiKey.METADATA, 12, request).topics
    epoch: int = topic.partitions[0].leader_epoch
    return epoch


@pytest.mark.parametrize("clean", [True, False])
def test_a_seed_draws_other_ids_in_another_life(broker_with: BrokerWith, tmp_path: Path, clean: bool) -> None:
    """A topic made after a restart has an id of its own; and the broker is new to its cluster: epochs go on by two."""
    if TARGET == "kafka":
        ours_alone("a seed")
    ids = []
    for life in range(3):
        server = broker_with(data_dir=str(tmp_path / "data"), seed=7)
        ids.append(created(server.wire(), f"topic-{life}"))
        assert _leader_epoch(server, "topic-0") == 2 * life
        server.stop() if clean else server.kill()
    assert len(set(ids)) == 3
