-- title: an error that the API does not have
-- severity: error
-- needs: journal
-- Some errors belong to a few APIs only: those of fetch sessions, members, transactions, elections, share sessions and others. An
-- answer of another API has one, which its clients do not know to handle.
WITH owners AS (
  SELECT error, apis
  FROM (
    SELECT 'ELECTION_NOT_NEEDED ELIGIBLE_LEADERS_NOT_AVAILABLE PREFERRED_LEADER_NOT_AVAILABLE' AS errors, 'ElectLeaders' AS apis
    UNION ALL SELECT 'FETCH_SESSION_ID_NOT_FOUND INVALID_FETCH_SESSION_EPOCH FETCH_SESSION_TOPIC_ID_ERROR', 'Fetch'
    UNION ALL SELECT 'SHARE_SESSION_NOT_FOUND INVALID_SHARE_SESSION_EPOCH SHARE_SESSION_LIMIT_REACHED', 'ShareFetch ShareAcknowledge'
    UNION ALL SELECT 'MEMBER_ID_REQUIRED INCONSISTENT_GROUP_PROTOCOL GROUP_MAX_SIZE_REACHED INVALID_SESSION_TIMEOUT',
      'JoinGroup SyncGroup ConsumerGroupHeartbeat ShareGroupHeartbeat StreamsGroupHeartbeat'
    UNION ALL SELECT 'REBALANCE_IN_PROGRESS ILLEGAL_GENERATION',
      'JoinGroup SyncGroup Heartbeat OffsetCommit TxnOffsetCommit ConsumerGroupHeartbeat LeaveGroup'
    UNION ALL SELECT 'NON_EMPTY_GROUP', 'DeleteGroups AlterShareGroupOffsets DeleteShareGroupOffsets OffsetDelete'
    UNION ALL SELECT 'GROUP_SUBSCRIBED_TO_TOPIC', 'OffsetDelete'
    UNION ALL SELECT 'TRANSACTIONAL_ID_NOT_FOUND', 'DescribeTransactions EndTxn AddPartitionsToTxn AddOffsetsToTxn InitProducerId'
    UNION ALL SELECT 'INVALID_TRANSACTION_TIMEOUT', 'InitProducerId'
    UNION ALL SELECT 'OUT_OF_ORDER_SEQUENCE_NUMBER DUPLICATE_SEQUENCE_NUMBER UNSUPPORTED_FOR_MESSAGE_FORMAT', 'Produce TxnOffsetCommit ListOffsets OffsetCommit'
    UNION ALL SELECT 'TOPIC_ALREADY_EXISTS', 'CreateTopics'
    UNION ALL SELECT 'TOPIC_DELETION_DISABLED', 'DeleteTopics'
    UNION ALL SELECT 'INVALID_REPLICATION_FACTOR', 'CreateTopics CreatePartitions Metadata FindCoordinator AlterPartitionReassignments'
    UNION ALL SELECT 'INVALID_PARTITIONS', 'CreateTopics CreatePartitions Metadata'
    UNION ALL SELECT 'NO_REASSIGNMENT_IN_PROGRESS', 'AlterPartitionReassignments'
    UNION ALL SELECT 'OFFSET_OUT_OF_RANGE', 'Fetch DeleteRecords ShareFetch ListOffsets'
    UNION ALL SELECT 'SASL_AUTHENTICATION_FAILED UNSUPPORTED_SASL_MECHANISM', 'SaslHandshake SaslAuthenticate ListOffsets'
    UNION ALL SELECT 'UNSUPPORTED_ASSIGNOR UNRELEASED_INSTANCE_ID', 'ConsumerGroupHeartbeat'
    UNION ALL SELECT 'TELEMETRY_TOO_LARGE UNKNOWN_SUBSCRIPTION_ID', 'PushTelemetry GetTelemetrySubscriptions'
    UNION ALL SELECT 'INVALID_RECORD_STATE', 'ShareFetch ShareAcknowledge'
    UNION ALL SELECT 'STREAMS_INVALID_TOPOLOGY STREAMS_INVALID_TOPOLOGY_EPOCH STREAMS_TOPOLOGY_FENCED', 'StreamsGroupHeartbeat'
    UNION ALL SELECT 'DELEGATION_TOKEN_NOT_FOUND DELEGATION_TOKEN_OWNER_MISMATCH DELEGATION_TOKEN_EXPIRED',
      'RenewDelegationToken ExpireDelegationToken SaslAuthenticate'
    UNION ALL SELECT 'UNACCEPTABLE_CREDENTIAL DUPLICATE_RESOURCE RESOURCE_NOT_FOUND',
      'AlterUserScramCredentials DescribeUserScramCredentials UpdateFeatures AddRaftVoter RemoveRaftVoter'
    UNION ALL SELECT 'NOT_LEADER_OR_FOLLOWER FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH',
      concat('Produce Fetch ListOffsets OffsetForLeaderEpoch DeleteRecords ShareFetch ShareAcknowledge DescribeProducers DescribeQuorum Vote ',
             'BeginQuorumEpoch EndQuorumEpoch FetchSnapshot WriteTxnMarkers AlterPartition LeaderAndIsr StopReplica ReadShareGroupState ',
             'WriteShareGroupState InitializeShareGroupState DeleteShareGroupState ReadShareGroupStateSummary DescribeShareGroupOffsets ',
             'AlterShareGroupOffsets DeleteShareGroupOffsets AddRaftVoter RemoveRaftVoter UpdateRaftVoter')
    UNION ALL SELECT 'UNKNOWN_MEMBER_ID',
      concat('JoinGroup SyncGroup Heartbeat LeaveGroup OffsetCommit TxnOffsetCommit OffsetFetch ConsumerGroupHeartbeat ShareGroupHeartbeat ',
             'StreamsGroupHeartbeat ShareFetch ShareAcknowledge')
    UNION ALL SELECT 'FENCED_INSTANCE_ID',
      'JoinGroup SyncGroup Heartbeat LeaveGroup OffsetCommit TxnOffsetCommit ConsumerGroupHeartbeat StreamsGroupHeartbeat'
    UNION ALL SELECT 'STALE_MEMBER_EPOCH FENCED_MEMBER_EPOCH',
      'OffsetCommit OffsetFetch TxnOffsetCommit ConsumerGroupHeartbeat ShareGroupHeartbeat StreamsGroupHeartbeat'
    UNION ALL SELECT 'OFFSET_METADATA_TOO_LARGE', 'OffsetCommit TxnOffsetCommit'
    UNION ALL SELECT 'UNSTABLE_OFFSET_COMMIT', 'OffsetFetch'
    UNION ALL SELECT 'MESSAGE_TOO_LARGE RECORD_LIST_TOO_LARGE', 'Produce'
    UNION ALL SELECT 'CORRUPT_MESSAGE', 'Produce Fetch ShareFetch ListOffsets FetchSnapshot WriteTxnMarkers'
    UNION ALL SELECT 'NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND INVALID_REQUIRED_ACKS UNKNOWN_PRODUCER_ID', 'Produce WriteTxnMarkers InitProducerId'
    UNION ALL SELECT 'PRODUCER_FENCED INVALID_PRODUCER_EPOCH INVALID_PRODUCER_ID_MAPPING INVALID_TXN_STATE CONCURRENT_TRANSACTIONS TRANSACTION_ABORTABLE',
      'Produce InitProducerId AddPartitionsToTxn AddOffsetsToTxn EndTxn TxnOffsetCommit WriteTxnMarkers'
    UNION ALL SELECT 'OPERATION_NOT_ATTEMPTED', 'AddPartitionsToTxn'
    UNION ALL SELECT 'SECURITY_DISABLED', 'CreateAcls DeleteAcls DescribeAcls'
    UNION ALL SELECT 'NO_LONGER_IN_QUORUM POSITION_OUT_OF_RANGE', 'Vote BeginQuorumEpoch EndQuorumEpoch FetchSnapshot'
  ) LATERAL VIEW explode(split(errors, ' ')) AS error
)
SELECT calls.run, calls.id, calls.api, calls.client_id, calls.software, owners.error
FROM calls JOIN owners ON calls.response LIKE concat('%"', owners.error, '"%')
WHERE size(coalesce(faults, array())) = 0 AND calls.error IS NOT NULL AND NOT array_contains(split(apis, ' '), calls.api)
