-- The lag of every reader and partition, per time window. Without a new value the last one is kept; a topic counts as another one after a
-- reset (in another era).
WITH positions AS (
  SELECT run, era, reader, kind, topic, partition, at_us DIV (:window_ms * 1000) AS window, max_by(position, at_us) AS position
  FROM readers JOIN wanted_names USING (topic) GROUP BY ALL
),
seen AS (
  SELECT run, era, topic, partition, at_us DIV (:window_ms * 1000) AS window, max(log_end) AS log_end
  FROM ends GROUP BY ALL
),
whole AS (SELECT run, era, min(window) AS low, max(window) AS high FROM (
  SELECT run, era, window FROM positions UNION ALL SELECT run, era, window FROM seen) GROUP BY ALL),
grid AS (
  SELECT run, era, reader, kind, topic, partition, explode(sequence(low, high)) AS window
  FROM (SELECT DISTINCT run, era, reader, kind, topic, partition FROM positions) JOIN whole USING (run, era)
)
SELECT run, era, reader, kind, topic, partition, window * :window_ms AS at_ms, position, log_end,
       greatest(log_end - position, 0) AS lag
FROM (SELECT grid.*, last_value(positions.position, true) OVER so_far AS position, max(seen.log_end) OVER so_far AS log_end
      FROM grid LEFT JOIN positions USING (run, era, reader, kind, topic, partition, window)
      LEFT JOIN seen USING (run, era, topic, partition, window)
      WINDOW so_far AS (PARTITION BY run, era, reader, kind, topic, partition ORDER BY window
                        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW))
WHERE position IS NOT NULL AND log_end IS NOT NULL
