"""Questions about records, their formats, and settings."""

import time

from protocol.apis import ApiKey
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.batch import RecordBatch
from protocol.records.conversion import messages_of_batches
from protocol.records.message_set import read_messages
from protocol.records.records import Record, build_batch, read_records
from tests.releases.asking import Absent, Client, result_of

# --- records ---------------------------------------------------------------------------------------------------------


def a_record_without_a_key_for_a_compacted_topic(client: Client) -> str:
    """Its error changed its name (KIP-467)."""
    return result_of(client.produce(client.topic({"cleanup.policy": "compact"}), key=None))


def a_record_of_tomorrow(client: Client) -> str:
    """Its timestamp is two hours ahead (KIP-937)."""
    return result_of(client.produce(client.topic(), timestamp_ms=int(time.time() * 1000) + 7_200_000))


def magic(client: Client, configs: dict[str, str]) -> str:
    """The format in which a new topic's record comes back, and whether idempotent producers are welcome."""
    topic = client.topic(configs)
    idempotent = result_of(client.produce(topic, client.producer(), 0))
    plain = result_of(client.produce(topic))
    part = client.fetch(topic)
    records = bytes(part.records or b"")
    return f"idempotent {idempotent}, plain {plain}, {part.error_code.name} magic {records[16] if records else None}"


def message_format_0_9(client: Client) -> str:
    """Before timestamps."""
    return magic(client, {"message.format.version": "0.9.0"})


def message_format_0_10(client: Client) -> str:
    """Before headers and producers."""
    return magic(client, {"message.format.version": "0.10.0"})


def message_format_0_11(client: Client) -> str:
    """The one that stayed."""
    return magic(client, {"message.format.version": "0.11.0"})


def a_time_looked_up_in_format_0_9(client: Client) -> str:
    """Its records have none."""
    topic = client.topic({"message.format.version": "0.9.0"})
    client.produce(topic)
    wanted = ListOffsetsTopic(topic, [ListOffsetsPartition(0, 5)])
    answer = client.ask(ApiKey.LIST_OFFSETS, ListOffsetsRequest(-1, [wanted]), at_least=1, at_most=6)
    part = answer.topics[0].partitions[0]
    return f"{part.error_code.name} {part.offset} {'a time' if part.timestamp >= 0 else part.timestamp}"


def where_segments_begin(client: Client) -> str:
    """ListOffsets v0: the newest, all that are older than a moment, and the first (KIP-79 asks for records instead)."""
    client.version(ApiKey.LIST_OFFSETS, at_most=0)
    topic = client.topic({"segment.bytes": "150"})
    for at in range(3):
        client.produce(topic, key=b"%d" % at * 70)

    def starts(timestamp_ms: int, most: int = 10) -> str:
        wanted = ListOffsetsTopic(topic, [ListOffsetsPartition(0, timestamp_ms, max_num_offsets=most)])
        part = client.ask(ApiKey.LIST_OFFSETS, ListOffsetsRequest(-1, [wanted]), at_most=0).topics[0].partitions[0]
        return f"{part.error_code.name} {list(part.old_style_offsets)}"

    tomorrow_ms = int(time.time() * 1000) + 86_400_000
    return ", ".join((starts(-1), starts(-1, 2), starts(tomorrow_ms), starts(1), starts(-2)))


def zstd_for_a_client_that_does_not_know_it(client: Client) -> str:
    """Fetched in version 9 (KIP-110)."""
    topic = client.topic()
    if client.version(ApiKey.PRODUCE) < 7:
        raise Absent("zstd")
    client.produce(topic, codec=4)
    return str(client.fetch(topic, at_most=9).error_code.name)


def old_messages(client: Client, version: int, magic: int) -> str:
    """A compressed pair of messages produced in an old version, and how it comes back in today's and in old formats."""
    topic = client.topic()
    client.version(ApiKey.PRODUCE, version)
    pair = build_batch([Record(at, 1_600_000_000_000 + at, b"k%d" % at, b"value" * 9) for at in range(2)], codec=1)
    data = TopicProduceData(topic, [PartitionProduceData(0, messages_of_batches(pair, magic, 0))])
    answer = client.ask(ApiKey.PRODUCE, ProduceRequest(None, -1, 10_000, [data]), at_most=version, at_least=version)
    answers = [answer.responses[0].partition_responses[0].error_code.name]
    for at_most in (4, 3, 1):
        part = client.fetch(topic, at_most=at_most)
        records = bytes(part.records or b"")
        read = read_records(RecordBatch(bytearray(records))) if records[16] == 2 else read_messages(records)
        shown = [f"{each.offset}:{each.timestamp_ms}:{(each.key or b'').decode()}" for each in read]
        answers.append(
            f"{part.error_code.name} magic {records[16]} codec {records[17 if records[16] < 2 else 22] & 7} {shown}"
        )
    return "; ".join(answers)


def messages_without_times(client: Client) -> str:
    """Produce v1 (KIP-896 removed it)."""
    return old_messages(client, 1, 0)


def messages_with_times(client: Client) -> str:
    """Produce v2, likewise."""
    return old_messages(client, 2, 1)


# --- settings --------------------------------------------------------------------------------------------------------

TOPIC_SETTINGS = (
    *("cleanup.policy", "compression.type", "delete.retention.ms", "file.delete.delay.ms", "flush.messages"),
    *("flush.ms", "index.interval.bytes", "max.message.bytes", "message.timestamp.type"),
    *("min.cleanable.dirty.ratio", "min.compaction.lag.ms", "min.insync.replicas", "retention.bytes", "retention.ms"),
    *("segment.bytes", "segment.index.bytes", "segment.jitter.ms", "segment.ms", "unclean.leader.election.enable"),
)
BROKER_SETTINGS = (
    *("offsets.retention.minutes", "transaction.max.timeout.ms", "transactional.id.expiration.ms"),
    *("group.max.session.timeout.ms", "group.min.session.timeout.ms"),
    *("connections.max.idle.ms", "message.max.bytes", "num.partitions", "auto.create.topics.enable"),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
)


def settings(client: Client, kind: int, name: str, wanted: tuple[str, ...]) -> str:
    """The settings' values; all releases know these."""
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, wanted)])
    configs = client.ask(ApiKey.DESCRIBE_CONFIGS, request).results[0].configs
    return " ".join(sorted(f"{each.name}={each.value}" for each in configs))


def the_settings_of_a_topic(client: Client) -> str:
    """Their defaults."""
    return settings(client, 2, client.topic(), TOPIC_SETTINGS)


def the_settings_of_a_broker(client: Client) -> str:
    """Some of those that clients notice."""
    return settings(client, 4, "1", BROKER_SETTINGS)


def where_a_value_comes_from(client: Client) -> str:
    """In version 0 only whether it is the default (KIP-226)."""
    topic = client.topic({"retention.ms": "5000"})
    request = DescribeConfigsRequest([DescribeConfigsResource(2, topic, ("retention.ms", "flush.ms"))])
    configs = client.ask(ApiKey.DESCRIBE_CONFIGS, request, at_most=0).results[0].configs
    return " ".join(sorted(f"{each.name} {each.is_default}" for each in configs))


QUESTIONS = (
    a_record_without_a_key_for_a_compacted_topic,
    a_record_of_tomorrow,
    message_format_0_9,
    message_format_0_10,
    message_format_0_11,
    a_time_looked_up_in_format_0_9,
    where_segments_begin,
    zstd_for_a_client_that_does_not_know_it,
    messages_without_times,
    messages_with_times,
    the_settings_of_a_topic,
    the_settings_of_a_broker,
    where_a_value_comes_from,
)
