"""What a version of an API means, by name. Handlers ask these; nobody else compares a version with a number.

Each predicate takes the version of its API and names the proposal that drew the line.
"""


# --- Produce ---------------------------------------------------------------------------------------------------------


def produce_uses_topic_ids(version: int) -> bool:
    """Topics by id instead of by name (KIP-516)."""
    return version >= 13


def produce_tells_leader(version: int) -> bool:
    """The current leader stands in NOT_LEADER_OR_FOLLOWER answers (KIP-951)."""
    return version >= 10


def produce_allows_zstd(version: int) -> bool:
    """zstd batches may be sent (KIP-110)."""
    return version >= 7


def produce_takes_messages(version: int) -> bool:
    """Messages of the formats before 0.11 may be sent (KIP-98)."""
    return version < 3


# --- Fetch -----------------------------------------------------------------------------------------------------------


def fetch_uses_topic_ids(version: int) -> bool:
    """Topics by id instead of by name (KIP-516)."""
    return version >= 13


def fetch_tells_leader(version: int) -> bool:
    """The current leader stands in errors about leadership (KIP-951)."""
    return version >= 16


def fetch_may_ask_any_replica(version: int) -> bool:
    """Consumers may read from followers (KIP-392)."""
    return version >= 11


def fetch_knows_storage_errors(version: int) -> bool:
    """KAFKA_STORAGE_ERROR is understood (KIP-112)."""
    return version >= 6


def fetch_magic(version: int) -> int:
    """The newest format that the fetcher reads: messages without and with timestamps (KIP-32), batches (KIP-98)."""
    return 2 if version >= 4 else 1 if version >= 2 else 0


# --- ListOffsets -----------------------------------------------------------------------------------------------------


def list_offsets_oldest_special(version: int) -> int:
    """The lowest special timestamp that the version knows: -2, then -3 (KIP-734), -4, -5 (KIP-405), -6 (KIP-1023)."""
    for since, timestamp in ((11, -6), (9, -5), (8, -4), (7, -3)):
        if version >= since:
            return timestamp
    return -2


def list_offsets_counts_segments(version: int) -> bool:
    """The oldest version asks for where segments begin, not for records (KIP-79)."""
    return version < 1


def list_offsets_knows_not_available(version: int) -> bool:
    """OFFSET_NOT_AVAILABLE is understood (KIP-207)."""
    return version >= 5


# --- transactions ----------------------------------------------------------------------------------------------------


def init_producer_id_knows_fencing(version: int) -> bool:
    """PRODUCER_FENCED is understood; before, a fenced producer hears INVALID_PRODUCER_EPOCH (KIP-588)."""
    return version >= 4


def add_partitions_knows_fencing(version: int) -> bool:
    """As :func:`init_producer_id_knows_fencing` (KIP-588)."""
    return version >= 2


def add_partitions_is_for_brokers(version: int) -> bool:
    """Many transactions in one request, to add or only to verify: brokers alone may ask so (KIP-890)."""
    return version >= 4


def add_offsets_knows_fencing(version: int) -> bool:
    """As :func:`init_producer_id_knows_fencing` (KIP-588)."""
    return version >= 2


def end_txn_knows_fencing(version: int) -> bool:
    """As :func:`init_producer_id_knows_fencing` (KIP-588)."""
    return version >= 2


def end_txn_bumps_epoch(version: int) -> bool:
    """Each transaction ends with a new epoch, which the answer carries (KIP-890)."""
    return version >= 5


def produce_adds_partitions(version: int) -> bool:
    """The partition's leader adds it to the transaction; before, it only verifies that the client did (KIP-890)."""
    return version >= 12


def produce_knows_abortable(version: int) -> bool:
    """TRANSACTION_ABORTABLE is understood; before, it reads INVALID_TXN_STATE (KIP-890)."""
    return version >= 11


def txn_offset_commit_adds_partitions(version: int) -> bool:
    """As :func:`produce_adds_partitions`, for the group's offsets partition (KIP-890)."""
    return version >= 5


def txn_offset_commit_knows_abortable(version: int) -> bool:
    """As :func:`produce_knows_abortable` (KIP-890)."""
    return version >= 4


# --- configs ---------------------------------------------------------------------------------------------------------


def list_config_resources_chooses_types(version: int) -> bool:
    """Kinds of resources can be asked for; before, there were only client metrics subscriptions (KIP-1142)."""
    return version >= 1


# --- groups ----------------------------------------------------------------------------------------------------------


def join_group_needs_member_id(version: int) -> bool:
    """A dynamic member that joins first is told its id, and joins again with it (KIP-394)."""
    return version >= 4


def join_group_skips_assignment(version: int) -> bool:
    """A static leader that returns may be told to lead without assigning (KIP-814)."""
    return version >= 9


def sync_group_names_protocol(version: int) -> bool:
    """Members say which protocol type and name they believe in (KIP-559)."""
    return version >= 5


def describe_groups_knows_absence(version: int) -> bool:
    """GROUP_ID_NOT_FOUND is understood; before, an absent group is "Dead" without an error (KIP-1043)."""
    return version >= 6


def offset_commit_uses_topic_ids(version: int) -> bool:
    """Topics by id instead of by name (KIP-848)."""
    return version >= 10


def offset_commit_knows_stale_epochs(version: int) -> bool:
    """Member epochs may stand for generations; their error codes are understood, and GROUP_ID_NOT_FOUND (KIP-848)."""
    return version >= 9


def offset_fetch_uses_topic_ids(version: int) -> bool:
    """Topics by id instead of by name (KIP-848)."""
    return version >= 10


def offset_fetch_has_group_error(version: int) -> bool:
    """A group's error stands beside its topics; before, on each partition (KIP-88)."""
    return version >= 2


def txn_offset_commit_knows_loading(version: int) -> bool:
    """COORDINATOR_LOAD_IN_PROGRESS is understood; before, it reads COORDINATOR_NOT_AVAILABLE."""
    return version >= 2


# --- metadata and administration -------------------------------------------------------------------------------------


def api_versions_names_software(version: int) -> bool:
    """The client tells its name and version (KIP-511)."""
    return version >= 3


def api_versions_tells_zero_minimums(version: int) -> bool:
    """Supported features whose minimum is 0 are told; older readers refuse them (KIP-1022)."""
    return version >= 4


def metadata_finds_by_id(version: int) -> bool:
    """Topics may be asked for by id (KIP-516); versions 10 and 11 have the field and refuse it."""
    return version >= 12


def metadata_tells_all_replicas(version: int) -> bool:
    """Replicas are told whether they are alive or not (KIP-4)."""
    return version >= 1


def metadata_knows_missing_listener(version: int) -> bool:
    """LISTENER_NOT_FOUND is understood; before, it reads LEADER_NOT_AVAILABLE (KIP-112)."""
    return version >= 6


def find_coordinator_tells_errors(version: int) -> bool:
    """An error comes with the text of its code; since many keys are asked at once it is empty (KIP-699)."""
    return version < 4


def find_coordinator_knows_share_groups(version: int) -> bool:
    """Share coordinators may be looked for (KIP-932)."""
    return version >= 6


def consumer_group_heartbeat_makes_own_id(version: int) -> bool:
    """Members make their ids themselves (KIP-1082)."""
    return version >= 1


def create_topics_refuses_above_quota(version: int) -> bool:
    """THROTTLING_QUOTA_EXCEEDED is understood; before, what is above the quota is done (KIP-599)."""
    return version >= 6


def create_partitions_refuses_above_quota(version: int) -> bool:
    """THROTTLING_QUOTA_EXCEEDED is understood (KIP-599)."""
    return version >= 3


def delete_topics_refuses_above_quota(version: int) -> bool:
    """THROTTLING_QUOTA_EXCEEDED is understood (KIP-599)."""
    return version >= 5


def delete_topics_knows_disabled(version: int) -> bool:
    """TOPIC_DELETION_DISABLED is understood (KIP-322)."""
    return version >= 3


def update_features_has_upgrade_types(version: int) -> bool:
    """Downgrades are safe or unsafe, not just allowed (KIP-778)."""
    return version >= 1


def update_features_tells_each(version: int) -> bool:
    """A result per feature; later all succeed or fail together (KIP-1022)."""
    return version < 2


def describe_log_dirs_has_error(version: int) -> bool:
    """An error at the top (KIP-599); before, no permission reads as no directories."""
    return version >= 3
