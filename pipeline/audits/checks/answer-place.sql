-- title: a partition, offset or leader epoch in a response that the logs do not have
-- severity: error
-- needs: journal
-- A response contained a partition that its topic does not have (partitions are never removed), a topic id that never existed, an offset
-- beyond the log end, a leader epoch beyond the latest, or another end of a leader epoch than the one in the directory: clients wait for
-- what does not exist, or truncate what they have read. Checked if the directory has a metadata log; deleted topics are left out.
WITH named AS (
  SELECT places.run, places.id, coalesce(places.topic, topic_names.topic) AS topic, coalesce(places.topic_id, metadata_topics.topic_id) AS topic_id,
         partition, leader_epoch, end_offset, api
  FROM (SELECT answer_places.*, calls.api FROM answer_places JOIN calls ON calls.run = answer_places.run AND calls.id = answer_places.id
        CROSS JOIN era WHERE struct(answer_places.run, answer_places.era) >= since) places
  LEFT JOIN topic_names ON topic_names.topic_id = places.topic_id
  LEFT JOIN metadata_topics ON metadata_topics.topic = places.topic
),
standing AS (
  SELECT named.* FROM named LEFT JOIN deletions USING (topic) WHERE deleted IS NULL
),
logs AS (
  SELECT topic, partition, max(log_end) AS log_end FROM partitions GROUP BY ALL
),
ends AS (
  SELECT topic, partition, epoch, lead(start_offset) OVER (PARTITION BY directory, topic, partition ORDER BY epoch) AS next_start FROM epochs
),
found AS (
  SELECT run, id, standing.topic, standing.partition, CAST(NULL AS BIGINT) AS offset, 'a partition that is not there' AS what
  FROM standing JOIN metadata_topics ON metadata_topics.topic_id = standing.topic_id
  WHERE NOT EXISTS (SELECT 1 FROM metadata_partitions there WHERE there.topic_id = standing.topic_id AND there.partition = standing.partition)
  UNION ALL
  SELECT run, id, topic, partition, CAST(NULL AS BIGINT), 'a topic id that never was'
  FROM standing
  WHERE topic_id IS NOT NULL AND (SELECT min(offset) FROM state_metadata) < 10 AND NOT EXISTS (
    SELECT 1 FROM state_metadata WHERE type = 'TopicRecord' AND get_json_object(record, '$.topic_id') = standing.topic_id)
  UNION ALL
  SELECT run, id, topic, partition, CAST(NULL AS BIGINT), 'a topic that never was'
  FROM standing
  WHERE api IN ('DescribeLogDirs', 'ListConfigResources') AND topic <> '__cluster_metadata' AND (SELECT min(offset) FROM state_metadata) < 10 AND NOT EXISTS (
    SELECT 1 FROM state_metadata WHERE type = 'TopicRecord' AND get_json_object(record, '$.name') = standing.topic)
  UNION ALL
  SELECT run, id, standing.topic, standing.partition, end_offset, 'beyond the end of the log'
  FROM standing JOIN logs ON logs.topic = standing.topic AND logs.partition = standing.partition
  WHERE end_offset > log_end
  UNION ALL
  SELECT run, id, standing.topic, standing.partition, CAST(NULL AS BIGINT), 'a leader epoch beyond the latest'
  FROM standing JOIN leader_epochs ON leader_epochs.topic_id = standing.topic_id AND leader_epochs.partition = standing.partition
  WHERE leader_epoch > known_epoch
  UNION ALL
  SELECT run, id, standing.topic, standing.partition, end_offset, 'another end of a leader epoch'
  FROM standing JOIN ends ON ends.topic = standing.topic AND ends.partition = standing.partition AND ends.epoch = standing.leader_epoch
  WHERE api = 'OffsetForLeaderEpoch' AND next_start IS NOT NULL AND end_offset <> next_start
  UNION ALL
  SELECT standing.run, standing.id, standing.topic, standing.partition, end_offset, 'before the end of what was written'
  FROM standing JOIN calls ON calls.run = standing.run AND calls.id = standing.id
  JOIN produces ON produces.run = standing.run AND produces.topic = standing.topic AND produces.partition = standing.partition
    AND produces.error = 'NONE' AND produces.end_us < calls.ts_us
  JOIN ends ON ends.topic = standing.topic AND ends.partition = standing.partition AND ends.epoch = standing.leader_epoch
  WHERE standing.api = 'OffsetForLeaderEpoch' AND next_start IS NULL AND end_offset < produces.acked_offset + if(batch_count = 1, produces.count, 1)
)
SELECT found.run, found.id, calls.api, calls.client_id, calls.software, topic, partition, offset, what
FROM found JOIN calls ON calls.run = found.run AND calls.id = found.id
GROUP BY ALL
