"""Questions that releases answer differently. Each is put to real brokers and to Understudy, and answered as text.

A question uses names of its own and leaves nothing that another one could see. Its answer holds no ids, times or
addresses. What a release cannot be asked, because it has no such API or version, is answered "absent".
"""

from collections.abc import Callable, Mapping

from broker.settings.releases import NAMES
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.releases import (
    questions_of_4_4,
    questions_of_groups,
    questions_of_records,
    questions_of_refusals,
    questions_of_share_groups,
)
from tests.releases.asking import GROUP, Absent, Client, added, adding, delete_records, result_of, wait
from tests.wire import Closed, header

Question = Callable[[Client], str]


# --- connections -----------------------------------------------------------------------------------------------------


def an_unknown_version_of_api_versions(client: Client) -> str:
    """The whole answer but the range (KIP-511)."""
    client.wire.send_frame(header(ApiKey.API_VERSIONS, 999))
    frame = client.wire.receive_frame()
    return frame[4:10].hex() + (" and a range" if len(frame) > 10 else "")


def an_unknown_version_of_metadata(client: Client) -> str:
    """A version that no release has."""
    client.wire.send_frame(header(ApiKey.METADATA, 999))
    try:
        return client.wire.receive_frame().hex()
    except Closed:
        return "closed"


# --- producers -------------------------------------------------------------------------------------------------------


def a_producer_whose_records_were_deleted(client: Client) -> str:
    """It goes on with its next sequence (KIP-185's and KIP-360's problem)."""
    topic, producer = client.topic(), client.producer()
    client.produce(topic, producer, 0)
    client.produce(topic, producer, 1)
    delete_records(client, topic)
    return result_of(client.produce(topic, producer, 2))


def a_producer_that_the_log_does_not_know(client: Client) -> str:
    """It begins with sequence 7."""
    return result_of(client.produce(client.topic(), client.producer(), 7))


def a_gap_in_the_sequence(client: Client) -> str:
    """0, then 5."""
    topic, producer = client.topic(), client.producer()
    client.produce(topic, producer, 0)
    return result_of(client.produce(topic, producer, 5))


def a_new_epoch_that_does_not_begin_with_0(client: Client) -> str:
    """Epoch 1, sequence 3."""
    topic, producer = client.topic(), client.producer()
    client.produce(topic, producer, 0)
    producer.producer_epoch = 1
    return result_of(client.produce(topic, producer, 3))


def a_zombie_s_batch(client: Client) -> str:
    """Epoch 0 after epoch 1."""
    topic, producer = client.topic(), client.producer()
    producer.producer_epoch = 1
    client.produce(topic, producer, 0)
    producer.producer_epoch = 0
    return result_of(client.produce(topic, producer, 0))


def a_repeated_batch(client: Client) -> str:
    """The last but one, sent again."""
    topic, producer = client.topic(), client.producer()
    for sequence in range(3):
        client.produce(topic, producer, sequence)
    again = client.produce(topic, producer, 1)
    return f"{result_of(again)} at {again.base_offset}"


def a_transactional_batch_of_a_partition_that_was_not_added(client: Client) -> str:
    """Up to Produce v11: verification (KIP-890)."""
    name = client.name("tx")
    producer = client.producer(name)
    return result_of(client.produce(client.topic(), producer, 0, transactional_id=name))


def a_transaction_that_begins_with_sequence_7(client: Client) -> str:
    """Produce v12, with which partitions add themselves where transaction.version is 2 (KIP-890)."""
    client.version(ApiKey.PRODUCE, at_most=12, at_least=12)
    name = client.name("tx")
    producer = client.producer(name)
    return result_of(client.produce(client.topic(), producer, 7, transactional_id=name, at_most=12))


# --- transactions ----------------------------------------------------------------------------------------------------


def a_fenced_producer_s_partition(client: Client) -> str:
    """AddPartitionsToTxn with the epoch before (KIP-588)."""
    name, topic = client.name("tx"), client.topic()
    zombie = client.producer(name)
    client.producer(name)
    return client.add(name, zombie, topic).name


def a_fenced_producer_s_group(client: Client) -> str:
    """AddOffsetsToTxn, likewise."""
    name = client.name("tx")
    zombie = client.producer(name)
    client.producer(name)
    request = AddOffsetsToTxnRequest(name, zombie.producer_id, zombie.producer_epoch, client.name("group"))
    return str(client.ask(ApiKey.ADD_OFFSETS_TO_TXN, request).error_code.name)


def a_fenced_producer_s_end(client: Client) -> str:
    """EndTxn up to v4, likewise."""
    name = client.name("tx")
    zombie = client.producer(name)
    client.producer(name)
    return end(client, name, zombie)


def a_fenced_producer_s_return(client: Client) -> str:
    """InitProducerId with the id and epoch before (KIP-360)."""
    name = client.name("tx")
    zombie = client.producer(name)
    client.producer(name)
    request = InitProducerIdRequest(name, 60_000, zombie.producer_id, zombie.producer_epoch)
    if client.version(ApiKey.INIT_PRODUCER_ID) < 3:
        raise Absent("a producer that returns")
    answer = client.ask(ApiKey.INIT_PRODUCER_ID, request)
    if answer.error_code is ErrorCode.NONE:
        return f"NONE, the epoch grew by {answer.producer_epoch - zombie.producer_epoch}"
    return str(answer.error_code.name)


def end(client: Client, name: str, producer: object, *, committed: bool = True) -> str:
    """EndTxn as clients of transaction.version 0 and 1 ask it."""
    request = EndTxnRequest(name, producer.producer_id, producer.producer_epoch, committed)  # type: ignore[attr-defined]
    code: ErrorCode = client.ask(ApiKey.END_TXN, request, at_most=4).error_code
    return code.name


def the_end_of_an_empty_transaction(client: Client) -> str:
    """Commit, then abort."""
    name = client.name("tx")
    producer = client.producer(name)
    return f"{end(client, name, producer)} {end(client, name, producer, committed=False)}"


def a_transaction(client: Client) -> str:
    """Begun, committed, committed again, then aborted; and the next epoch."""
    name, topic = client.name("tx"), client.topic()
    producer = client.producer(name)
    added = client.add(name, producer, topic)
    produced = result_of(client.produce(topic, producer, 0, transactional_id=name))
    ended = end(client, name, producer)
    fetched = client.settled(lambda: client.producer(name), lambda answer: answer.error_code)
    again = end(client, name, fetched)
    return f"{added.name} {produced} {ended} epoch +{fetched.producer_epoch - producer.producer_epoch} then {again}"


def an_id_that_is_not_the_transaction_s(client: Client) -> str:
    """EndTxn with another producer id."""
    name = client.name("tx")
    producer = client.producer(name)
    producer.producer_id += 1000
    return end(client, name, producer)


def a_stranger_while_markers_wait(client: Client) -> str:
    """AddPartitionsToTxn with another epoch, then with another producer id, right behind a commit.

    Markers are written after the answer to EndTxn, by another thread; what comes in the same breath is there before.
    """
    name, topic = client.name("tx"), client.topic()
    producer = client.producer(name)
    producer_id, epoch = producer.producer_id, producer.producer_epoch
    client.add(name, producer, topic)
    client.produce(topic, producer, 0, transactional_id=name)
    ended, *answers = client.ask_together([
        (ApiKey.END_TXN, EndTxnRequest(name, producer_id, epoch, True), 4),
        (ApiKey.ADD_PARTITIONS_TO_TXN, adding(name, producer_id, epoch + 1, topic), 3),
        (ApiKey.ADD_PARTITIONS_TO_TXN, adding(name, producer_id + 1000, epoch, topic), 3),
    ])  # fmt: skip
    return f"{ended.error_code.name} epoch {added(answers[0]).name} id {added(answers[1]).name}"


def an_endless_transaction(client: Client) -> str:
    """A timeout above transaction.max.timeout.ms."""
    return str(client.producer(client.name("tx"), timeout_ms=1_000_000_000).error_code.name)


def offsets_of_a_stranger_in_a_transaction(client: Client) -> str:
    """TxnOffsetCommit with a generation and a member that the group does not have (KIP-447)."""
    name, group = client.name("tx"), client.name("group")
    producer = client.producer(name)
    client.coordinator(group, GROUP)
    client.ask(
        ApiKey.ADD_OFFSETS_TO_TXN,
        AddOffsetsToTxnRequest(name, producer.producer_id, producer.producer_epoch, group),
    )
    topic = TxnOffsetCommitRequestTopic(client.topic(), [TxnOffsetCommitRequestPartition(0, 5)])
    ids = (producer.producer_id, producer.producer_epoch)
    request = TxnOffsetCommitRequest(name, group, *ids, [topic], generation_id=3, member_id="absent")
    answer = client.settled(
        lambda: client.ask(ApiKey.TXN_OFFSET_COMMIT, request, at_most=4),
        lambda response: response.topics[0].partitions[0].error_code,
    )
    return str(answer.topics[0].partitions[0].error_code.name)


def pending_offsets(client: Client) -> str:
    """OffsetFetch while a transaction holds offsets, with RequireStable where there is such a thing (KIP-447)."""
    name, group, topic = client.name("tx"), client.name("group"), client.topic()
    producer = client.producer(name)
    client.coordinator(group, GROUP)
    ids = (producer.producer_id, producer.producer_epoch)
    client.ask(ApiKey.ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest(name, *ids, group))
    part = TxnOffsetCommitRequestTopic(topic, [TxnOffsetCommitRequestPartition(0, 5)])
    request = TxnOffsetCommitRequest(name, group, *ids, [part])
    client.settled(
        lambda: client.ask(ApiKey.TXN_OFFSET_COMMIT, request, at_most=4),
        lambda partition: partition.topics[0].partitions[0].error_code,
    )
    wanted = OffsetFetchRequestGroup(group, [OffsetFetchRequestTopics(topic, [0])])
    answer = client.ask(ApiKey.OFFSET_FETCH, OffsetFetchRequest(require_stable=True, groups=[wanted]), at_most=9)
    partition = answer.groups[0].topics[0].partitions[0]
    return f"{partition.error_code.name} {partition.committed_offset}"


QUESTIONS: tuple[Question, ...] = (
    an_unknown_version_of_api_versions,
    an_unknown_version_of_metadata,
    a_producer_whose_records_were_deleted,
    a_producer_that_the_log_does_not_know,
    a_gap_in_the_sequence,
    a_new_epoch_that_does_not_begin_with_0,
    a_zombie_s_batch,
    a_repeated_batch,
    a_transactional_batch_of_a_partition_that_was_not_added,
    a_transaction_that_begins_with_sequence_7,
    a_fenced_producer_s_partition,
    a_fenced_producer_s_group,
    a_fenced_producer_s_end,
    a_fenced_producer_s_return,
    the_end_of_an_empty_transaction,
    a_transaction,
    an_id_that_is_not_the_transaction_s,
    a_stranger_while_markers_wait,
    an_endless_transaction,
    offsets_of_a_stranger_in_a_transaction,
    pending_offsets,
    *questions_of_records.QUESTIONS,
    *questions_of_groups.QUESTIONS,
    *questions_of_refusals.QUESTIONS,
    *questions_of_4_4.QUESTIONS,
    *questions_of_share_groups.QUESTIONS,
)


SINCE: Mapping[str, str] = {
    **{each.__name__: "4.3" for each in (*questions_of_4_4.QUESTIONS, *questions_of_share_groups.QUESTIONS)},
    questions_of_groups.stored_offsets.__name__: "3.9",
}
"""Questions that earlier releases were not asked."""


def asked_of(release: str) -> tuple[Question, ...]:
    """The questions that a release was asked."""
    own = NAMES.index(release)
    return tuple(each for each in QUESTIONS if own >= NAMES.index(SINCE.get(each.__name__, NAMES[0])))


def ask_all(
    address: str, release: str, patience_s: float = 20, pause: Callable[[float], object] = wait
) -> dict[str, str]:
    """The answers to all questions that the release was asked, each on a connection of its own."""
    return {question.__name__: ask(address, question, patience_s, pause) for question in asked_of(release)}


def ask(address: str, question: Question, patience_s: float, pause: Callable[[float], object] = wait) -> str:
    """The answer to one question, on a connection of its own. `pause` as in `Client`."""
    client = Client(address, patience_s, pause)
    try:
        return question(client)
    except Absent as absent:
        return f"absent: {absent}"
    except Closed:
        return "the connection was closed"
    finally:
        client.wire.close()
