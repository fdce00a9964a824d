-- title: output and input offset in transactions of two producers
-- severity: error
-- needs: id
-- The input's offset was committed in a transaction of another producer than the one that wrote its output: the two can be committed and
-- aborted independently. Checked if `__consumer_offsets` has all its records.
SELECT DISTINCT outputs.topic, outputs.partition, outputs.offset, outputs.id, outputs.producer_id,
       input_commits.producer_id AS committed_by, inputs.topic AS input_topic, inputs.partition AS input_partition, inputs.offset AS input_offset
FROM inputs
JOIN input_commits ON input_commits.topic = inputs.topic AND input_commits.partition = inputs.partition
  AND inputs.offset >= from_offset AND inputs.offset < to_offset
JOIN outputs ON outputs.id = inputs.id
WHERE outputs.producer_id <> input_commits.producer_id
  AND inputs.id IN (SELECT id FROM inputs GROUP BY id HAVING count(*) = 1)
  AND outputs.id IN (SELECT id FROM outputs GROUP BY id HAVING count(*) = 1)
