"""What brokers of some releases do and others do not, by name.

Handlers and logs ask for a behaviour; nobody compares releases. What changed is written as what the newer side does,
under the first release that does so. Each was seen on real brokers of both sides: `tests/releases` asks the same
questions of them and of this one.
"""

from enum import Enum


class Behaviour(Enum):
    """One thing that brokers do since a release: the release, and what it is."""

    def __init__(self, since: str, text: str) -> None:
        self.since, self.text = since, text

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
    API_VERSIONS_RANGE = (
        "2.4",
        (
            "An ApiVersions request of an unknown version is told which versions there are (KIP-511); before, it gets "
            "an error and an empty list."
        ),
    )
    PRODUCERS_OUTLIVE_RECORDS = (
        "2.4",
        ("What is known of a producer survives the deletion of its records (KAFKA-7190); before, it goes with them."),
    )
    DEFAULT_COUNTS = (
        "2.4",
        ("A topic may be created with -1 partitions or replicas, as many as the broker's settings say (KIP-464)."),
    )
    INVALID_RECORD = (
        "2.4",
        ("A record that a topic does not take is refused with INVALID_RECORD (KIP-467); before, with CORRUPT_MESSAGE."),
    )
    UNKNOWN_PRODUCERS_WELCOME = "2.5", ("A producer that the log does not know may go on with any sequence (KIP-360).")
    DEFAULTS_UNTOLD = (
        "2.7",
        "DescribeConfigs v0 says of no setting that it has its default: the field is no longer filled.",
    )
    MESSAGE_FORMAT_IGNORED = (
        "3.0",
        (
            "message.format.version is taken and ignored (KIP-724); before, a topic's records are kept and sent in "
            "that format, and where it is older than 0.11, idempotent producers hear UNSUPPORTED_FOR_MESSAGE_FORMAT."
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
    PENDING_FIRST = (
        "4.0",
        (
            "While the markers of a transaction are written, whoever adds partitions or a group to the next one hears "
            "CONCURRENT_TRANSACTIONS (KIP-890); before, a wrong producer id or epoch is told first."
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
    SEGMENTS_OF_A_MEBIBYTE = ("4.1", "segment.bytes is at least 1048576 (KIP-1030); before, 14.")
