"""A whole cluster goes from Understudy to Apache Kafka: same answers, record by record, and its clients go on."""

from pathlib import Path

import pytest

from tests.storage.kafka_tools import need_kafka
from tests.swap.contents import GROUPS, check_gone_on, fill, go_on
from tests.swap.looking import UNCOMMITTED, look
from tests.swap.nodes import Node, ThreeNodes

CHECKPOINT_MS = 5000
"""replica.high.watermark.checkpoint.interval.ms"""
pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_kafka_goes_on_with_what_we_wrote(node: Node, clean: bool) -> None:
    """Records, bounds, offsets, members and settings are those that we returned; then clients go on, and so do we."""
    ours = node.start_ours()
    clients = fill(node.bootstrap)
    compacted = [ours.control("POST", "/v1/compaction/run")["logs_cleaned"] for _ in range(2)]
    assert compacted[0] > 4
    assert compacted[1] == 0
    ours.advance(CHECKPOINT_MS)  # where a log starts is written down by then, as far as DeleteRecords moved it
    answer = look(node.bootstrap, GROUPS)
    assert len(answer.records["compacted", 0, UNCOMMITTED]) < answer.bounds["compacted", 0, UNCOMMITTED][1] / 2
    node.stop(clean=clean)
    assert len(list(node.data.glob("codecs-0/*.log"))) > 2
    assert node.metadata_begins_with_a_snapshot()
    node.start_kafka()
    assert look(node.bootstrap, GROUPS) == answer
    go_on(clients)
    after = look(node.bootstrap, GROUPS)
    check_gone_on(answer, after)
    assert node.kafka_complaints() == []
    node.stop()
    node.start_ours()
    assert look(node.bootstrap, GROUPS) == after
    clients.close()


def test_three_brokers_go_on_as_three_nodes(tmp_path: Path) -> None:
    """Each takes its directory; every partition has three replicas, and the clients go on."""
    need_kafka()
    nodes = ThreeNodes(tmp_path)
    try:
        nodes.start_ours()
        clients = fill(nodes.bootstrap, replicas=3)
        answer = look(nodes.bootstrap, GROUPS)
        nodes.stop()
        nodes.start_kafka()
        assert look(nodes.bootstrap, GROUPS) == answer
        go_on(clients)
        check_gone_on(answer, look(nodes.bootstrap, GROUPS))
        clients.close()
    finally:
        nodes.stop()
