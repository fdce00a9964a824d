"""What messages speak of: found by the names of their fields, for every API."""

import pytest

from broker.handlers import APIS
from broker.request.api import ServedVersions
from protocol.apis import ApiKey
from protocol.codec import message_class
from protocol.items import KINDS, Selection, cut, items_of, mentions, request_level, response_level
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

# Each API's request and response: t(opic), p(artition), g(roup), x (transactional id).
NAMED = """
Produce tpx tp; Fetch tp tp; ListOffsets tp tp; Metadata t tp; OffsetCommit tpg tp; OffsetFetch tpg tpg;
FindCoordinator gx gx; JoinGroup g -; Heartbeat g -; LeaveGroup g -; SyncGroup g -; DescribeGroups g g; ListGroups - g;
SaslHandshake - -; ApiVersions - -; CreateTopics t t; DeleteTopics t t; DeleteRecords tp tp; InitProducerId x -;
OffsetForLeaderEpoch tp tp; AddPartitionsToTxn tpx tpx; AddOffsetsToTxn gx -; EndTxn x -; WriteTxnMarkers tp tp;
TxnOffsetCommit tpgx tp; DescribeConfigs t t; AlterConfigs t t; AlterReplicaLogDirs tp tp; DescribeLogDirs tp tp;
SaslAuthenticate - -; CreatePartitions t t; DeleteGroups g g; ElectLeaders tp tp; IncrementalAlterConfigs t t;
AlterPartitionReassignments tp tp; ListPartitionReassignments tp tp; OffsetDelete tpg tp; DescribeQuorum tp tp;
UpdateFeatures - -; DescribeCluster - -; DescribeProducers tp tp; UnregisterBroker - -; DescribeTransactions x tpx;
ListTransactions - x; GetTelemetrySubscriptions - -; PushTelemetry - -; ListConfigResources - t;
DescribeTopicPartitions t tp;
"""
EXPECTED = {
    name: (asks, answers) for name, asks, answers in (line.split() for line in NAMED.split(";") if line.strip())
}


def letters(kinds: frozenset[str]) -> str:
    """As the table writes them."""
    return "".join("x" if kind == "transactional_id" else kind[0] for kind in KINDS if kind in kinds) or "-"


@pytest.mark.parametrize("api", [api for api in APIS if api.key.title in EXPECTED], ids=lambda api: api.key.title)
def test_the_topics_groups_and_ids_of_each_api_are_found(api: ServedVersions) -> None:
    """The table was read from Kafka's schemas; an API that is not in it yet gets a line."""
    kinds = letters(request_level(api.key).kinds), letters(response_level(api.key).kinds)
    assert kinds == EXPECTED[api.key.title]


def test_a_request_is_cut_into_what_is_meant_and_the_rest() -> None:
    """Partition by partition, the request itself unchanged."""
    request = ListOffsetsRequest(
        -1,
        [
            ListOffsetsTopic("t", [ListOffsetsPartition(0, -1), ListOffsetsPartition(1, -1)]),
            ListOffsetsTopic("u", [ListOffsetsPartition(0, -1)]),
        ],
    )
    before = repr(request)
    wanted = Selection(topic="t", partition=1)
    hit, rest = cut(request_level(ApiKey.LIST_OFFSETS), request, wanted, wanted.kinds)
    assert hit is not None
    assert rest is not None
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in hit.topics] == [("t", [1])]
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in rest.topics] == [("t", [0]), ("u", [0])]
    assert repr(request) == before


def test_conditions_hold_for_the_same_item() -> None:
    """Topic t of transaction a, not of b."""
    request = AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction("a", 1, 0, topics=[AddPartitionsToTxnTopic("t", [0])]),
            AddPartitionsToTxnTransaction("b", 1, 0, topics=[AddPartitionsToTxnTopic("u", [0])]),
        ]
    )
    level = request_level(ApiKey.ADD_PARTITIONS_TO_TXN)
    assert mentions(level, request, Selection(topic="t", partition=0, transactional_id="a"))
    assert not mentions(level, request, Selection(topic="t", partition=0, transactional_id="b"))
    assert not mentions(level, request, Selection(topic="t", partition=1))


def test_keys_of_coordinators_are_groups_or_transactional_ids_by_their_type() -> None:
    """FindCoordinator: 0 is a group, 1 a transactional id."""
    level = request_level(ApiKey.FIND_COORDINATOR)
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=["k"])
    assert mentions(level, request, Selection(transactional_id="k"))
    assert not mentions(level, request, Selection(group="k"))


def test_a_resource_is_a_topic_by_its_type() -> None:
    """A broker called 1 is no topic called 1."""
    level = request_level(ApiKey.DESCRIBE_CONFIGS)
    topic, broker = DescribeConfigsResource(2, "1"), DescribeConfigsResource(4, "1")
    wanted = Selection(topic="1")
    hit, rest = cut(level, DescribeConfigsRequest([topic, broker]), wanted, wanted.kinds)
    assert hit is not None
    assert rest is not None
    assert (hit.resources, rest.resources) == ([topic], [broker])
    group = DescribeConfigsResource(32, "g")
    named = [item.topic for item in items_of(level, DescribeConfigsRequest([broker, topic, group]))]
    assert named == [None, "1", None], "a journal does not list them as topics, either"


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.key.title)
def test_an_empty_request_mentions_nothing(api: ServedVersions) -> None:
    """Looking for a topic in it does not fail either."""
    request = message_class(api.key, "Request")()
    assert not mentions(request_level(api.key), request, Selection("t", 0, "g", "x"))
