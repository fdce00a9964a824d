-- title: a bound of a partition that goes back
-- severity: error
-- needs: journal
-- A partition's high watermark, last stable offset or log start was lower in a Fetch response than in an earlier one: what consumers
-- received is no longer certain. Checked within one leader epoch: a new leader has to learn the high watermark first.
SELECT run, id, topic, partition, fetch_offset AS offset, client_id, software, broker, high_watermark, highest, log_start_offset,
       highest_start, last_stable_offset, highest_stable
FROM (
  SELECT *, max(high_watermark) OVER before AS highest, max(log_start_offset) OVER before AS highest_start,
         max(last_stable_offset) OVER before AS highest_stable,
         max(end_us) OVER before AS answered_us
  FROM current_fetches WHERE error = 'NONE' AND high_watermark >= 0 AND current_leader_epoch >= 0
  WINDOW before AS (PARTITION BY run, era, topic, partition, broker, current_leader_epoch ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
WHERE answered_us < ts_us AND (high_watermark < highest OR log_start_offset < highest_start OR (last_stable_offset < highest_stable AND last_stable_offset >= 0))
