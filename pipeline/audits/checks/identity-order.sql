-- title: outputs of a key in a different order than its inputs
-- severity: warning
-- needs: id
-- Of two inputs with the same key in one partition, the output of the later one was written first. Consumers that apply the outputs end up
-- with the older state.
SELECT topic, partition, offset, key, id, input_topic, input_partition, input_offset, previous_input_offset
FROM (
  SELECT outputs.topic, outputs.partition, outputs.offset, inputs.key, outputs.id, inputs.topic AS input_topic,
         inputs.partition AS input_partition, inputs.offset AS input_offset,
         lag(inputs.offset) OVER (PARTITION BY outputs.topic, outputs.partition, inputs.topic, inputs.partition, inputs.key
                                  ORDER BY outputs.offset) AS previous_input_offset
  FROM outputs JOIN inputs ON inputs.id = outputs.id
  WHERE inputs.key IS NOT NULL
    AND inputs.id IN (SELECT id FROM inputs GROUP BY id HAVING count(*) = 1)
    AND outputs.id IN (SELECT id FROM outputs GROUP BY id HAVING count(*) = 1)
)
WHERE input_offset < previous_input_offset
