-- title: a response that the directory's metadata contradicts
-- severity: error
-- needs: journal
-- Metadata, or a heartbeat response of a consumer group (KIP-848), had a partition that its topic does not have (partitions are never
-- removed), or Metadata or ListOffsets a leader epoch beyond the latest; FindCoordinator or Metadata returned a broker that never
-- registered; InitProducerId returned an id that is in no block; ApiVersions a feature level that was never set, or omitted one that was.
-- Checked if the directory has a metadata log.
WITH described AS (
  SELECT run, id, topic.topic_id, piece.partition_index AS partition, piece.leader_epoch
  FROM (SELECT run, id, from_json(response, 'topics ARRAY<STRUCT<topic_id STRING, error_code STRING, partitions ARRAY<STRUCT<partition_index INT,
          leader_epoch INT>>>>').topics AS topics
        FROM calls WHERE api = 'Metadata' AND response IS NOT NULL AND coalesce(size(faults), 0) = 0)
  CROSS JOIN LATERAL explode(topics) AS topic_rows(topic) CROSS JOIN LATERAL explode(topic.partitions) AS piece_rows(piece)
  WHERE topic.error_code = 'NONE'
  UNION ALL
  SELECT run, id, topic.topic_id, number, CAST(NULL AS INT)
  FROM (SELECT run, id, from_json(response, 'assignment STRUCT<topic_partitions ARRAY<STRUCT<topic_id STRING, partitions ARRAY<INT>>>>')
          .assignment.topic_partitions AS topics
        FROM calls WHERE api IN ('ConsumerGroupHeartbeat', 'ShareGroupHeartbeat') AND response IS NOT NULL AND coalesce(size(faults), 0) = 0)
  CROSS JOIN LATERAL explode(topics) AS topic_rows(topic) CROSS JOIN LATERAL explode(topic.partitions) AS number_rows(number)
  UNION ALL
  SELECT listed_offsets.run, listed_offsets.id, metadata_topics.topic_id, listed_offsets.partition, listed_offsets.leader_epoch
  FROM (SELECT run, id, each.name AS topic, piece.partition_index AS partition, piece.leader_epoch FROM (SELECT run, id, from_json(response, 'topics ARRAY<STRUCT<name STRING, partitions ARRAY<STRUCT<partition_index INT, error_code STRING,
          leader_epoch INT>>>>').topics AS topics
        FROM calls WHERE api = 'ListOffsets' AND response IS NOT NULL AND coalesce(size(faults), 0) = 0)
  CROSS JOIN LATERAL explode(topics) AS each_rows(each) CROSS JOIN LATERAL explode(each.partitions) AS piece_rows(piece)
  WHERE piece.error_code = 'NONE') listed_offsets
  JOIN metadata_topics ON metadata_topics.topic = listed_offsets.topic
  LEFT JOIN deletions ON deletions.topic = listed_offsets.topic
  WHERE deleted IS NULL
),
nodes AS (
  SELECT run, id, broker.node_id
  FROM (SELECT run, id, from_json(response, 'brokers ARRAY<STRUCT<node_id INT>>').brokers AS brokers FROM calls
        WHERE api = 'Metadata' AND response IS NOT NULL AND coalesce(size(faults), 0) = 0)
  CROSS JOIN LATERAL explode(brokers) AS broker_rows(broker)
  UNION ALL
  SELECT run, id, try_cast(get_json_object(response, '$.node_id') AS INT) FROM calls
  WHERE api = 'FindCoordinator' AND version < 4 AND error IS NULL AND response IS NOT NULL AND coalesce(size(faults), 0) = 0
  UNION ALL
  SELECT run, id, found.node_id
  FROM (SELECT run, id, from_json(response, 'coordinators ARRAY<STRUCT<node_id INT, error_code STRING>>').coordinators AS coordinators FROM calls
        WHERE api = 'FindCoordinator' AND version >= 4 AND response IS NOT NULL AND coalesce(size(faults), 0) = 0)
  CROSS JOIN LATERAL explode(coordinators) AS found_rows(found) WHERE found.error_code = 'NONE'
),
levels AS (
  SELECT offset, get_json_object(record, '$.name') AS name, try_cast(get_json_object(record, '$.feature_level') AS INT) AS level
  FROM state_metadata WHERE type = 'FeatureLevelRecord'
),
offered AS (
  SELECT run, id, got.finalized_features_epoch AS epoch, got.finalized_features AS features
  FROM (SELECT run, id, from_json(response, 'finalized_features_epoch BIGINT, finalized_features ARRAY<STRUCT<name STRING, min_version_level INT,
          max_version_level INT>>') AS got
        FROM calls WHERE api = 'ApiVersions' AND version >= 3 AND error IS NULL AND response IS NOT NULL AND coalesce(size(faults), 0) = 0)
  WHERE got.finalized_features_epoch >= 0
),
named AS (
  SELECT run, id, each.name, each.min_version_level AS low, each.max_version_level AS high FROM offered
    CROSS JOIN LATERAL explode(features) AS each_rows(each)
  WHERE each.name <> 'kraft.version'
),
replicas AS (
  SELECT run, id, each.preferred_read_replica AS node_id FROM fetches each WHERE each.error = 'NONE'
),
registered AS (
  SELECT DISTINCT try_cast(get_json_object(record, '$.broker_id') AS INT) AS node_id FROM state_metadata WHERE type = 'RegisterBrokerRecord'
)
SELECT found.run, found.id, calls.api, calls.client_id, calls.software, what
FROM (
  SELECT run, id, 'a partition that is not there' AS what
  FROM described JOIN metadata_topics ON metadata_topics.topic_id = described.topic_id
  WHERE NOT EXISTS (SELECT 1 FROM metadata_partitions there WHERE there.topic_id = described.topic_id AND there.partition = described.partition)
  UNION ALL
  SELECT run, id, 'a leader epoch beyond the latest'
  FROM described JOIN leader_epochs ON leader_epochs.topic_id = described.topic_id AND leader_epochs.partition = described.partition
  WHERE described.leader_epoch > known_epoch
  UNION ALL
  SELECT run, id, 'a broker that is not registered' FROM (SELECT * FROM nodes UNION ALL SELECT * FROM replicas) nodes
  WHERE node_id >= 0 AND EXISTS (SELECT 1 FROM registered) AND NOT EXISTS (SELECT 1 FROM registered WHERE registered.node_id = nodes.node_id)
  UNION ALL
  SELECT run, id, concat('a level of ', name, ' that was never set') FROM named
  WHERE EXISTS (SELECT 1 FROM levels) AND (low <> high OR NOT EXISTS (SELECT 1 FROM levels WHERE levels.name = named.name AND levels.level = high))
  UNION ALL
  SELECT offered.run, offered.id, concat('no level of ', set_once.name)
  FROM offered JOIN (SELECT name, min(offset) AS offset FROM levels GROUP BY name HAVING count(*) = 1 AND min(level) > 0) set_once
    ON set_once.offset <= offered.epoch
  WHERE size(filter(offered.features, each -> each.name = set_once.name)) = 0
  UNION ALL
  SELECT run, id, 'features of a later time than there is' FROM offered
  WHERE epoch >= (SELECT max(log_end) FROM partitions WHERE topic = '__cluster_metadata')
  UNION ALL
  SELECT run, id, 'a producer id of no block' FROM granted
  WHERE producer_id >= (SELECT max(try_cast(get_json_object(record, '$.next_producer_id') AS BIGINT)) FROM state_metadata WHERE type = 'ProducerIdsRecord')
) found JOIN calls ON calls.run = found.run AND calls.id = found.id CROSS JOIN era
WHERE struct(calls.run, calls.era) >= since
GROUP BY ALL
