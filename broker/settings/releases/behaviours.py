"""Behaviours that brokers have since a certain release, by name.

Handlers and logs check for a behaviour instead of comparing releases. Each text states what brokers do since that
release. Each was observed on real brokers of both sides: `tests/releases` sends the same requests to them and to this
one.
"""

from enum import Enum


class Behaviour(Enum):
    """One behaviour: the first release that has it, and its description."""

    def __init__(self, since: str, text: str) -> None:
        self.since, self.text = since, text

    __hash__ = object.__hash__  # looked up for every request; Enum's hash is a slow Python function

    UNKNOWN_PRODUCER_ID = (
        "1.0",
        (
            "A batch that continues the sequence of a producer without state in the log is refused with "
            "UNKNOWN_PRODUCER_ID and the log start offset (KIP-192, KIP-360's problem); before, with "
            "OUT_OF_ORDER_SEQUENCE_NUMBER."
        ),
    )
    FIVE_BATCHES_REMEMBERED = (
        "1.0",
        (
            "Duplicates of any of a producer's last five batches are recognized (KAFKA-5494); before, only those of "
            "the last one, and older ones are OUT_OF_ORDER_SEQUENCE_NUMBER."
        ),
    )
    UNKNOWN_TOPICS_NOT_DESCRIBED = (
        "2.0",
        (
            "DescribeConfigs of an unknown topic is refused with UNKNOWN_TOPIC_OR_PARTITION; before, it returns the "
            "configs that such a topic would have."
        ),
    )
    COORDINATORS_NAMED_NONE = "2.3", "FindCoordinator returns the message NONE if there is no error; before, null."
    API_VERSIONS_RANGE = (
        "2.4",
        (
            "An ApiVersions request of an unknown version gets the supported versions (KIP-511); before, it gets "
            "an error and an empty list."
        ),
    )
    PRODUCERS_OUTLIVE_RECORDS = (
        "2.4",
        "A producer's state survives the deletion of its records (KAFKA-7190); before, it is deleted with them.",
    )
    DEFAULT_COUNTS = (
        "2.4",
        "CreateTopics accepts -1 partitions or replicas, which means the broker's default (KIP-464).",
    )
    INVALID_RECORD = (
        "2.4",
        (
            "A record that is invalid for its topic is refused with INVALID_RECORD (KIP-467); before, with "
            "CORRUPT_MESSAGE."
        ),
    )
    ELECTIONS_NOT_NEEDED = (
        "2.4",
        (
            "ElectLeaders returns ELECTION_NOT_NEEDED for a partition already led by its preferred replica (KIP-460); "
            "before, NONE."
        ),
    )
    UNKNOWN_PRODUCERS_WELCOME = "2.5", "A producer without state in the log may continue with any sequence (KIP-360)."
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
            "The message of UNKNOWN_SERVER_ERROR is null, and a null value in IncrementalAlterConfigs is "
            "INVALID_REQUEST; before, the message is the exception's, and a null value is UNKNOWN_SERVER_ERROR."
        ),
    )
    UNKNOWN_TOPICS_OF_CONFIGS = (
        "2.7",
        (
            "Altering the configs of an unknown topic is refused with UNKNOWN_TOPIC_OR_PARTITION; before, with "
            "UNKNOWN_SERVER_ERROR. DescribeConfigs returns empty messages; before, null."
        ),
    )
    DEFAULTS_NOT_MARKED = "2.7", "DescribeConfigs v0 does not mark defaults: the field is no longer set."
    QUOTAS_WITH_EMPTY_MESSAGES = (
        "2.8",
        "DescribeClientQuotas returns an empty message if there is no error; before, null.",
    )
    PENDING_SYNC = (
        "2.8",
        (
            "A member of a classic group that has not sent SyncGroup within the rebalance timeout is removed "
            "(KAFKA-12890, in 2.8.1); before, it stays while it sends heartbeats."
        ),
    )
    MESSAGE_FORMAT_IGNORED = (
        "3.0",
        (
            "message.format.version is accepted and ignored (KIP-724); before, a topic's records are stored and sent "
            "in that format, and if it is older than 0.11, idempotent producers get UNSUPPORTED_FOR_MESSAGE_FORMAT."
        ),
    )
    BAD_VALUES_ARE_BAD_CONFIGS = (
        "3.3",
        (
            "An invalid value of a topic config is refused with INVALID_CONFIG when it is altered, as in KRaft mode; "
            "before, with INVALID_REQUEST."
        ),
    )
    REFUSALS_OF_KRAFT = (
        "3.3",
        (
            "As in KRaft mode, the deletion of an unknown topic is refused with a message; new partitions of an "
            "unknown topic and the cancellation of a reassignment that is not in progress are refused without one; "
            "before, the reverse."
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
        "A transactional batch is verified with its coordinator before it is appended (KIP-890 part 1).",
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
            "A group coordinator's write waits if the ISR is smaller than min.insync.replicas; before, it is refused "
            "immediately with COORDINATOR_NOT_AVAILABLE."
        ),
    )
    GROUPS_DESCRIBED_BY_PARTITION = (
        "4.0",
        "DescribeGroups returns groups in the order of their offsets partitions; before, in that of the request.",
    )
    PENDING_FIRST = (
        "4.0",
        (
            "While a transaction's markers are being written, a request that adds partitions or a group to the next "
            "one gets CONCURRENT_TRANSACTIONS (KIP-890); before, a wrong producer id or epoch is reported first."
        ),
    )
    NO_OLD_MESSAGES = (
        "4.0",
        (
            "The configs message.format.version and message.downconversion.enable are unknown, and records in formats "
            "before 0.11 are neither sent nor accepted (KIP-724)."
        ),
    )
    OLD_VERSIONS_CLOSE = (
        "4.0",
        (
            "Requests in versions that 4.0 removed (KIP-896) close the connection, even those of Produce that "
            "ApiVersions lists for librdkafka's sake."
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
            "Committed offsets are stored in version 4 of their record, which has the topic id; before, in version 3, "
            "which readers of the offsets topic such as Burrow know."
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
            "The error for a group config outside the broker's bounds has the values of the bounds; before, the name "
            "of the broker's setting."
        ),
    )
    DUPLICATES_OF_BROKERS_REFUSED = (
        "4.4",
        "Altering a broker's list to one with duplicates is refused; before, duplicates are dropped.",
    )
    LOGGER_OPERATIONS_NAMED = (
        "4.4",
        "An unknown operation on a logger is refused with INVALID_REQUEST; before, with UNKNOWN_SERVER_ERROR.",
    )
    BROKER_CONFIGS_AUTHORIZED_FIRST = (
        "4.4",
        (
            "A requester that may not alter the cluster's configs is refused before broker configs are validated; "
            "before, validation errors are reported to any requester."
        ),
    )
    ADDED_PARTITIONS_BOUNDED = (
        "4.4",
        (
            "A CreatePartitions request that would add more than 10000 partitions in total is refused with "
            "POLICY_VIOLATION; before, the topic that exceeds the limit is refused with UNKNOWN_SERVER_ERROR."
        ),
    )
    PARTITIONS_SUMMED_AS_LONG = (
        "4.4",
        (
            "A CreateTopics request whose topics have more than 2^31-1 partitions in total is refused with "
            "POLICY_VIOLATION; before, the sum overflows, and it is refused with UNKNOWN_SERVER_ERROR."
        ),
    )
    SHARE_STATE_NEVER_GOES_BACK = (
        "4.4",
        (
            "The share coordinator never lowers a start offset, and refuses negative epochs with INVALID_REQUEST; "
            "before, it stores the start offset that the leader writes, and -1 is an epoch that is not checked. "
            "FENCED_STATE_EPOCH has the message of the release."
        ),
    )
    SHARE_STATE_BATCHES_JOINED = (
        "4.4",
        (
            "The share coordinator joins all equal neighbours among the batches of a share partition; before, some "
            "that a later write makes equal stay apart."
        ),
    )
    SHARE_PARTITIONS_FROM_ZERO = (
        "4.4",
        (
            "Partitions added to a topic after a share group has begun to read it are read from offset 0; before, "
            "share.auto.offset.reset decides."
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
            "An ACL's host must not be empty and, if it has a slash, must be a subnet, from metadata.version 32 on; "
            "before, it is any text, and compared as such."
        ),
    )
    PREFERRED_ASSIGNOR_COUNTS = (
        "4.4",
        (
            "A heartbeat after which most members of a consumer group prefer another assignor bumps the group epoch; "
            "before, the epoch stays."
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
            "A static member that returns to a full consumer group under another member id replaces its previous one; "
            "before, it is refused with GROUP_MAX_SIZE_REACHED."
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
            "Members of streams groups may be static, report the offsets of their tasks and have warm-up tasks; "
            "before, they are refused with INVALID_REQUEST."
        ),
    )
    FINITE_QUOTAS = (
        "4.4",
        "A quota must be a finite number; before, infinity and NaN are accepted where no integer is required.",
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
            "A member of a consumer group that rejoins with another instance id loses its previous one; before, it has "
            "both, and a classic member with the previous one is refused with UNKNOWN_SERVER_ERROR."
        ),
    )
