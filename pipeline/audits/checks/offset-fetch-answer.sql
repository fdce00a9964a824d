-- title: OffsetFetch returned another offset than the committed one
-- severity: error
-- needs: journal
-- A group requested its committed offset, and got neither the last one that was committed before, nor one that was being committed
-- meanwhile: it skips records, or receives them again. Or the coordinator never wrote that offset with that leader epoch and metadata;
-- checked if its logs have all their records.
WITH answers AS (
  SELECT pieces.*, coalesce(topic_names.topic, name, key) AS topic
  FROM (
    SELECT run, era, id, ts_us, end_us, client_id, software, one.group_id, nullif(each.name, '') AS name, each.topic_id AS key,
           piece.partition_index AS partition, piece.committed_offset, piece.committed_leader_epoch, piece.metadata
    FROM (SELECT *, from_json(response, 'groups ARRAY<STRUCT<group_id STRING, topics ARRAY<STRUCT<name STRING, topic_id STRING,
            partitions ARRAY<STRUCT<partition_index INT, committed_offset BIGINT, committed_leader_epoch INT, metadata STRING, error_code STRING>>>>>>') AS got
          FROM calls WHERE api = 'OffsetFetch' AND error IS NULL AND response IS NOT NULL AND coalesce(size(faults), 0) = 0)
    CROSS JOIN LATERAL explode(got.groups) AS one_rows(one) CROSS JOIN LATERAL explode(one.topics) AS each_rows(each)
    CROSS JOIN LATERAL explode(each.partitions) AS piece_rows(piece)
    WHERE piece.error_code = 'NONE'
  ) pieces LEFT JOIN topic_names ON topic_names.topic_id = key
),
kept AS (
  SELECT directory, partition, min(base_offset) AS first_offset, sum(record_count) AS records, max(last_offset) + 1 AS end_offset
  FROM batches WHERE topic = '__consumer_offsets' AND damage IS NULL GROUP BY directory, partition
),
near AS (
  SELECT answers.*, max_by(done.committed_offset, done.end_us) FILTER (WHERE done.end_us < answers.ts_us) AS last_committed,
         collect_set(if(done.end_us >= answers.ts_us, done.committed_offset, NULL)) AS meanwhile
  FROM answers LEFT JOIN effective_commits done ON done.run = answers.run AND done.era = answers.era AND done.group_id = answers.group_id
    AND done.topic = answers.topic AND done.partition = answers.partition
  GROUP BY ALL
)
SELECT run, id, topic, partition, min(offset) AS offset, client_id, software, group_id, min(last_committed) AS last_committed
FROM (
SELECT run, id, topic, partition, near.committed_offset AS offset, client_id, software, group_id, last_committed
FROM near
WHERE last_committed IS NOT NULL AND near.committed_offset <> last_committed AND NOT array_contains(meanwhile, near.committed_offset)
  AND topic NOT IN (SELECT topic FROM deletions)
  AND NOT EXISTS (SELECT 1 FROM calls gone WHERE gone.run = near.run AND gone.api IN ('OffsetDelete', 'DeleteGroups') AND gone.id < near.id)
UNION ALL
SELECT run, id, topic, partition, committed_offset, client_id, software, group_id, CAST(NULL AS BIGINT)
FROM answers CROSS JOIN era
WHERE committed_offset >= 0 AND struct(run, answers.era) >= since AND NOT EXISTS (
    SELECT 1 FROM state_offsets known WHERE known.group_id = answers.group_id AND known.committed_topic = answers.topic
      AND known.committed_partition = answers.partition AND known.committed_offset = answers.committed_offset
      AND coalesce(known.committed_leader_epoch, -1) = answers.committed_leader_epoch
      AND coalesce(known.metadata, '') = coalesce(answers.metadata, ''))
  AND (SELECT count(*) > 0 AND count_if(first_offset > 0 OR records < end_offset) = 0 FROM kept)
) found
GROUP BY run, id, topic, partition, client_id, software, group_id
