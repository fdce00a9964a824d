-- title: a key that contradicts compaction
-- severity: warning
-- needs: records
-- In a compacted topic every record has a key (a topic that became compacted later may have older ones without), and a key has one value in
-- the part of the log that was cleaned.
SELECT directory, topic, partition, offset, 'no key' AS what, CAST(NULL AS BIGINT) AS later_offset
FROM compacted_keys WHERE key IS NULL
UNION ALL
SELECT directory, topic, partition, min(offset), 'a later value below the checkpoint of the cleaner', max(offset)
FROM compacted_keys JOIN partitions USING (directory, topic, partition)
WHERE key IS NOT NULL AND offset < cleaner_checkpoint AND NOT is_transactional
GROUP BY directory, topic, partition, key HAVING count(*) > 1
