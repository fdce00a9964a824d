-- title: two topics whose names differ in `.` and `_` alone
-- severity: warning
-- Their metrics have the same names, so a broker creates no topic whose name would collide with another one's. Here both are there.
SELECT directory, topic, first_topic AS other_topic
FROM (
  SELECT DISTINCT directory, topic, min(topic) OVER (PARTITION BY directory, replace(topic, '.', '_')) AS first_topic
  FROM partitions
)
WHERE topic <> first_topic
