"""What fills the directories of three brokers: replicated topics, transactions, a group, a replica that moves."""

from contextlib import closing

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in its __all__

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from tests.pipeline.traffic import done
from tests.serving import until
from tests.wire import Wire

SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "3",
    "log.index.interval.bytes": "200",
}
PATIENCE_S = 60
RECORDS = 60
"""Committed ones, in one topic."""


def make(bootstrap: str) -> None:
    """Everything, once; a replica of `moved` goes from broker 1 to 3 in the middle."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = [
        NewTopic("everywhere", 2, 3, config={"internal.segment.bytes": "3000"}),
        NewTopic("moved", replica_assignment=[[1, 2]], num_partitions=1),
    ]
    done(admin.create_topics(wanted))
    _transactions(bootstrap)
    _move(bootstrap, [2, 3])
    _transactions(bootstrap)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe(["everywhere"])
    assert len(consumer.consume(RECORDS, PATIENCE_S)) == RECORDS
    consumer.commit(asynchronous=False)
    consumer.close()


def _transactions(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "writer"})
    producer.init_transactions(PATIENCE_S)
    for turn in range(6):
        producer.begin_transaction()
        for number in range(20):
            producer.produce("everywhere", b"v%d" % number * 9, b"k%d" % number, number % 2)
            producer.produce("moved", b"v%d" % number * 9, b"k%d" % number, 0)
        assert producer.flush(PATIENCE_S) == 0
        (producer.abort_transaction if turn % 3 == 1 else producer.commit_transaction)(PATIENCE_S)


def _move(bootstrap: str, replicas: list[int]) -> None:
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic("moved", [ReassignablePartition(0, replicas)])]
    )
    with closing(Wire(bootstrap.partition(",")[0])) as wire:
        answer = wire.call(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, request)
        assert [each.error_code for each in answer.responses[0].partitions] == [ErrorCode.NONE]
        until(
            lambda: not wire.call(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, ListPartitionReassignmentsRequest()).topics,
            "the end of the move",
        )
