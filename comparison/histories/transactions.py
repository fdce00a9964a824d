"""Steps of transactional producers, and descriptions of their transactions."""

from typing import Any

from comparison.histories.step_request import Builder, Settle, Step, StepRequest
from comparison.target import UNKNOWN_TRANSACTIONAL_ID, Producer, Target
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
"""Transaction timeout that is long enough while histories are played: the default of transaction.max.timeout.ms."""
FIRST_BATCHED_ADD = 4  # version of AddPartitionsToTxn (KIP-890)
FIRST_LISTED_BY_PATTERN = 2
FIRST_WITH_EPOCH_BACK = 5  # of EndTxn (KIP-890)


def init_producer(target: Target, step: Step) -> StepRequest:
    """InitProducerId; `again` sends the current id and epoch, as clients do to recover from an error (KIP-360)."""
    symbol, name = step["producer"], step.get("transactional_id")
    current = target.producers.get(symbol)
    request = InitProducerIdRequest(
        None if name is None else target.called(name), step.get("timeout_ms", MOST_TIMEOUT_MS)
    )
    if step.get("again") and current is not None:
        request.producer_id, request.producer_epoch = current.id, current.epoch + step.get("epoch_shift", 0)

    def after(answer: Any) -> None:
        if not answer.error_code:
            target.names.name("producer", answer.producer_id)
            producer = target.producers.setdefault(symbol, Producer(name))
            producer.transactional_id = name
            producer.became(answer.producer_id, answer.producer_epoch)

    settle = Settle.NOTHING if name is None else Settle.TRANSACTION
    return StepRequest(ApiKey.INIT_PRODUCER_ID, step["v"], request, step["c"], after, settle, name or "")


def _who(target: Target, step: Step) -> tuple[str, int, int]:
    producer = target.producer(step["producer"])
    name = step.get("transactional_id") or producer.transactional_id or UNKNOWN_TRANSACTIONAL_ID
    return target.called(name), producer.id, producer.epoch + step.get("epoch_shift", 0)


def add_partitions(target: Target, step: Step) -> StepRequest:
    """AddPartitionsToTxn; from version 4 on it is sent by brokers, and may only verify."""
    name, producer_id, epoch = _who(target, step)
    topics = [AddPartitionsToTxnTopic(target.called(topic), parts) for topic, parts in step["partitions"].items()]
    if step["v"] >= FIRST_BATCHED_ADD:
        one = AddPartitionsToTxnTransaction(name, producer_id, epoch, step.get("verify", False), topics)
        request = AddPartitionsToTxnRequest(transactions=[one])
    else:
        request = AddPartitionsToTxnRequest(name, producer_id, epoch, topics)
        request.transactions = [AddPartitionsToTxnTransaction(name, producer_id, epoch, False, topics)]
    return StepRequest(ApiKey.ADD_PARTITIONS_TO_TXN, step["v"], request, step["c"])


def add_offsets(target: Target, step: Step) -> StepRequest:
    """AddOffsetsToTxn."""
    request = AddOffsetsToTxnRequest(*_who(target, step), target.called(step["group"]))
    return StepRequest(ApiKey.ADD_OFFSETS_TO_TXN, step["v"], request, step["c"])


def commit_in_transaction(target: Target, step: Step) -> StepRequest:
    """TxnOffsetCommit; for a group member if the step names one."""
    name, producer_id, epoch = _who(target, step)
    partition = TxnOffsetCommitRequestPartition(step["partition"], step["offset"], step.get("metadata", ""))
    topics = [TxnOffsetCommitRequestTopic(target.called(step["topic"]), [partition])]
    request = TxnOffsetCommitRequest(name, target.called(step["group"]), producer_id, epoch, topics)
    if "member" in step:
        member = target.member(step["member"], step["group"])
        request.generation_id = member.generation + step.get("generation_shift", 0)
        request.member_id, request.group_instance_id = member.id, member.instance_id
    return StepRequest(ApiKey.TXN_OFFSET_COMMIT, step["v"], request, step["c"])


def end_transaction(target: Target, step: Step) -> StepRequest:
    """EndTxn; from version 5 on the response may have a new epoch."""
    producer = target.producer(step["producer"])
    name, producer_id, epoch = _who(target, step)
    request = EndTxnRequest(name, producer_id, epoch, step["commit"])

    def after(answer: Any) -> None:
        if not answer.error_code and step["v"] >= FIRST_WITH_EPOCH_BACK and answer.producer_id >= 0:
            producer.became(answer.producer_id, answer.producer_epoch)

    about = step.get("transactional_id") or producer.transactional_id or UNKNOWN_TRANSACTIONAL_ID
    return StepRequest(ApiKey.END_TXN, step["v"], request, step["c"], after, Settle.TRANSACTION, about)


def write_marker(target: Target, step: Step) -> StepRequest:
    """WriteTxnMarkers of one producer to one partition, as when an administrator aborts a hanging transaction."""
    producer = target.producer(step["producer"])
    topics = [WritableTxnMarkerTopic(target.called(step["topic"]), [step["partition"]])]
    epoch = producer.epoch + step.get("epoch_shift", 0)
    marker = WritableTxnMarker(producer.id, epoch, step["commit"], topics, step.get("coordinator_epoch", 0))
    return StepRequest(ApiKey.WRITE_TXN_MARKERS, step["v"], WriteTxnMarkersRequest([marker]), step["c"])


def describe_transaction(target: Target, step: Step) -> StepRequest:
    """DescribeTransactions of one id."""
    request = DescribeTransactionsRequest([target.called(step["transactional_id"])])
    return StepRequest(ApiKey.DESCRIBE_TRANSACTIONS, step["v"], request, step["c"], reads=True)


def list_transactions(target: Target, step: Step) -> StepRequest:
    """ListTransactions of this history's ids."""
    request = ListTransactionsRequest(step.get("states", []), [], -1, f"{target.names.prefix}.*")
    return StepRequest(ApiKey.LIST_TRANSACTIONS, step["v"], request, step["c"], reads=True)


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
