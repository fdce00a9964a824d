-- title: an input without an output
-- severity: error
-- needs: id
-- The group has committed an offset behind this record, and no output has its identity: it was consumed and lost.
SELECT inputs.topic, inputs.partition, inputs.offset, inputs.id, committed_offset
FROM inputs LEFT JOIN (SELECT DISTINCT id FROM outputs) done ON done.id = inputs.id
WHERE inputs.offset < committed_offset AND inputs.id IS NOT NULL AND done.id IS NULL
