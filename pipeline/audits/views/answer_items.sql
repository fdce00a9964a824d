-- What a request named and what its response contains: a row for each topic, partition, group or other element, with `asked` or `answered`
-- 1. Only requests that name something; responses without a top-level error. `item`: a topic's name, then the partition.
WITH sound AS (
  SELECT run, id, api, version, request, response FROM calls
  WHERE outcome = 'answered' AND response IS NOT NULL AND coalesce(size(faults), 0) = 0
    AND coalesce(get_json_object(response, '$.error_code'), 'NONE') = 'NONE'
),
of_partitions AS (
  SELECT run, id, api, asked, coalesce(nullif(each.name, ''), each.topic_id) AS topic_key, piece.partition_index AS partition
  FROM (SELECT run, id, api, 1 AS asked, from_json(request, 'topics ARRAY<STRUCT<name STRING, topic_id STRING, partitions
          ARRAY<STRUCT<partition_index INT>>>>').topics AS topics
        FROM sound WHERE api IN ('ListOffsets', 'OffsetCommit', 'TxnOffsetCommit', 'DeleteRecords')
        UNION ALL
        SELECT run, id, api, 0, from_json(response, 'topics ARRAY<STRUCT<name STRING, topic_id STRING, partitions
          ARRAY<STRUCT<partition_index INT>>>>').topics
        FROM sound WHERE api IN ('ListOffsets', 'OffsetCommit', 'TxnOffsetCommit', 'DeleteRecords', 'DescribeProducers'))
  CROSS JOIN LATERAL explode(topics) AS each_rows(each) CROSS JOIN LATERAL explode(each.partitions) AS piece_rows(piece)
  UNION ALL
  SELECT run, id, api, 1, each.name, number
  FROM (SELECT *, from_json(request, 'topics ARRAY<STRUCT<name STRING, partition_indexes ARRAY<INT>>>').topics AS topics
        FROM sound WHERE api = 'DescribeProducers')
  CROSS JOIN LATERAL explode(topics) AS each_rows(each) CROSS JOIN LATERAL explode(each.partition_indexes) AS number_rows(number)
  UNION ALL
  SELECT run, id, api, 1, each.name, number
  FROM (SELECT *, from_json(request, 'v3_and_below_topics ARRAY<STRUCT<name STRING, partitions ARRAY<INT>>>').v3_and_below_topics AS topics
        FROM sound WHERE api = 'AddPartitionsToTxn' AND version < 4)
  CROSS JOIN LATERAL explode(topics) AS each_rows(each) CROSS JOIN LATERAL explode(each.partitions) AS number_rows(number)
  UNION ALL
  SELECT run, id, api, 0, each.name, piece.partition_index
  FROM (SELECT *, from_json(response, 'results_by_topic_v3_and_below ARRAY<STRUCT<name STRING, results_by_partition ARRAY<STRUCT<
          partition_index INT>>>>').results_by_topic_v3_and_below AS topics FROM sound WHERE api = 'AddPartitionsToTxn' AND version < 4)
  CROSS JOIN LATERAL explode(topics) AS each_rows(each) CROSS JOIN LATERAL explode(each.results_by_partition) AS piece_rows(piece)
  UNION ALL
  SELECT run, id, api, 1, coalesce(nullif(each.name, ''), each.topic_id), number
  FROM (SELECT *, from_json(request, 'groups ARRAY<STRUCT<topics ARRAY<STRUCT<name STRING, topic_id STRING, partition_indexes ARRAY<INT>>>>>').groups AS found
        FROM sound WHERE api = 'OffsetFetch')
  CROSS JOIN LATERAL explode(found) AS one_rows(one) CROSS JOIN LATERAL explode(one.topics) AS each_rows(each)
  CROSS JOIN LATERAL explode(each.partition_indexes) AS number_rows(number)
  WHERE size(found) = 1
  UNION ALL
  SELECT run, id, api, 0, coalesce(nullif(each.name, ''), each.topic_id), piece.partition_index
  FROM (SELECT *, from_json(request, 'groups ARRAY<STRUCT<topics ARRAY<STRUCT<name STRING>>>>').groups AS wanted,
               from_json(response, 'groups ARRAY<STRUCT<error_code STRING, topics ARRAY<STRUCT<name STRING, topic_id STRING, partitions
               ARRAY<STRUCT<partition_index INT>>>>>>').groups AS found
        FROM sound WHERE api = 'OffsetFetch')
  CROSS JOIN LATERAL explode(found) AS one_rows(one) CROSS JOIN LATERAL explode(one.topics) AS each_rows(each)
  CROSS JOIN LATERAL explode(each.partitions) AS piece_rows(piece)
  WHERE size(wanted) = 1 AND one.error_code = 'NONE' AND size(filter(wanted, each_wanted -> each_wanted.topics IS NOT NULL)) > 0
),
of_names AS (
  SELECT run, id, api, 1 AS asked, key AS item
  FROM (SELECT *, from_json(request, 'coordinator_keys ARRAY<STRING>, transactional_ids ARRAY<STRING>, groups_names ARRAY<STRING>,
          group_ids ARRAY<STRING>') AS sent
        FROM sound WHERE (api = 'FindCoordinator' AND version >= 4) OR api IN ('DescribeTransactions', 'DeleteGroups', 'ConsumerGroupDescribe',
          'ShareGroupDescribe', 'StreamsGroupDescribe'))
  CROSS JOIN LATERAL explode(coalesce(if(api = 'FindCoordinator', sent.coordinator_keys, NULL), sent.transactional_ids, sent.groups_names,
    sent.group_ids)) AS key_rows(key)
  UNION ALL
  SELECT run, id, api, 1, key
  FROM (SELECT *, from_json(request, 'groups ARRAY<STRING>').groups AS keys FROM sound WHERE api = 'DescribeGroups')
  CROSS JOIN LATERAL explode(keys) AS key_rows(key)
  UNION ALL
  SELECT run, id, api, 1, each.group_id
  FROM (SELECT *, from_json(request, 'groups ARRAY<STRUCT<group_id STRING>>').groups AS found FROM sound WHERE api = 'OffsetFetch' AND version >= 8)
  CROSS JOIN LATERAL explode(found) AS each_rows(each)
  UNION ALL
  SELECT run, id, api, 1, each.name
  FROM (SELECT *, from_json(request, 'topics ARRAY<STRUCT<name STRING, topic_id STRING>>').topics AS found
        FROM sound WHERE api IN ('Metadata', 'CreateTopics', 'CreatePartitions', 'DeleteTopics'))
  CROSS JOIN LATERAL explode(found) AS each_rows(each)
  UNION ALL
  SELECT run, id, api, 1, concat(CAST(each.resource_type AS STRING), ' ', each.resource_name)
  FROM (SELECT *, from_json(request, 'resources ARRAY<STRUCT<resource_type INT, resource_name STRING>>').resources AS found
        FROM sound WHERE api = 'DescribeConfigs')
  CROSS JOIN LATERAL explode(found) AS each_rows(each)
  UNION ALL
  SELECT run, id, api, 0, coalesce(each.key, each.transactional_id, each.group_id, each.name)
  FROM (SELECT *, from_json(response, 'coordinators ARRAY<STRUCT<key STRING, transactional_id STRING, group_id STRING, name STRING>>,
          transaction_states ARRAY<STRUCT<key STRING, transactional_id STRING, group_id STRING, name STRING>>,
          groups ARRAY<STRUCT<key STRING, transactional_id STRING, group_id STRING, name STRING>>,
          topics ARRAY<STRUCT<key STRING, transactional_id STRING, group_id STRING, name STRING>>,
          results ARRAY<STRUCT<key STRING, transactional_id STRING, group_id STRING, name STRING>>,
          responses ARRAY<STRUCT<key STRING, transactional_id STRING, group_id STRING, name STRING>>') AS got
        FROM sound WHERE (api = 'FindCoordinator' AND version >= 4) OR (api = 'OffsetFetch' AND version >= 8)
          OR api IN ('DescribeTransactions', 'DeleteGroups', 'ConsumerGroupDescribe', 'ShareGroupDescribe', 'StreamsGroupDescribe',
                     'DescribeGroups', 'Metadata', 'CreateTopics', 'CreatePartitions', 'DeleteTopics'))
  CROSS JOIN LATERAL explode(CASE WHEN api = 'FindCoordinator' THEN got.coordinators WHEN api = 'DescribeTransactions' THEN got.transaction_states
    WHEN api IN ('DeleteGroups', 'CreatePartitions') THEN got.results WHEN api = 'DeleteTopics' THEN got.responses
    WHEN api IN ('Metadata', 'CreateTopics') THEN got.topics ELSE got.groups END) AS each_rows(each)
  UNION ALL
  SELECT run, id, api, 0, concat(CAST(each.resource_type AS STRING), ' ', each.resource_name)
  FROM (SELECT *, from_json(response, 'results ARRAY<STRUCT<resource_type INT, resource_name STRING>>').results AS found
        FROM sound WHERE api = 'DescribeConfigs')
  CROSS JOIN LATERAL explode(found) AS each_rows(each)
)
SELECT run, id, api, asked, 1 - asked AS answered,
       concat(coalesce(topic_names.topic, topic_key), '-', CAST(partition AS STRING)) AS item
FROM of_partitions LEFT JOIN topic_names ON topic_names.topic_id = topic_key
UNION ALL
SELECT run, id, api, asked, 1 - asked, item FROM of_names
UNION ALL
SELECT DISTINCT run, id, 'Fetch', 1, 0, concat(topic, '-', CAST(partition AS STRING)) FROM fetches
WHERE outcome = 'answered' AND session_epoch IN (-1, 0) AND asked_offset IS NOT NULL AND call_error IS NULL
UNION ALL
SELECT run, id, 'Fetch', 0, 1, concat(topic, '-', CAST(partition AS STRING)) FROM fetches
WHERE outcome = 'answered' AND session_epoch IN (-1, 0) AND error IS NOT NULL AND call_error IS NULL
