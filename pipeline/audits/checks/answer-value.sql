-- title: an impossible value in a response
-- severity: error
-- needs: journal
-- A negative throttle time, an id, epoch or offset below those that mean none, an unknown state or type, an invalid port, another member
-- than the one that sent the request, fields of an error in a response without one, or authorized operations that were not requested.
WITH sound AS (
  SELECT run, id, api, version, client_id, software, request, response, get_json_object(response, '$.error_code') AS whole_error FROM calls
  WHERE response IS NOT NULL AND coalesce(size(faults), 0) = 0
),
found AS (
  SELECT run, id, 'a negative throttle time' AS what FROM sound
  WHERE try_cast(get_json_object(response, '$.throttle_time_ms') AS BIGINT) < 0
  UNION ALL
  SELECT run, id, 'a partition of Produce' FROM (
    SELECT run, id, from_json(response, 'responses ARRAY<STRUCT<partition_responses ARRAY<STRUCT<error_code STRING, log_append_time_ms BIGINT,
             log_start_offset BIGINT, current_leader STRUCT<leader_id INT, leader_epoch INT>>>>>').responses AS topics FROM sound WHERE api = 'Produce')
  WHERE size(filter(topics, topic -> size(filter(topic.partition_responses, each -> each.log_append_time_ms < -1 OR each.log_start_offset < -1
    OR (each.error_code = 'NONE' AND (each.current_leader.leader_id <> -1 OR each.current_leader.leader_epoch <> -1)))) > 0)) > 0
  UNION ALL
  SELECT run, id, 'a partition of Fetch' FROM (
    SELECT run, id, from_json(response, 'responses ARRAY<STRUCT<partitions ARRAY<STRUCT<error_code STRING, last_stable_offset BIGINT,
             log_start_offset BIGINT, preferred_read_replica INT, current_leader STRUCT<leader_id INT, leader_epoch INT>,
             diverging_epoch STRUCT<epoch INT, end_offset BIGINT>, snapshot_id STRUCT<epoch INT, end_offset BIGINT>>>>>').responses AS topics,
           coalesce(from_json(request, 'topics ARRAY<STRUCT<partitions ARRAY<STRUCT<last_fetched_epoch INT>>>>').topics, array()) AS sent
    FROM sound WHERE api = 'Fetch')
  WHERE size(filter(topics, topic -> size(filter(topic.partitions, each -> each.last_stable_offset < -1 OR each.log_start_offset < -1
    OR each.preferred_read_replica < -1 OR each.snapshot_id.epoch <> -1 OR each.snapshot_id.end_offset <> -1
    OR (each.error_code = 'NONE' AND (each.current_leader.leader_id <> -1 OR each.current_leader.leader_epoch <> -1))
    OR ((each.diverging_epoch.epoch <> -1 OR each.diverging_epoch.end_offset <> -1)
      AND size(filter(sent, asked -> size(filter(asked.partitions, one -> one.last_fetched_epoch >= 0)) > 0)) = 0))) > 0)) > 0
  UNION ALL
  SELECT run, id, 'a fetch session' FROM sound
  WHERE api = 'Fetch' AND (try_cast(get_json_object(response, '$.session_id') AS BIGINT) < 0
    OR (whole_error <> 'NONE' AND get_json_object(response, '$.responses[0]') IS NOT NULL))
  UNION ALL
  SELECT run, id, 'an offset, time or epoch' FROM (
    SELECT run, id, from_json(response, 'topics ARRAY<STRUCT<partitions ARRAY<STRUCT<offset BIGINT, timestamp BIGINT, leader_epoch INT>>>>').topics AS topics
    FROM sound WHERE api = 'ListOffsets')
  WHERE size(filter(topics, topic -> size(filter(topic.partitions, each -> each.offset < -1 OR each.timestamp < -1
    OR each.leader_epoch < -1)) > 0)) > 0
  UNION ALL
  SELECT run, id, 'a committed offset' FROM (
    SELECT run, id, from_json(response, 'groups ARRAY<STRUCT<topics ARRAY<STRUCT<partitions ARRAY<STRUCT<committed_offset BIGINT,
             committed_leader_epoch INT>>>>>>').groups AS groups FROM sound WHERE api = 'OffsetFetch')
  WHERE size(filter(groups, one -> size(filter(one.topics, topic -> size(filter(topic.partitions, each -> each.committed_offset < -1
    OR each.committed_leader_epoch < -1)) > 0)) > 0)) > 0
  UNION ALL
  SELECT run, id, 'the state of a transaction' FROM (
    SELECT run, id, api, from_json(response, 'transaction_states ARRAY<STRUCT<error_code STRING, transactional_id STRING, transaction_state STRING, producer_id
             BIGINT, producer_epoch INT, transaction_timeout_ms INT>>').transaction_states AS states
    FROM sound WHERE api IN ('ListTransactions', 'DescribeTransactions'))
  WHERE size(filter(states, each -> coalesce(each.error_code, 'NONE') = 'NONE' AND (each.producer_id < -1 OR each.producer_epoch < -1
      OR each.transaction_timeout_ms < 0 OR each.transaction_state NOT IN ('Empty', 'Ongoing', 'PrepareCommit', 'PrepareAbort', 'CompleteCommit',
      'CompleteAbort', 'Dead', 'PrepareEpochFence', 'Unknown')))) > 0
    OR size(array_distinct(transform(states, each -> each.transactional_id))) < size(states)
  UNION ALL
  SELECT run, id, 'a producer' FROM (
    SELECT run, id, from_json(response, 'topics ARRAY<STRUCT<partitions ARRAY<STRUCT<active_producers ARRAY<STRUCT<producer_id BIGINT,
             producer_epoch INT, last_sequence INT, last_timestamp BIGINT, coordinator_epoch INT, current_txn_start_offset BIGINT>>>>>>').topics AS topics
    FROM sound WHERE api = 'DescribeProducers')
  WHERE size(filter(topics, topic -> size(filter(topic.partitions, each -> size(filter(each.active_producers, one -> one.producer_id < 0
    OR one.producer_epoch < -1
      OR one.last_sequence < -1 OR one.last_timestamp < -1 OR one.coordinator_epoch < -1 OR one.current_txn_start_offset < -1)) > 0
    OR size(array_distinct(transform(each.active_producers, one -> one.producer_id))) < size(each.active_producers))) > 0)) > 0
  UNION ALL
  SELECT run, id, 'a group' FROM (
    SELECT run, id, api, from_json(response, 'groups ARRAY<STRUCT<group_id STRING, error_code STRING, group_state STRING, group_type STRING, group_epoch INT,
             assignment_epoch INT>>').groups AS groups
    FROM sound WHERE api IN ('ListGroups', 'DescribeGroups', 'ConsumerGroupDescribe', 'ShareGroupDescribe', 'StreamsGroupDescribe'))
  WHERE size(filter(groups, each -> coalesce(each.error_code, 'NONE') = 'NONE' AND (each.group_epoch < 0 OR each.assignment_epoch < 0
      OR each.assignment_epoch > each.group_epoch OR lower(nullif(each.group_type, '')) NOT IN ('unknown', 'consumer', 'classic', 'share', 'streams')
      OR nullif(each.group_state, '') NOT IN ('Unknown', 'PreparingRebalance', 'CompletingRebalance', 'Stable', 'Dead', 'Empty', 'Assigning', 'Reconciling',
      'NotReady')))) > 0
    OR (api = 'ListGroups' AND size(array_distinct(transform(groups, each -> each.group_id))) < size(groups))
  UNION ALL
  SELECT run, id, 'a member' FROM sound
  WHERE api IN ('ConsumerGroupHeartbeat', 'ShareGroupHeartbeat', 'StreamsGroupHeartbeat') AND whole_error = 'NONE'
    AND ((get_json_object(request, '$.member_id') <> '' AND get_json_object(response, '$.member_id') <> get_json_object(request, '$.member_id'))
      OR try_cast(get_json_object(response, '$.heartbeat_interval_ms') AS INT)
        < if(try_cast(get_json_object(request, '$.member_epoch') AS INT) < 0, 0, 1))
  UNION ALL
  SELECT run, id, 'an assignment' FROM (
    SELECT run, id, from_json(response, 'assignment STRUCT<topic_partitions ARRAY<STRUCT<topic_id STRING, partitions ARRAY<INT>>>>')
             .assignment.topic_partitions AS topics FROM sound WHERE api IN ('ConsumerGroupHeartbeat', 'ShareGroupHeartbeat'))
  WHERE size(array_distinct(transform(topics, each -> each.topic_id))) < size(topics)
    OR size(filter(topics, each -> size(each.partitions) = 0 OR size(array_distinct(each.partitions)) < size(each.partitions))) > 0
  UNION ALL
  SELECT run, id, 'acquired records' FROM (
    SELECT run, id, from_json(response, 'acquisition_lock_timeout_ms INT, responses ARRAY<STRUCT<partitions ARRAY<STRUCT<records STRUCT<base_offset BIGINT,
             last_offset BIGINT>, acquired_records ARRAY<STRUCT<first_offset BIGINT, last_offset BIGINT, delivery_count INT>>>>>>') AS got
    FROM sound WHERE api = 'ShareFetch')
  WHERE got.acquisition_lock_timeout_ms < 0 OR size(filter(got.responses, topic -> size(filter(topic.partitions, each ->
    size(filter(each.acquired_records, one -> one.first_offset < 0 OR one.last_offset < one.first_offset OR one.delivery_count < 1
      OR one.last_offset > each.records.last_offset)) > 0
    OR size(array_distinct(transform(each.acquired_records, one -> one.first_offset))) < size(each.acquired_records))) > 0)) > 0
  UNION ALL
  SELECT run, id, 'tasks' FROM (
    SELECT run, id, from_json(response, 'active_tasks ARRAY<STRUCT<subtopology_id STRING, partitions ARRAY<INT>>>, standby_tasks
             ARRAY<STRUCT<subtopology_id STRING, partitions ARRAY<INT>>>, warmup_tasks ARRAY<STRUCT<subtopology_id STRING, partitions ARRAY<INT>>>') AS got
    FROM sound WHERE api = 'StreamsGroupHeartbeat')
  WHERE size(filter(got.active_tasks, each -> size(filter(concat(coalesce(got.standby_tasks, array()), coalesce(got.warmup_tasks, array())), other ->
      other.subtopology_id = each.subtopology_id AND size(array_intersect(other.partitions, each.partitions)) > 0)) > 0)) > 0
  UNION ALL
  SELECT run, id, 'a low watermark' FROM (
    SELECT run, id, from_json(response, 'topics ARRAY<STRUCT<partitions ARRAY<STRUCT<error_code STRING, low_watermark BIGINT>>>>').topics AS topics
    FROM sound WHERE api = 'DeleteRecords')
  WHERE size(filter(topics, topic -> size(filter(topic.partitions, each -> each.low_watermark < if(each.error_code = 'NONE', 0, -1))) > 0)) > 0
  UNION ALL
  SELECT run, id, 'a setting' FROM (
    SELECT run, id, from_json(response, 'results ARRAY<STRUCT<configs ARRAY<STRUCT<name STRING, config_source INT, config_type INT, synonyms
             ARRAY<STRUCT<source INT>>>>>>').results AS results FROM sound WHERE api = 'DescribeConfigs')
  WHERE size(filter(results, one -> size(array_distinct(transform(one.configs, each -> each.name))) < size(one.configs)
    OR size(filter(one.configs, each -> each.config_source NOT BETWEEN -1 AND 8 OR each.config_type NOT BETWEEN 0 AND 9
      OR size(filter(each.synonyms, synonym -> synonym.source NOT BETWEEN 0 AND 8)) > 0)) > 0)) > 0
  UNION ALL
  SELECT run, id, 'a topic id of another name' FROM (
    SELECT run, id, coalesce(nullif(each.topic, ''), nullif(each.name, '')) AS topic, each.topic_id
    FROM (SELECT run, id, from_json(response, 'responses ARRAY<STRUCT<topic STRING, name STRING, topic_id STRING>>').responses AS topics
          FROM sound WHERE api IN ('Fetch', 'Produce') AND version >= 13)
    CROSS JOIN LATERAL explode(topics) AS each_rows(each)) named LEFT JOIN topic_names ON topic_names.topic_id = named.topic_id
  WHERE named.topic <> topic_names.topic OR (topic_names.topic IS NULL AND named.topic IN (SELECT topic FROM metadata_topics)
    AND (SELECT min(offset) FROM state_metadata) < 10 AND NOT EXISTS (
      SELECT 1 FROM state_metadata WHERE type = 'TopicRecord' AND get_json_object(record, '$.topic_id') = named.topic_id))
  UNION ALL
  SELECT run, id, what FROM answer_faults WHERE kind = 'answer-value'
)
SELECT found.run, found.id, calls.api, calls.client_id, calls.software, min(what) AS what, count(*) AS times
FROM found JOIN calls ON calls.run = found.run AND calls.id = found.id
GROUP BY found.run, found.id, calls.api, calls.client_id, calls.software
