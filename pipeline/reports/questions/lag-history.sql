-- title: lag over time
-- needs: journal
-- One row per reader and partition: groups by their commits, clients without a group by the offset that they fetched from. `position` and
-- `log_end` are the last ones in the journal. `still_ms`: for how long, up to its end, the position had not moved although there was lag;
-- `trend`: that of the last quarter of the time.
WITH placed AS (
  SELECT *, lag(position) OVER before AS previous_position, max(at_ms) OVER whole AS last_ms, min(at_ms) OVER whole AS first_ms
  FROM lag_windows
  WINDOW before AS (PARTITION BY run, era, kind, reader, topic, partition ORDER BY at_ms),
         whole AS (PARTITION BY run, era, kind, reader, topic, partition)
)
SELECT run, era, kind, reader, topic, partition, max_by(position, at_ms) AS position, max_by(log_end, at_ms) AS log_end,
       max_by(lag, at_ms) AS lag, max(lag) AS most_lag, timestamp_millis(max_by(at_ms, (lag, -at_ms))) AS most_lag_at,
       if(max_by(lag, at_ms) > 0, max(last_ms) - max(if(position IS DISTINCT FROM previous_position, at_ms, NULL)), 0) AS still_ms,
       CASE WHEN max_by(lag, at_ms) > 2 * coalesce(max_by(lag, if(at_ms <= last_ms - (last_ms - first_ms) / 4, at_ms, NULL)), 0) THEN 'grows'
            WHEN max_by(lag, at_ms) = 0 THEN 'none'
            WHEN 2 * max_by(lag, at_ms) < max_by(lag, if(at_ms <= last_ms - (last_ms - first_ms) / 4, at_ms, NULL)) THEN 'shrinks'
            ELSE 'steady' END AS trend
FROM placed
GROUP BY run, era, kind, reader, topic, partition
ORDER BY run, era, lag DESC, reader, topic, partition
