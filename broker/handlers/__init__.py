"""The APIs that are served, in key order, with their versions. ApiVersions answers from this list.

The handler of an API is in the file of its name, imported for the first request of that API.
"""

from broker.request.api import ServedVersions
from protocol.apis import ApiKey

APIS: tuple[ServedVersions, ...] = (
    ServedVersions(ApiKey.PRODUCE, (3, 13), removed=0),
    ServedVersions(ApiKey.FETCH, (4, 18), removed=0),
    ServedVersions(ApiKey.LIST_OFFSETS, (1, 11), removed=0),
    ServedVersions(ApiKey.METADATA, (0, 13)),
    ServedVersions(ApiKey.OFFSET_COMMIT, (2, 10), removed=0),
    ServedVersions(ApiKey.OFFSET_FETCH, (1, 10), removed=0),
    ServedVersions(ApiKey.FIND_COORDINATOR, (0, 6)),
    ServedVersions(ApiKey.JOIN_GROUP, (0, 9)),
    ServedVersions(ApiKey.HEARTBEAT, (0, 4)),
    ServedVersions(ApiKey.LEAVE_GROUP, (0, 5)),
    ServedVersions(ApiKey.SYNC_GROUP, (0, 5)),
    ServedVersions(ApiKey.DESCRIBE_GROUPS, (0, 6)),
    ServedVersions(ApiKey.LIST_GROUPS, (0, 5)),
    ServedVersions(ApiKey.SASL_HANDSHAKE, (0, 1)),
    ServedVersions(ApiKey.API_VERSIONS, (0, 5)),
    ServedVersions(ApiKey.CREATE_TOPICS, (2, 7), removed=0),
    ServedVersions(ApiKey.DELETE_TOPICS, (1, 6), removed=0),
    ServedVersions(ApiKey.DELETE_RECORDS, (0, 2)),
    ServedVersions(ApiKey.INIT_PRODUCER_ID, (0, 5), unstable=6),
    ServedVersions(ApiKey.OFFSET_FOR_LEADER_EPOCH, (2, 4), removed=0),
    ServedVersions(ApiKey.ADD_PARTITIONS_TO_TXN, (0, 5)),
    ServedVersions(ApiKey.ADD_OFFSETS_TO_TXN, (0, 4)),
    ServedVersions(ApiKey.END_TXN, (0, 5)),
    ServedVersions(ApiKey.WRITE_TXN_MARKERS, (1, 2), removed=0),
    ServedVersions(ApiKey.TXN_OFFSET_COMMIT, (0, 6)),
    ServedVersions(ApiKey.DESCRIBE_ACLS, (1, 3), removed=0),
    ServedVersions(ApiKey.CREATE_ACLS, (1, 3), removed=0),
    ServedVersions(ApiKey.DELETE_ACLS, (1, 3), removed=0),
    ServedVersions(ApiKey.DESCRIBE_CONFIGS, (1, 4), removed=0),
    ServedVersions(ApiKey.ALTER_CONFIGS, (0, 2)),
    ServedVersions(ApiKey.ALTER_REPLICA_LOG_DIRS, (1, 2), removed=0),
    ServedVersions(ApiKey.DESCRIBE_LOG_DIRS, (1, 5), removed=0),
    ServedVersions(ApiKey.SASL_AUTHENTICATE, (0, 2)),
    ServedVersions(ApiKey.CREATE_PARTITIONS, (0, 3)),
    ServedVersions(ApiKey.CREATE_DELEGATION_TOKEN, (1, 3), removed=0),
    ServedVersions(ApiKey.RENEW_DELEGATION_TOKEN, (1, 2), removed=0),
    ServedVersions(ApiKey.EXPIRE_DELEGATION_TOKEN, (1, 2), removed=0),
    ServedVersions(ApiKey.DESCRIBE_DELEGATION_TOKEN, (1, 3), removed=0),
    ServedVersions(ApiKey.DELETE_GROUPS, (0, 3)),
    ServedVersions(ApiKey.ELECT_LEADERS, (0, 2)),
    ServedVersions(ApiKey.INCREMENTAL_ALTER_CONFIGS, (0, 1)),
    ServedVersions(ApiKey.ALTER_PARTITION_REASSIGNMENTS, (0, 1)),
    ServedVersions(ApiKey.LIST_PARTITION_REASSIGNMENTS, (0, 0)),
    ServedVersions(ApiKey.OFFSET_DELETE, (0, 0)),
    ServedVersions(ApiKey.DESCRIBE_CLIENT_QUOTAS, (0, 1)),
    ServedVersions(ApiKey.ALTER_CLIENT_QUOTAS, (0, 1)),
    ServedVersions(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, (0, 0)),
    ServedVersions(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, (0, 0)),
    ServedVersions(ApiKey.DESCRIBE_QUORUM, (0, 2)),
    ServedVersions(ApiKey.UPDATE_FEATURES, (0, 2)),
    ServedVersions(ApiKey.DESCRIBE_CLUSTER, (0, 2)),
    ServedVersions(ApiKey.DESCRIBE_PRODUCERS, (0, 0)),
    ServedVersions(ApiKey.UNREGISTER_BROKER, (0, 0)),
    ServedVersions(ApiKey.DESCRIBE_TRANSACTIONS, (0, 0)),
    ServedVersions(ApiKey.LIST_TRANSACTIONS, (0, 2)),
    ServedVersions(ApiKey.CONSUMER_GROUP_HEARTBEAT, (0, 1)),
    ServedVersions(ApiKey.CONSUMER_GROUP_DESCRIBE, (0, 1)),
    ServedVersions(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, (0, 0), listed=False),
    ServedVersions(ApiKey.PUSH_TELEMETRY, (0, 0), listed=False),
    ServedVersions(ApiKey.LIST_CONFIG_RESOURCES, (0, 1)),
    ServedVersions(ApiKey.DESCRIBE_TOPIC_PARTITIONS, (0, 0)),
    ServedVersions(ApiKey.SHARE_GROUP_HEARTBEAT, (1, 1)),
    ServedVersions(ApiKey.SHARE_GROUP_DESCRIBE, (1, 1)),
    ServedVersions(ApiKey.SHARE_FETCH, (1, 2)),
    ServedVersions(ApiKey.SHARE_ACKNOWLEDGE, (1, 2)),
    ServedVersions(ApiKey.ADD_RAFT_VOTER, (0, 1)),
    ServedVersions(ApiKey.REMOVE_RAFT_VOTER, (0, 0)),
    ServedVersions(ApiKey.INITIALIZE_SHARE_GROUP_STATE, (0, 0)),
    ServedVersions(ApiKey.READ_SHARE_GROUP_STATE, (0, 0)),
    ServedVersions(ApiKey.WRITE_SHARE_GROUP_STATE, (0, 1)),
    ServedVersions(ApiKey.DELETE_SHARE_GROUP_STATE, (0, 0)),
    ServedVersions(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, (0, 1)),
    ServedVersions(ApiKey.STREAMS_GROUP_HEARTBEAT, (0, 1)),
    ServedVersions(ApiKey.STREAMS_GROUP_DESCRIBE, (0, 1)),
    ServedVersions(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, (0, 1)),
    ServedVersions(ApiKey.ALTER_SHARE_GROUP_OFFSETS, (0, 0)),
    ServedVersions(ApiKey.DELETE_SHARE_GROUP_OFFSETS, (0, 0)),
    ServedVersions(ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, (0, 0)),
    ServedVersions(ApiKey.UNREGISTER_CONTROLLER, (0, 0)),
)

# ApiKeys.apisForListener(CONTROLLER) without those that brokers send, such as 62 and 63.
_AT_CONTROLLER = frozenset(
    {
        *(17, 18, 19, 20, 29, 30, 31, 32, 33, 36, 37, 38, 39, 40, 41, 43, 44, 45, 46, 49),
        *(50, 51, 55, 57, 60, 64, 80, 81, 94),
    }
)
CONTROLLER_APIS: tuple[ServedVersions, ...] = tuple(
    sorted(
        (*(api for api in APIS if api.key in _AT_CONTROLLER), ServedVersions(ApiKey.UPDATE_RAFT_VOTER, (0, 0))),
        key=lambda api: api.key,
    )
)
"""The APIs of the controller's listener, without those that brokers and other controllers send to a controller."""
