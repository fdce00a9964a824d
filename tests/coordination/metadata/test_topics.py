"""Topics are created, grow and go: core B.7 to B.9 at the machine, request in, records out."""

from collections.abc import Mapping
from uuid import UUID

import pytest

from broker.coordination.metadata.effects import ConfigChanged, PartitionChanged, TopicDeleted
from broker.coordination.metadata.topics import CreatedTopic, MorePartitions, NewTopic
from protocol.errors import ErrorCode, KafkaError
from protocol.log_records.metadata import (
    ClearElrRecord,
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.coordination.metadata.harness import TOKEN, Bench, answer, changes, directory

EXISTS, INVALID_TOPIC = ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.INVALID_TOPIC_EXCEPTION
FACTOR, PARTITIONS = ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.INVALID_PARTITIONS
ASSIGNMENT, REQUEST = ErrorCode.INVALID_REPLICA_ASSIGNMENT, ErrorCode.INVALID_REQUEST
MANUAL = "A manual partition assignment was specified, but"
INCLUDES = "The manual partition assignment includes"


def partition(topic_id: int, index: int, *replicas: int, isr: tuple[int, ...] | None = None) -> PartitionRecord:
    """A new partition on these brokers."""
    isr = replicas if isr is None else isr
    return PartitionRecord(
        index,
        UUID(int=topic_id),
        replicas,
        isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple(map(directory, replicas)),
    )


def refusal(bench: Bench, topic: NewTopic) -> tuple[ErrorCode, str | None]:
    """Code and sentence for a topic that is refused, of which nothing is remembered."""
    outcome = bench.machine.create_topics([topic], TOKEN)
    assert outcome.records == ()
    (created,) = answer(outcome)
    return created.error.code, created.error.message


def test_T20_a_topic_is_its_records() -> None:
    """Topic, configs, partitions; followers of the log are notified, then the request is answered."""
    bench = Bench(3)
    outcome = bench.machine.create_topics([NewTopic("t", 2, 2, configs={"retention.ms": "1"})], TOKEN)
    assert outcome.records == (
        TopicRecord("t", UUID(int=1000)),
        ConfigRecord(2, "t", "retention.ms", "1"),
        partition(1000, 0, 1, 2),
        partition(1000, 1, 2, 3),
    )
    assert changes(outcome) == [
        ConfigChanged(2, "t"),
        PartitionChanged("t", 0),
        PartitionChanged("t", 1),
    ]
    assert answer(outcome) == [CreatedTopic("t", None, UUID(int=1000), 2, 2, {"retention.ms": "1"})]
    bench.do(outcome)
    assert bench.image.topics["t"] is bench.image.topics_by_id[UUID(int=1000)]
    assert bench.image.config(2, "t") == {"retention.ms": "1"}


def test_T20_defaults_come_from_the_controller() -> None:
    """-1 partitions and factor are num.partitions and default.replication.factor."""
    bench = Bench(3, {"num.partitions": "4", "default.replication.factor": "3"})
    (created,) = answer(bench.machine.create_topics([NewTopic("t")], TOKEN))
    assert (created.partitions, created.replication_factor) == (4, 3)


def test_T20_min_insync_replicas_clears_eligible_replicas() -> None:
    """With ELR, as 4.3.1 does after the configs; without, not."""
    wanted = [NewTopic("t", 1, 1, configs={"min.insync.replicas": "2"})]
    assert ClearElrRecord("t") in Bench().machine.create_topics(wanted).records
    plain = Bench(levels={"eligible.leader.replicas.version": 0})
    assert [type(r) for r in plain.machine.create_topics(wanted).records] == [
        TopicRecord,
        ConfigRecord,
        PartitionRecord,
    ]


def test_T6_exists_wins_over_everything_else() -> None:
    """Even with a factor that cannot be."""
    bench = Bench()
    bench.create("t", [1])
    assert refusal(bench, NewTopic("t", 0, 0)) == (EXISTS, "Topic 't' already exists.")


def test_T7_illegal_names_are_refused_before_anything_about_them() -> None:
    """The rules are those of test_names."""
    complaint = "Topic name is invalid: the empty string is not allowed"
    assert refusal(Bench(), NewTopic("", 0, 0)) == (INVALID_TOPIC, complaint)


def test_T8_a_name_may_not_collide_with_a_topic_that_exists() -> None:
    """Dots read as underscores; a deleted topic collides no more."""
    bench = Bench()
    old = bench.create("my.topic", [1])
    expected = INVALID_TOPIC, "Topic 'my_topic' collides with existing topic: my.topic"
    assert refusal(bench, NewTopic("my_topic", 1, 1)) == expected
    bench.do(bench.machine.delete_topics([old.id]))
    assert bench.create("my_topic", [1]).name == "my_topic"


def test_T8_two_new_topics_may_collide_with_each_other() -> None:
    """Quirk: only topics that exist are looked at."""
    answers = answer(Bench().machine.create_topics([NewTopic("a.b", 1, 1), NewTopic("a_b", 1, 1)], TOKEN))
    assert [created.error for created in answers] == [None, None]


def test_T9_T10_settings_are_judged_by_the_given_check() -> None:
    """After the name, before assignments and counts."""

    def judge(configs: Mapping[str, str | None]) -> None:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"no {', '.join(configs)}")

    wanted = NewTopic("t", 0, 0, configs={"a": None})
    (created,) = answer(Bench().machine.create_topics([wanted], TOKEN, check_configs=judge))
    assert (created.error.code, created.error.message) == (ErrorCode.INVALID_CONFIG, "no a")


@pytest.mark.parametrize(
    ("topic", "code", "message"),
    [
        (NewTopic("t", -1, 1, [(0, [1])]), REQUEST, f"{MANUAL} replication factor was not set to -1."),
        (NewTopic("t", 1, -1, [(0, [1])]), REQUEST, f"{MANUAL} numPartitions was not set to -1."),
        (
            NewTopic("t", assignments=[(0, [1]), (0, [2])]),
            ASSIGNMENT,
            "Found multiple manual partition assignments for partition 0",
        ),
        (NewTopic("t", assignments=[(0, [])]), ASSIGNMENT, f"{INCLUDES} an empty replica list."),
        (NewTopic("t", assignments=[(0, [9])]), ASSIGNMENT, f"{INCLUDES} broker 9, but no such broker is registered."),
        (NewTopic("t", assignments=[(0, [2, 1, 2])]), ASSIGNMENT, f"{INCLUDES} the broker 2 more than once."),
        (
            NewTopic("t", assignments=[(0, [1]), (1, [1, 2])]),
            ASSIGNMENT,
            (
                f"{INCLUDES} a partition with 2 replica(s), but this is not consistent with previous partitions, which "
                "have 1 replica(s)."
            ),
        ),
        (
            NewTopic("t", assignments=[(0, [1]), (2, [1])]),
            ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (NewTopic("t", 0, 0), FACTOR, "Replication factor must be larger than 0, or -1 to use the default value."),
        (NewTopic("t", -2, 1), PARTITIONS, "Number of partitions was set to an invalid non-positive value."),
        (
            NewTopic("t", 1, 3),
            FACTOR,
            (
                "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached "
                "because only 2 broker(s) are registered or some brokers have all their log directories cordoned."
            ),
        ),
    ],
)
def test_T11_to_T17_impossible_topics_are_refused(topic: NewTopic, code: ErrorCode, message: str) -> None:
    """Error code and message of each row, on two brokers."""
    assert refusal(Bench(2), topic) == (code, message)


def test_T14_a_partition_needs_an_active_broker() -> None:
    """Fenced and leaving brokers may hold replicas, but one active broker has to lead."""
    bench = Bench(2)
    bench.do(bench.machine.fence_broker(2))
    sentence = "All brokers specified in the manual partition assignment for partition 0 are fenced or in controlled "
    assert refusal(bench, NewTopic("t", assignments=[(0, [2])])) == (ASSIGNMENT, f"{sentence}shutdown.")
    (_, partition_record) = bench.machine.create_topics([NewTopic("t", assignments=[(0, [2, 1])])]).records
    assert partition_record == partition(1001, 0, 2, 1, isr=(1,))


def test_one_refused_topic_leaves_the_others_alone() -> None:
    """Answers in the order of the request."""
    wanted = [NewTopic("a", 1, 1), NewTopic("b", 0, 1), NewTopic("c", 1, 1)]
    outcome = Bench().machine.create_topics(wanted, TOKEN)
    assert [created.error is None for created in answer(outcome)] == [True, False, True]
    assert [r.name for r in outcome.records if isinstance(r, TopicRecord)] == ["a", "c"]


def test_validate_only_answers_in_full_and_writes_nothing() -> None:
    """Counts, settings and an id that no topic has (core B.7.2)."""
    outcome = Bench().machine.create_topics([NewTopic("t", 3, 1)], TOKEN, validate_only=True)
    assert (outcome.records, changes(outcome)) == ((), [])
    assert answer(outcome) == [CreatedTopic("t", None, UUID(int=1000), 3, 1)]


# --- partitions ------------------------------------------------------------------------------------------------------


def test_partitions_that_are_only_validated_are_not_there() -> None:
    """ValidateOnly creates no partitions, as it creates no topics."""
    bench = Bench()
    bench.create("t", [1])
    outcome = bench.machine.create_partitions([MorePartitions("t", 2)], TOKEN, validate_only=True)
    assert (outcome.records, answer(outcome)) == ((), [("t", None)])


# --- deletion --------------------------------------------------------------------------------------------------------


def test_D10_a_deleted_topic_takes_its_settings_along() -> None:
    """Its effect has the topic as it was; a second topic of the name is another one."""
    bench = Bench()
    old = bench.create("t", [1], configs={"retention.ms": "1"})
    outcome = bench.machine.delete_topics([old.id, UUID(int=7), old.id], TOKEN)
    assert outcome.records == (RemoveTopicRecord(old.id),)
    assert changes(outcome) == [TopicDeleted("t", old.id, (0,))]
    bench.do(outcome)
    assert (bench.image.topics, bench.image.topics_by_id, bench.image.config(2, "t")) == ({}, {}, {})
    assert list(old.partitions) == [0]
    assert bench.create("t", [1]).id != old.id


# --- internal topics -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "configs"),
    [
        (
            "__consumer_offsets",
            {"compression.type": "producer", "cleanup.policy": "compact", "segment.bytes": "104857600"},
        ),
        (
            "__transaction_state",
            {
                "compression.type": "uncompressed",
                "cleanup.policy": "compact",
                "min.insync.replicas": "2",
                "segment.bytes": "104857600",
                "unclean.leader.election.enable": "false",
            },
        ),
        (
            "__share_group_state",
            {
                "compression.type": "producer",
                "cleanup.policy": "delete",
                "min.insync.replicas": "2",
                "segment.bytes": "104857600",
                "retention.ms": "-1",
            },
        ),
    ],
)
def test_internal_topics_are_as_kafka_makes_them(name: str, configs: dict[str, str]) -> None:
    """50 partitions; the default factor of 3 shrinks to the brokers that there are."""
    bench = Bench(2)
    outcome = bench.machine.create_internal_topic(name, TOKEN)
    created = answer(outcome)
    assert (created.partitions, created.replication_factor, created.configs) == (50, 2, configs)
    bench.do(outcome)
    again = bench.machine.create_internal_topic(name, TOKEN)
    assert (again.records, answer(again).topic_id) == ((), created.topic_id)
    assert bench.image.topics[name].internal


def test_a_factor_that_was_asked_for_is_kept() -> None:
    """Then creation fails where there are too few brokers, as in Kafka."""
    bench = Bench(1, {"offsets.topic.replication.factor": "3", "offsets.topic.num.partitions": "4"})
    outcome = bench.machine.create_internal_topic("__consumer_offsets", TOKEN)
    assert (outcome.records, answer(outcome).error.code) == ((), FACTOR)
