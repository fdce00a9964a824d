"""Steps of transactional producers, and the looks at their transactions."""

from typing import Any

from comparison.histories.asked import Asked, Builder, Settle, Step
from comparison.side import Producer, Side
from protocol.apis import ApiKey
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.messages.describe_transactions import DescribeTransactionsRequest
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.list_transactions import ListTransactionsRequest
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from protocol.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest

MOST_TIMEOUT_MS = 900_000
"""No transaction shall run out while histories are played."""
FIRST_BATCHED_ADD = 4
FIRST_LISTED_BY_PATTERN = 2
FIRST_WITH_EPOCH_BACK = 5


def init_producer(side: Side, step: Step) -> Asked:
    """InitProducerId; `again` says the epoch that the producer has, as clients do to get over an error (KIP-360)."""
    symbol, name = step["producer"], step.get("transactional_id")
    known = side.producers.get(symbol)
    request = InitProducerIdRequest(
        None if name is None else side.called(name), step.get("timeout_ms", MOST_TIMEOUT_MS)
    )
    if step.get("again") and known is not None:
        request.producer_id, request.producer_epoch = known.id, known.epoch + step.get("epoch_shift", 0)

    def after(answer: Any) -> None:
        if not answer.error_code:
            side.names.name("producer", answer.producer_id)
            producer = side.producers.setdefault(symbol, Producer(name))
            producer.transactional_id = name
            producer.became(answer.producer_id, answer.producer_epoch)

    settle = Settle.NOTHING if name is None else Settle.TRANSACTION
    return Asked(ApiKey.INIT_PRODUCER_ID, step["v"], request, step["c"], after, settle, name or "")


def _who(side: Side, step: Step) -> tuple[str, int, int]:
    producer = side.producer(step["producer"])
    name = step.get("transactional_id") or producer.transactional_id or "nobody"
    return side.called(name), producer.id, producer.epoch + step.get("epoch_shift", 0)


def add_partitions(side: Side, step: Step) -> Asked:
    """AddPartitionsToTxn; from version 4 on it is a broker that asks, maybe only whether they are in it."""
    name, producer_id, epoch = _who(side, step)
    topics = [AddPartitionsToTxnTopic(side.called(topic), parts) for topic, parts in step["partitions"].items()]
    if step["v"] >= FIRST_BATCHED_ADD:
        one = AddPartitionsToTxnTransaction(name, producer_id, epoch, step.get("verify", False), topics)
        request = AddPartitionsToTxnRequest(transactions=[one])
    else:
        request = AddPartitionsToTxnRequest(name, producer_id, epoch, topics)
        request.transactions = [AddPartitionsToTxnTransaction(name, producer_id, epoch, False, topics)]
    return Asked(ApiKey.ADD_PARTITIONS_TO_TXN, step["v"], request, step["c"])


def add_offsets(side: Side, step: Step) -> Asked:
    """AddOffsetsToTxn."""
    request = AddOffsetsToTxnRequest(*_who(side, step), side.called(step["group"]))
    return Asked(ApiKey.ADD_OFFSETS_TO_TXN, step["v"], request, step["c"])


def commit_in_transaction(side: Side, step: Step) -> Asked:
    """TxnOffsetCommit; for a member of the group where the step names one."""
    name, producer_id, epoch = _who(side, step)
    partition = TxnOffsetCommitRequestPartition(step["partition"], step["offset"], step.get("metadata", ""))
    topics = [TxnOffsetCommitRequestTopic(side.called(step["topic"]), [partition])]
    request = TxnOffsetCommitRequest(name, side.called(step["group"]), producer_id, epoch, topics)
    if "member" in step:
        member = side.member(step["member"], step["group"])
        request.generation_id = member.generation + step.get("generation_shift", 0)
        request.member_id, request.group_instance_id = member.id, member.instance_id
    return Asked(ApiKey.TXN_OFFSET_COMMIT, step["v"], request, step["c"])


def end_transaction(side: Side, step: Step) -> Asked:
    """EndTxn; from version 5 on it may give the next epoch."""
    producer = side.producer(step["producer"])
    name, producer_id, epoch = _who(side, step)
    request = EndTxnRequest(name, producer_id, epoch, step["commit"])

    def after(answer: Any) -> None:
        if not answer.error_code and step["v"] >= FIRST_WITH_EPOCH_BACK and answer.producer_id >= 0:
            producer.became(answer.producer_id, answer.producer_epoch)

    about = step.get("transactional_id") or producer.transactional_id or "nobody"
    return Asked(ApiKey.END_TXN, step["v"], request, step["c"], after, Settle.TRANSACTION, about)


def write_marker(side: Side, step: Step) -> Asked:
    """WriteTxnMarkers of one producer to one partition, as an administrator does who aborts a hanging transaction."""
    producer = side.producer(step["producer"])
    topics = [WritableTxnMarkerTopic(side.called(step["topic"]), [step["partition"]])]
    epoch = producer.epoch + step.get("epoch_shift", 0)
    marker = WritableTxnMarker(producer.id, epoch, step["commit"], topics, step.get("coordinator_epoch", 0))
    return Asked(ApiKey.WRITE_TXN_MARKERS, step["v"], WriteTxnMarkersRequest([marker]), step["c"])


def describe_transaction(side: Side, step: Step) -> Asked:
    """DescribeTransactions of one id."""
    request = DescribeTransactionsRequest([side.called(step["transactional_id"])])
    return Asked(ApiKey.DESCRIBE_TRANSACTIONS, step["v"], request, step["c"], reads=True)


def list_transactions(side: Side, step: Step) -> Asked:
    """ListTransactions of this history's ids."""
    request = ListTransactionsRequest(step.get("states", []), [], -1, f"{side.names.prefix}.*")
    return Asked(ApiKey.LIST_TRANSACTIONS, step["v"], request, step["c"], reads=True)


STEPS: dict[str, Builder] = {
    "init_producer": init_producer,
    "add_partitions": add_partitions,
    "add_offsets": add_offsets,
    "commit_in_transaction": commit_in_transaction,
    "end_transaction": end_transaction,
    "write_marker": write_marker,
    "describe_transaction": describe_transaction,
    "list_transactions": list_transactions,
}
