-- title: the shape of JSON values
-- needs: records
-- One row per path in the sample (`--values`); `[]` is every element of an array. `present_share`: share of the topic's JSON values that
-- have the path; `null_share`: share of these in which it is null. `least` and `most` are examples, cut to 40 characters; `different` is
-- the number of different values.
WITH leaves AS (
  SELECT topic, leaf.*, total
  FROM (SELECT topic, value, count(*) OVER (PARTITION BY topic) AS total FROM sampled WHERE kind LIKE 'JSON%')
  CROSS JOIN LATERAL explode(json_paths(value)) AS leaf_rows(leaf)
)
SELECT topic, path, array_join(array_sort(array_distinct(flatten(collect_set(types)))), ' or ') AS types, count(*) AS sampled,
       count(*) / max(total) AS present_share, count_if(is_null) / count(*) AS null_share, count(DISTINCT example) AS different,
       min(example) AS least, max(example) AS most
FROM leaves
GROUP BY topic, path
ORDER BY topic, path
