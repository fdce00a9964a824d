-- The lag of every reader and partition, per time window. Without a new value the last one is kept; a topic counts as another one after a
-- reset (in another era).
WITH positions AS (
  SELECT run, era, reader, kind, topic, partition, div(at_us, :window_ms * 1000) AS slot, max_by(position, at_us) AS position
  FROM readers JOIN wanted_names USING (topic) GROUP BY ALL
),
seen AS (
  SELECT run, era, topic, partition, div(at_us, :window_ms * 1000) AS slot, max(log_end) AS log_end
  FROM ends GROUP BY ALL
),
whole AS (SELECT run, era, min(slot) AS low, max(slot) AS high FROM (
  SELECT run, era, slot FROM positions UNION ALL SELECT run, era, slot FROM seen) GROUP BY ALL),
grid AS (
  SELECT run, era, reader, kind, topic, partition, explode(sequence(low, high)) AS slot
  FROM (SELECT DISTINCT run, era, reader, kind, topic, partition FROM positions) JOIN whole USING (run, era)
)
SELECT run, era, reader, kind, topic, partition, slot * :window_ms AS at_ms, position, log_end,
       greatest(log_end - position, 0) AS lag
FROM (SELECT grid.*, last_value(positions.position) IGNORE NULLS OVER so_far AS position, max(seen.log_end) OVER so_far AS log_end
      FROM grid LEFT JOIN positions USING (run, era, reader, kind, topic, partition, slot)
      LEFT JOIN seen USING (run, era, topic, partition, slot)
      WINDOW so_far AS (PARTITION BY run, era, reader, kind, topic, partition ORDER BY slot
                        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW))
WHERE position IS NOT NULL AND log_end IS NOT NULL
