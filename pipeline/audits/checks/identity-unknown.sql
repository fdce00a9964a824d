-- title: an output without an input
-- severity: warning
-- needs: id
-- No input has the identity of this output. Checked as long as the input topics have all their records.
SELECT outputs.topic, outputs.partition, outputs.offset, outputs.id
FROM outputs LEFT JOIN (SELECT DISTINCT id FROM inputs) known ON known.id = outputs.id
WHERE outputs.id IS NOT NULL AND known.id IS NULL
  AND NOT EXISTS (SELECT 1 FROM partitions WHERE greatest(log_start, cleaned_to) > 0 AND topic IN (SELECT topic FROM named_topics WHERE role = 'input'))
