-- title: an invalid change of metadata
-- severity: error
-- needs: journal
-- A topic keeps its id until it is deleted, and the leader epochs of its partitions only increase: a broker that goes back makes clients
-- trust outdated metadata. (A response may be older than another broker's.)
WITH answers AS (
  SELECT run, era, broker, id, ts_us, end_us, client_id, software, topic.name AS topic, topic.topic_id, piece.partition_index AS partition, piece.leader_epoch
  FROM (SELECT *, from_json(response, 'topics ARRAY<STRUCT<name STRING, topic_id STRING, error_code STRING, partitions
          ARRAY<STRUCT<partition_index INT, leader_epoch INT>>>>') AS got
        FROM calls WHERE api = 'Metadata' AND response IS NOT NULL AND coalesce(size(faults), 0) = 0)
  CROSS JOIN LATERAL explode(got.topics) AS topic_rows(topic) CROSS JOIN LATERAL explode(topic.partitions) AS piece_rows(piece)
  WHERE topic.error_code = 'NONE' AND topic.topic_id <> 'AAAAAAAAAAAAAAAAAAAAAA'
)
SELECT run, min(id) AS id, topic, partition, client_id, software, topic_id, previous_id, leader_epoch, highest_epoch
FROM (SELECT *, lag(topic_id) OVER all_before AS previous_id, max(end_us) OVER before AS answered_us,
             max(leader_epoch) OVER (PARTITION BY run, era, broker, topic, topic_id, partition ORDER BY id
                                     ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS highest_epoch
      FROM answers
      WINDOW all_before AS (PARTITION BY run, era, broker, topic, partition ORDER BY id),
             before AS (PARTITION BY run, era, broker, topic, partition ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
WHERE answered_us < ts_us AND (leader_epoch < highest_epoch
  OR (topic_id <> previous_id AND topic NOT IN (SELECT topic FROM deletions WHERE topic IS NOT NULL)))
GROUP BY ALL
