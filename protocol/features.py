"""Features by API version. Handlers call these predicates; no other module compares a version with a number.

Each predicate takes a version of its API. Its docstring states what is true if it returns True, with the KIP.
"""


# --- Produce ---------------------------------------------------------------------------------------------------------


def produce_uses_topic_ids(version: int) -> bool:
    """Topics by id instead of by name (KIP-516)."""
    return version >= 13


def produce_has_current_leader(version: int) -> bool:
    """NOT_LEADER_OR_FOLLOWER comes with the current leader (KIP-951)."""
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


def fetch_has_current_leader(version: int) -> bool:
    """Errors about leadership come with the current leader (KIP-951)."""
    return version >= 16


def fetch_may_ask_any_replica(version: int) -> bool:
    """Consumers may read from followers (KIP-392)."""
    return version >= 11


def fetch_magic(version: int) -> int:
    """Return the newest magic that the fetcher reads: 0 messages, 1 with timestamps (KIP-32), 2 batches (KIP-98)."""
    return 2 if version >= 4 else 1 if version >= 2 else 0


# --- ListOffsets -----------------------------------------------------------------------------------------------------


def list_offsets_oldest_special(version: int) -> int:
    """Return the lowest special timestamp of a version: -2, then -3 (KIP-734), -4, -5 (KIP-405), -6 (KIP-1023)."""
    for since, timestamp in ((11, -6), (9, -5), (8, -4), (7, -3)):
        if version >= since:
            return timestamp
    return -2


def list_offsets_counts_segments(version: int) -> bool:
    """The oldest version lists the offsets at which segments begin, instead of finding records (KIP-79)."""
    return version < 1


def list_offsets_knows_not_available(version: int) -> bool:
    """OFFSET_NOT_AVAILABLE is understood (KIP-207)."""
    return version >= 5


# --- transactions ----------------------------------------------------------------------------------------------------


def init_producer_id_knows_fencing(version: int) -> bool:
    """PRODUCER_FENCED is understood; before, a fenced producer gets INVALID_PRODUCER_EPOCH (KIP-588)."""
    return version >= 4


def add_partitions_knows_fencing(version: int) -> bool:
    """As :func:`init_producer_id_knows_fencing` (KIP-588)."""
    return version >= 2


def add_partitions_is_for_brokers(version: int) -> bool:
    """Batched transactions, to add partitions or only to verify them: allowed for brokers only (KIP-890)."""
    return version >= 4


def add_offsets_knows_fencing(version: int) -> bool:
    """As :func:`init_producer_id_knows_fencing` (KIP-588)."""
    return version >= 2


def end_txn_knows_fencing(version: int) -> bool:
    """As :func:`init_producer_id_knows_fencing` (KIP-588)."""
    return version >= 2


def end_txn_bumps_epoch(version: int) -> bool:
    """Each transaction ends with a new producer epoch, which the response carries (KIP-890)."""
    return version >= 5


def produce_adds_partitions(version: int) -> bool:
    """The partition's leader adds it to the transaction; before, it only verifies that the client did (KIP-890)."""
    return version >= 12


def produce_knows_abortable(version: int) -> bool:
    """TRANSACTION_ABORTABLE is understood; before, INVALID_TXN_STATE is sent (KIP-890)."""
    return version >= 11


def txn_offset_commit_adds_partitions(version: int) -> bool:
    """As :func:`produce_adds_partitions`, for the group's offsets partition (KIP-890)."""
    return version >= 5


def txn_offset_commit_uses_topic_ids(version: int) -> bool:
    """Topics by id instead of by name (KIP-1319)."""
    return version >= 6


def txn_offset_commit_knows_stale_epochs(version: int) -> bool:
    """STALE_MEMBER_EPOCH and GROUP_ID_NOT_FOUND are understood (KIP-1319)."""
    return version >= 6


def txn_offset_commit_knows_abortable(version: int) -> bool:
    """As :func:`produce_knows_abortable` (KIP-890)."""
    return version >= 4


# --- configs ---------------------------------------------------------------------------------------------------------


def list_config_resources_chooses_types(version: int) -> bool:
    """Resource types can be selected; before, only client metrics subscriptions are listed (KIP-1142)."""
    return version >= 1


# --- groups ----------------------------------------------------------------------------------------------------------


def join_group_needs_member_id(version: int) -> bool:
    """A new dynamic member first gets MEMBER_ID_REQUIRED with its id, and joins again with it (KIP-394)."""
    return version >= 4


def join_group_has_null_protocol(version: int) -> bool:
    """A response without the name of a protocol has null in its place, not an empty text (KIP-559)."""
    return version >= 7


def join_group_skips_assignment(version: int) -> bool:
    """A static leader that rejoins may be asked to skip the assignment (KIP-814)."""
    return version >= 9


def sync_group_names_protocol(version: int) -> bool:
    """Members send the protocol type and name that they expect (KIP-559)."""
    return version >= 5


def describe_groups_knows_absence(version: int) -> bool:
    """GROUP_ID_NOT_FOUND is understood; before, an absent group is "Dead" without an error (KIP-1043)."""
    return version >= 6


def offset_commit_uses_topic_ids(version: int) -> bool:
    """Topics by id instead of by name (KIP-848)."""
    return version >= 10


def offset_commit_knows_stale_epochs(version: int) -> bool:
    """Member epochs in place of generations; their errors and GROUP_ID_NOT_FOUND are understood (KIP-848)."""
    return version >= 9


def offset_fetch_uses_topic_ids(version: int) -> bool:
    """Topics by id instead of by name (KIP-848)."""
    return version >= 10


def offset_fetch_has_group_error(version: int) -> bool:
    """A group's error has its own field; before, it is set on each partition (KIP-88)."""
    return version >= 2


def txn_offset_commit_knows_loading(version: int) -> bool:
    """COORDINATOR_LOAD_IN_PROGRESS is understood; before, COORDINATOR_NOT_AVAILABLE is sent."""
    return version >= 2


# --- metadata and administration -------------------------------------------------------------------------------------


def api_versions_names_software(version: int) -> bool:
    """The client sends its software name and version (KIP-511)."""
    return version >= 3


def api_versions_names_target(version: int) -> bool:
    """The client names the cluster and the node that it expects to be connected to (KIP-1242)."""
    return version >= 5


def api_versions_allows_zero_minimum(version: int) -> bool:
    """Supported features with a minimum of 0 are listed; older clients reject them (KIP-1022)."""
    return version >= 4


def metadata_finds_by_id(version: int) -> bool:
    """Topics may be requested by id (KIP-516); versions 10 and 11 have the field and refuse it."""
    return version >= 12


def metadata_lists_offline_replicas(version: int) -> bool:
    """Replicas are listed whether they are alive or not (KIP-4)."""
    return version >= 1


def metadata_knows_missing_listener(version: int) -> bool:
    """LISTENER_NOT_FOUND is understood; before, LEADER_NOT_AVAILABLE is sent (KIP-112)."""
    return version >= 6


def find_coordinator_has_error_message(version: int) -> bool:
    """An error carries the default message of its code, which is empty since requests have several keys (KIP-699)."""
    return version < 4


def find_coordinator_knows_share_groups(version: int) -> bool:
    """Share coordinators can be requested (KIP-932)."""
    return version >= 6


def consumer_group_heartbeat_makes_own_id(version: int) -> bool:
    """Members generate their own ids (KIP-1082)."""
    return version >= 1


def share_groups_renew_locks(version: int) -> bool:
    """Acquisition locks can be renewed, in ShareFetch and ShareAcknowledge (KIP-1222)."""
    return version >= 2


def create_topics_refuses_above_quota(version: int) -> bool:
    """THROTTLING_QUOTA_EXCEEDED is understood; before, requests above the quota are carried out (KIP-599)."""
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


def delete_topics_has_states(version: int) -> bool:
    """The request has topics by name or id (KIP-516), which Kafka lists when all of it failed."""
    return version >= 6


def describe_cluster_has_endpoint_types(version: int) -> bool:
    """The request names brokers or controllers, and the error of the other endpoint is known (KIP-919)."""
    return version >= 1


def update_features_has_upgrade_types(version: int) -> bool:
    """Upgrade types: downgrades are safe or unsafe, not just allowed (KIP-778)."""
    return version >= 1


def update_features_has_results(version: int) -> bool:
    """One result per feature; later versions succeed or fail as a whole (KIP-1022)."""
    return version < 2


def describe_log_dirs_has_error(version: int) -> bool:
    """A top-level error (KIP-599); before, missing permission gives an empty list."""
    return version >= 3


def streams_group_heartbeat_has_recovery_lag(version: int) -> bool:
    """Members of streams groups know an acceptable recovery lag, and the status of missing tags (KAFKA-20744)."""
    return version >= 1
