-- title: an output whose input is not committed
-- severity: error
-- needs: id
-- The output is committed, and the group's offset is not beyond its input: after a restart the record is processed again. Output and offset
-- were not in one transaction.
SELECT outputs.topic, outputs.partition, outputs.offset, outputs.id, inputs.topic AS input_topic, inputs.partition AS input_partition,
       inputs.offset AS input_offset, committed_offset
FROM outputs JOIN inputs ON inputs.id = outputs.id
WHERE is_known AND inputs.offset >= coalesce(committed_offset, 0)
  AND inputs.id IN (SELECT id FROM inputs GROUP BY id HAVING count(*) = 1)
