-- The lost ranges of which another replica has all offsets.
SELECT topic, partition, first_offset, last_offset, array_sort(collect_set(directory)) AS still_in
FROM (
  SELECT batches.directory, topic, partition, lost.first_offset, lost.last_offset,
         sum(least(batches.last_offset, lost.last_offset) - greatest(base_offset, lost.first_offset) + 1) AS there
  FROM (SELECT DISTINCT topic, partition, first_offset, last_offset FROM lost_ranges WHERE last_offset >= first_offset) lost
  JOIN batches USING (topic, partition)
  WHERE damage IS NULL AND base_offset <= lost.last_offset AND batches.last_offset >= lost.first_offset
  GROUP BY batches.directory, topic, partition, lost.first_offset, lost.last_offset
)
WHERE there >= last_offset - first_offset + 1
GROUP BY topic, partition, first_offset, last_offset
