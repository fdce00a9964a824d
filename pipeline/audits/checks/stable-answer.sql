-- title: a last stable offset that the log contradicts
-- severity: error
-- needs: journal
-- The last stable offset is the first offset of the oldest transaction whose marker is not below the high watermark, or the high watermark.
-- A Fetch response has a later one, so that consumers read undecided records; or one below what earlier responses had reached.
WITH given AS (
  SELECT run, id, client_id, software, topic, partition, ts_us, last_stable_offset,
         if(max(end_us) OVER before < ts_us, max(high_watermark) OVER before, NULL) AS reached,
         if(min(ts_us) OVER behind > end_us, min(high_watermark) OVER behind, NULL) AS not_reached
  FROM current_fetches
  WHERE error = 'NONE' AND high_watermark >= 0 AND last_stable_offset >= 0 AND coalesce(replica_id, -1) < 0
  WINDOW before AS (PARTITION BY run, era, topic, partition, broker ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
         behind AS (PARTITION BY run, era, topic, partition, broker ORDER BY id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
),
whole AS (
  SELECT topic, partition, max(greatest(log_start, cleaned_to)) AS judged_from FROM partitions GROUP BY ALL HAVING NOT max(is_damaged)
)
SELECT given.run, given.id, given.client_id, given.software, given.topic, given.partition, last_stable_offset AS offset, min(open.first_offset) AS transaction_from
FROM given JOIN whole ON whole.topic = given.topic AND whole.partition = given.partition
LEFT JOIN transactions open ON open.topic = given.topic AND open.partition = given.partition AND open.first_offset < last_stable_offset
  AND (open.marker_offset IS NULL OR open.marker_offset >= not_reached)
LEFT JOIN transactions held ON held.topic = given.topic AND held.partition = given.partition AND held.first_offset <= last_stable_offset
  AND (held.marker_offset IS NULL OR held.marker_offset >= reached)
WHERE last_stable_offset >= judged_from AND (open.first_offset IS NOT NULL OR (last_stable_offset < reached AND held.first_offset IS NULL))
GROUP BY given.run, given.id, given.client_id, given.software, given.topic, given.partition, last_stable_offset
