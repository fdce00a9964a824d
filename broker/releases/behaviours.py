"""Behaviours of the brokers of some releases that others do not have, by name.

Handlers and logs ask for a behaviour, and never compare releases. What changed is written as what the newer side does,
under the first release that does so. Each was seen on real brokers of both sides: `tests/releases` asks the same
questions of them and of this one.
"""

from enum import Enum


class Behaviour(Enum):
    """One thing that brokers do since a release: the release, and what it is."""

    def __init__(self, since: str, text: str) -> None:
        self.since, self.text = since, text

    __hash__ = object.__hash__  # requests look behaviours up in sets, and Enum's hash is a Python function

    UNKNOWN_PRODUCER_ID = (
        "1.0",
        (
            "A batch that continues a producer which the log does not know is refused with UNKNOWN_PRODUCER_ID and "
            "the log start offset (KIP-192, KIP-360's problem); before, with OUT_OF_ORDER_SEQUENCE_NUMBER."
        ),
    )
    FIVE_BATCHES_REMEMBERED = (
        "1.0",
        (
            "Any of a producer's last five batches may be repeated (KAFKA-5494); before, the last one, and older ones "
            "are OUT_OF_ORDER_SEQUENCE_NUMBER."
        ),
    )
    UNKNOWN_TOPICS_NOT_DESCRIBED = (
        "2.0",
        (
            "DescribeConfigs of a topic that does not exist is refused with UNKNOWN_TOPIC_OR_PARTITION; before, it is "
            "answered with the settings that such a topic would have."
        ),
    )
    COORDINATORS_NAMED_NONE = (
        "2.3",
        "FindCoordinator answers with the message NONE where there is no error; before, with null.",
    )
    API_VERSIONS_RANGE = (
        "2.4",
        (
            "An ApiVersions request of an unknown version gets the supported versions (KIP-511); before, it gets "
            "an error and an empty list."
        ),
    )
    PRODUCERS_OUTLIVE_RECORDS = (
        "2.4",
        ("What is known of a producer survives the deletion of its records (KAFKA-7190); before, it goes with them."),
    )
    DEFAULT_COUNTS = (
        "2.4",
        ("A topic may be created with -1 partitions or replicas, as many as the broker's settings have (KIP-464)."),
    )
    INVALID_RECORD = (
        "2.4",
        ("A record that a topic does not take is refused with INVALID_RECORD (KIP-467); before, with CORRUPT_MESSAGE."),
    )
    ELECTIONS_NOT_NEEDED = (
        "2.4",
        (
            "A partition that its preferred replica leads already is answered with ELECTION_NOT_NEEDED (KIP-460); "
            "before, with NONE."
        ),
    )
    UNKNOWN_PRODUCERS_WELCOME = "2.5", ("A producer that the log does not know may go on with any sequence (KIP-360).")
    HEARTBEATS_WHILE_SYNCING = (
        "2.6",
        (
            "Heartbeats to a classic group that waits for its leader's SyncGroup are answered with NONE; before, with "
            "REBALANCE_IN_PROGRESS."
        ),
    )
    UNEXPECTED_ERRORS_HIDDEN = (
        "2.6",
        (
            "The message of an UNKNOWN_SERVER_ERROR is null, and a null value of IncrementalAlterConfigs is "
            "INVALID_REQUEST; before, the message is the exception's, and a null value is UNKNOWN_SERVER_ERROR."
        ),
    )
    UNKNOWN_TOPICS_OF_CONFIGS = (
        "2.7",
        (
            "Settings of a topic that does not exist cannot be altered: UNKNOWN_TOPIC_OR_PARTITION, before "
            "UNKNOWN_SERVER_ERROR. DescribeConfigs answers with empty messages, before with null."
        ),
    )
    DEFAULTS_NOT_MARKED = (
        "2.7",
        "DescribeConfigs v0 marks no setting as having its default: the field is no longer filled.",
    )
    QUOTAS_WITH_EMPTY_MESSAGES = (
        "2.8",
        "DescribeClientQuotas answers with an empty message where there is no error; before, with null.",
    )
    PENDING_SYNC = (
        "2.8",
        (
            "A member of a classic group that has not sent SyncGroup within the rebalance timeout is removed "
            "(KAFKA-12890, in 2.8.1); before, it stays for as long as it sends heartbeats."
        ),
    )
    MESSAGE_FORMAT_IGNORED = (
        "3.0",
        (
            "message.format.version is taken and ignored (KIP-724); before, a topic's records are kept and sent in "
            "that format, and where it is older than 0.11, idempotent producers get UNSUPPORTED_FOR_MESSAGE_FORMAT."
        ),
    )
    BAD_VALUES_ARE_BAD_CONFIGS = (
        "3.3",
        (
            "A bad value of a topic's setting is refused with INVALID_CONFIG when it is altered, as in KRaft mode; "
            "before, with INVALID_REQUEST."
        ),
    )
    REFUSALS_OF_KRAFT = (
        "3.3",
        (
            "As in KRaft mode, deletions of unknown topics are refused with a message, and partitions for unknown "
            "topics and the end of a reassignment that does not exist without; before, it is the other way round."
        ),
    )
    CREATED_TOPICS_UNKNOWN = (
        "3.3",
        (
            "Metadata that creates a topic reports UNKNOWN_TOPIC_OR_PARTITION first, as in KRaft mode; before, with "
            "ZooKeeper, LEADER_NOT_AVAILABLE, or why the topic cannot be created."
        ),
    )
    VERIFICATION = (
        "3.6",
        "A transactional batch is checked with its coordinator before it is appended (KIP-890 part 1).",
    )
    ABSENT_GROUPS_NAMED = (
        "4.0",
        (
            "Offsets for a generation of a group that does not exist are refused with GROUP_ID_NOT_FOUND (OffsetCommit "
            "v9) or ILLEGAL_GENERATION (TxnOffsetCommit); before, with ILLEGAL_GENERATION and UNKNOWN_MEMBER_ID."
        ),
    )
    WRITES_OF_GROUPS_WAIT = (
        "4.0",
        (
            "What a coordinator of groups writes while fewer replicas than min.insync.replicas are in sync waits for "
            "them; before, it is refused with COORDINATOR_NOT_AVAILABLE at once."
        ),
    )
    GROUPS_DESCRIBED_BY_PARTITION = (
        "4.0",
        ("DescribeGroups answers in the order of the partitions of the coordinators; before, in that of the request."),
    )
    PENDING_FIRST = (
        "4.0",
        (
            "While the markers of a transaction are written, a request that adds partitions or a group to the next one "
            "gets CONCURRENT_TRANSACTIONS (KIP-890); before, a wrong producer id or epoch is reported first."
        ),
    )
    NO_OLD_MESSAGES = (
        "4.0",
        (
            "The settings message.format.version and message.downconversion.enable are unknown, and records are "
            "neither sent nor taken in the formats before 0.11 (KIP-724)."
        ),
    )
    OLD_VERSIONS_CLOSE = (
        "4.0",
        (
            "Requests in versions that 4.0 removed (KIP-896) close the connection, also those of Produce that "
            "ApiVersions names for librdkafka's sake."
        ),
    )
    SEQUENCE_BEGINS_AT_ZERO = (
        "4.1",
        (
            "With transaction.version 2, a transaction's first batch in a partition that does not know the producer "
            "has sequence 0; before, any."
        ),
    )
    TOPIC_IDS_OF_OFFSETS = (
        "4.1",
        (
            "Committed offsets are stored in version 4 of their record, which has the topic's id; before, in version "
            "3, which readers of the offsets topic such as Burrow know."
        ),
    )
    SEGMENTS_OF_A_MEBIBYTE = ("4.1", "segment.bytes is at least 1048576 (KIP-1030); before, 14.")
    TOPIC_IDS_OF_PENDING_OFFSETS = (
        "4.4",
        (
            "Offsets that a transaction commits are stored with their topic's id (KIP-1319), like those of "
            "OffsetCommit; before, without."
        ),
    )
    BOUNDS_AS_RANGES = (
        "4.4",
        (
            "A group's setting outside of the broker's bounds is refused with the values of the bounds; before, with "
            "the name of the broker's setting."
        ),
    )
    DUPLICATES_OF_BROKERS_REFUSED = (
        "4.4",
        "A broker's list that is altered may have no element twice; before, only the first of them counts.",
    )
    LOGGER_OPERATIONS_NAMED = (
        "4.4",
        "An unknown operation on a logger is refused with INVALID_REQUEST; before, with UNKNOWN_SERVER_ERROR.",
    )
    BROKER_CONFIGS_AUTHORIZED_FIRST = (
        "4.4",
        (
            "A requester who may not alter the cluster's settings is refused before a broker's settings are looked "
            "at; before, bad ones are reported to anybody."
        ),
    )
    ADDED_PARTITIONS_BOUNDED = (
        "4.4",
        (
            "A CreatePartitions request that would add more than 10000 partitions in all is refused with "
            "POLICY_VIOLATION; before, the topic that goes beyond is refused with UNKNOWN_SERVER_ERROR."
        ),
    )
    SHARE_STATE_NEVER_GOES_BACK = (
        "4.4",
        (
            "The share coordinator never lowers a start offset, and refuses negative epochs with INVALID_REQUEST; "
            "before, it stores the start offset that the leader writes, and -1 is an epoch that is not checked. "
            "FENCED_STATE_EPOCH has the text of the release."
        ),
    )
    SHARE_PARTITIONS_FROM_ZERO = (
        "4.4",
        (
            "Partitions that a topic gets after a share group has begun to read it are read from offset 0; before, "
            "as share.auto.offset.reset decides."
        ),
    )
    SHARE_FETCH_OF_UNKNOWN_TOPICS = (
        "4.4",
        (
            "ShareFetch reports an unknown topic id on its partitions, and serves the others; before, the whole "
            "response is UNKNOWN_SERVER_ERROR until the topic is forgotten."
        ),
    )
    SHARE_EMPTIED_ASSIGNMENT = (
        "4.4",
        (
            "When the last member of a share group leaves, its assignment gets the group's epoch; before, it keeps the "
            "epoch of the last target."
        ),
    )
    CONSUMER_EMPTIED_ASSIGNMENT = (
        "4.4",
        (
            "When the last member of a consumer group leaves, its assignment gets the group's epoch; before, it keeps "
            "the epoch of the last target."
        ),
    )
    ACL_HOSTS_CHECKED = (
        "4.4",
        (
            "An ACL's host is no empty text and, with a slash in it, a subnet, from metadata.version 32 on; before, it "
            "is any text, which is compared as such."
        ),
    )
    PREFERRED_ASSIGNOR_COUNTS = (
        "4.4",
        (
            "A heartbeat after which most members of a consumer group prefer another assignor begins a new epoch; "
            "before, the group keeps its epoch."
        ),
    )
    MALFORMED_MEMBERS_REFUSED = (
        "4.4",
        (
            "A consumer that joins a classic group whose members' subscriptions or assignments cannot be read is "
            "refused with GROUP_ID_NOT_FOUND, and a classic member of a consumer group whose subscription cannot be "
            "read with INCONSISTENT_GROUP_PROTOCOL; before, both with UNKNOWN_SERVER_ERROR."
        ),
    )
    RETURNING_STATIC_MEMBERS_FIT = (
        "4.4",
        (
            "A static member that comes back to a full consumer group under another member id takes its place; before, "
            "it is refused with GROUP_MAX_SIZE_REACHED."
        ),
    )
    REPLACEMENTS_INHERIT_TARGETS = (
        "4.4",
        (
            "When a static member returns under another member id and the group gets a new target, its own is written "
            "only if it differs; before, it is always written."
        ),
    )
    STATIC_STREAMS_MEMBERS = (
        "4.4",
        (
            "Members of streams groups may be static, report the offsets of their tasks and own warm-up tasks; before, "
            "they are refused with INVALID_REQUEST."
        ),
    )
    FINITE_QUOTAS = (
        "4.4",
        "A quota is a finite number; before, infinity and NaN are taken where no integer is required.",
    )
    QUOTAS_FOUND_BY_INDEX = (
        "4.4",
        (
            "DescribeClientQuotas with a filter lists entities in the order of an index of its first component; "
            "before, in the order in which it lists all of them."
        ),
    )
    CHANGED_INSTANCES_FORGOTTEN = (
        "4.4",
        (
            "A member of a consumer group that joins again with another instance id gives up the one that it had; "
            "before, it holds both, and a classic member with the old one is refused with UNKNOWN_SERVER_ERROR."
        ),
    )
