-- title: an input without an output
-- severity: error
-- needs: id
-- The group has committed an offset after this record, and no output has its identity: it was consumed and lost. Checked as long as the
-- output topics have all their records.
SELECT inputs.topic, inputs.partition, inputs.offset, inputs.id, committed_offset
FROM inputs LEFT JOIN (SELECT DISTINCT id FROM outputs) done ON done.id = inputs.id
WHERE inputs.offset < committed_offset AND inputs.id IS NOT NULL AND done.id IS NULL
  AND NOT EXISTS (SELECT 1 FROM partitions WHERE greatest(log_start, cleaned_to) > 0 AND topic IN (SELECT topic FROM named_topics WHERE role = 'output'))
