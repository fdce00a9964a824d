-- title: the transaction index lies
-- severity: error
-- `.txnindex` lists the aborted transactions, and consumers that read committed are told by it what to leave out. One is missing
-- (its records are delivered), or one is listed that never was (records are left out that should not be).
SELECT coalesce(aborted.directory, listed.directory) AS directory, coalesce(aborted.topic, listed.topic) AS topic,
       coalesce(aborted.partition, listed.partition) AS partition,
       coalesce(aborted.first_offset, listed.first_offset) AS offset,
       coalesce(aborted.producer_id, listed.producer_id) AS producer_id,
       coalesce(marker_offset, listed.last_offset) AS marker_offset,
       CASE WHEN listed.topic IS NULL THEN 'not listed' WHEN aborted.topic IS NULL THEN 'listed, never aborted'
            ELSE 'listed with another beginning' END AS what, listed.file AS segment
FROM (SELECT * FROM transactions JOIN partitions USING (directory, topic, partition)
      WHERE marker = 'ABORT' AND first_offset >= greatest(log_start, cleaned_to)) aborted
FULL OUTER JOIN (SELECT indexes.* FROM indexes JOIN partitions USING (directory, topic, partition)
      WHERE kind = 'transaction' AND indexes.first_offset >= greatest(log_start, cleaned_to)) listed
  ON aborted.directory = listed.directory AND aborted.topic = listed.topic AND aborted.partition = listed.partition
  AND aborted.producer_id = listed.producer_id AND aborted.marker_offset = listed.last_offset
WHERE listed.topic IS NULL OR aborted.topic IS NULL OR aborted.first_offset <> listed.first_offset
