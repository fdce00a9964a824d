"""The rows about the rights that transactions need; core G.8 is in tests/scenarios/core (transactions H.1 to H.4)."""

from typing import Any

from protocol.acls import CLUSTER_NAME
from protocol.acls import AclOperation as Op
from protocol.acls import ResourceType as Kind
from protocol.apis import ApiKey
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.scenarios.guarded import Guarded
from tests.wire import Wire


def begun(wire: Wire, name: str | None) -> InitProducerIdResponse:
    """InitProducerId, once there is a coordinator."""
    if name is not None:
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=[name])
        while wire.call(ApiKey.FIND_COORDINATOR, 4, request).coordinators[0].error_code == 15:
            pass
    response: InitProducerIdResponse = wire.call(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(name, 60_000))
    return response


def test_IPI_25_a_producer_needs_a_right_for_its_name(guarded: Guarded) -> None:
    """And a nameless one IDEMPOTENT_WRITE, or any topic to write to (KIP-679)."""
    begun(guarded.admin, "T")
    for name, refused, right in (
        ("T", 53, (Op.WRITE, Kind.TRANSACTIONAL_ID, "T")),
        (None, 31, (Op.IDEMPOTENT_WRITE, Kind.CLUSTER, CLUSTER_NAME)),
        (None, 31, (Op.WRITE, Kind.TOPIC, "not-there")),
    ):
        guarded.forget()
        answer = guarded.client.call(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(name, 60_000))
        assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (refused, -1, -1)
        guarded.allow(right)
        assert guarded.client.call(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(name, 60_000)).error_code == 0


def test_IPI_25_what_is_denied_everywhere_is_somewhere_too(guarded: Guarded) -> None:
    """A denial on * outweighs the one topic that may be written to."""
    guarded.allow((Op.WRITE, Kind.TOPIC, "foo"))
    assert begun(guarded.client, None).error_code == 0
    guarded.deny((Op.WRITE, Kind.TOPIC, "*"))
    assert begun(guarded.client, None).error_code == 31


def test_ADD_05_a_topic_that_may_not_be_written_spoils_the_others(guarded: Guarded) -> None:
    """OPERATION_NOT_ATTEMPTED for what could have been added."""
    producer = begun(guarded.admin, "T")
    guarded.allow((Op.WRITE, Kind.TRANSACTIONAL_ID, "T"), (Op.WRITE, Kind.TOPIC, "foo"))

    def added(*names: str) -> dict[str, int]:
        topics = [AddPartitionsToTxnTopic(name, [0]) for name in names]
        request = AddPartitionsToTxnRequest("T", producer.producer_id, producer.producer_epoch, topics)
        answer = guarded.client.call(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request)
        return {each.name: _code(each) for each in answer.results_by_topic_v3_and_below}

    assert added("foo", "bar") == {"foo": 55, "bar": 29}
    assert added("foo") == {"foo": 0}


def _code(topic: Any) -> int:
    (partition,) = topic.results_by_partition
    return int(partition.partition_error_code)


def test_ADD_12_only_brokers_add_for_others(guarded: Guarded) -> None:
    """v4 and later need CLUSTER_ACTION, and nothing else."""
    producer = begun(guarded.admin, "T")
    topics = [AddPartitionsToTxnTopic("foo", [0])]
    one = AddPartitionsToTxnTransaction("T", producer.producer_id, producer.producer_epoch, False, topics)
    request = AddPartitionsToTxnRequest(transactions=[one])
    guarded.allow((Op.WRITE, Kind.TRANSACTIONAL_ID, "T"), (Op.WRITE, Kind.TOPIC, "foo"))
    answer = guarded.client.call(ApiKey.ADD_PARTITIONS_TO_TXN, 4, request)
    assert (answer.error_code, list(answer.results_by_transaction)) == (31, [])
    guarded.forget()
    guarded.allow((Op.CLUSTER_ACTION, Kind.CLUSTER, CLUSTER_NAME))
    answer = guarded.client.call(ApiKey.ADD_PARTITIONS_TO_TXN, 4, request)
    assert answer.error_code == 0
    ((topic,),) = [each.topic_results for each in answer.results_by_transaction]
    assert _code(topic) == 0


def test_MRK_09_markers_are_written_by_brokers_and_administrators(guarded: Guarded) -> None:
    """ALTER or CLUSTER_ACTION; without either right each partition is refused."""
    producer = begun(guarded.admin, None)
    topics = [WritableTxnMarkerTopic("foo", [0]), WritableTxnMarkerTopic("bar", [0])]
    marker = WritableTxnMarker(producer.producer_id, producer.producer_epoch, False, topics, 0)

    def written() -> list[int]:
        answer = guarded.client.call(ApiKey.WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest([marker]))
        return [part.error_code for each in answer.markers for topic in each.topics for part in topic.partitions]

    assert written() == [31, 31]
    for operation in (Op.ALTER, Op.CLUSTER_ACTION):
        guarded.forget()
        guarded.allow((operation, Kind.CLUSTER, CLUSTER_NAME))
        assert written() == [0, 0]
