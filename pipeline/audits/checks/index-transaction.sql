-- title: the transaction index is wrong
-- severity: error
-- `.txnindex` lists the aborted transactions, whose records read_committed consumers skip. One is missing (its records are delivered), or
-- one is listed that never existed (valid records are skipped). Not checked if the log has lost the beginning of the transaction, or of one
-- that was open at its end, to the cleaner or with its first segments, nor if the segment has no offset index: a broker then rebuilds both.
WITH aborted AS (
  SELECT ended.directory, ended.topic, ended.partition, ended.producer_id, ended.first_offset, ended.marker_offset,
         coalesce(min(other.first_offset), ended.marker_offset + 1) AS stable_offset
  FROM transactions ended
  LEFT JOIN transactions other ON other.directory = ended.directory AND other.topic = ended.topic
    AND other.partition = ended.partition AND other.producer_id <> ended.producer_id AND other.first_offset < ended.marker_offset
    AND (other.marker_offset IS NULL OR other.marker_offset > ended.marker_offset)
  WHERE ended.marker = 'ABORT' AND ended.first_offset IS NOT NULL
  GROUP BY ended.directory, ended.topic, ended.partition, ended.producer_id, ended.first_offset, ended.marker_offset
),
listed AS (
  SELECT indexes.*, count(*) OVER (PARTITION BY indexes.directory, topic, partition, producer_id, last_offset) AS times,
         lag(last_offset) OVER (PARTITION BY indexes.directory, file ORDER BY entry) AS previous_offset,
         EXISTS (SELECT 1 FROM batches WHERE batches.directory = indexes.directory AND batches.topic = indexes.topic
                 AND batches.partition = indexes.partition AND base_offset = indexes.last_offset
                 AND batches.segment_base <> indexes.segment_base) AS is_elsewhere
  FROM indexes WHERE kind = 'transaction'
)
SELECT DISTINCT coalesce(aborted.directory, listed.directory) AS directory, coalesce(aborted.topic, listed.topic) AS topic,
       coalesce(aborted.partition, listed.partition) AS partition,
       coalesce(aborted.first_offset, listed.first_offset) AS offset,
       coalesce(aborted.producer_id, listed.producer_id) AS producer_id,
       coalesce(marker_offset, listed.last_offset) AS marker_offset,
       CASE WHEN listed.topic IS NULL THEN 'not listed' WHEN aborted.topic IS NULL THEN 'listed, never aborted'
            WHEN aborted.first_offset <> listed.first_offset THEN 'listed with another beginning' WHEN times > 1 THEN 'listed twice'
            WHEN is_elsewhere THEN 'listed in the index of another segment' WHEN previous_offset > listed.last_offset THEN 'out of order'
            ELSE 'listed with another last stable offset' END AS what,
       last_stable_offset, stable_offset, listed.file AS segment
FROM aborted FULL OUTER JOIN listed
  ON aborted.directory = listed.directory AND aborted.topic = listed.topic AND aborted.partition = listed.partition
  AND aborted.producer_id = listed.producer_id AND aborted.marker_offset = listed.last_offset
JOIN partitions ON partitions.directory = coalesce(aborted.directory, listed.directory)
  AND partitions.topic = coalesce(aborted.topic, listed.topic) AND partitions.partition = coalesce(aborted.partition, listed.partition)
LEFT JOIN batches markers ON listed.topic IS NULL AND markers.directory = aborted.directory AND markers.topic = aborted.topic
  AND markers.partition = aborted.partition AND markers.base_offset = aborted.marker_offset
LEFT JOIN segment_files rebuilt ON rebuilt.what = 'missing' AND rebuilt.file LIKE '%.index' AND rebuilt.directory = markers.directory
  AND rebuilt.topic = markers.topic AND rebuilt.partition = markers.partition AND rebuilt.segment_base = markers.segment_base
WHERE least(aborted.first_offset, listed.first_offset) >= greatest(log_start, cleaned_to) AND rebuilt.file IS NULL
  AND (listed.topic IS NULL OR aborted.topic IS NULL OR aborted.first_offset <> listed.first_offset OR times > 1
    OR (last_stable_offset <> stable_offset AND last_stable_offset >= greatest(log_start, cleaned_to))
    OR is_elsewhere OR previous_offset > listed.last_offset)
