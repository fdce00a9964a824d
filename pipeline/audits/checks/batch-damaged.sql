-- title: bytes that are not a batch
-- severity: error
-- Where a batch should begin there is none, and what follows in the segment cannot be found. A broker refuses to read on here.
SELECT ordered.directory, topic, partition, place AS offset, damage, segment, position, size
FROM ordered JOIN partitions USING (directory, topic, partition)
WHERE damage_kind = 'damaged' OR (damage_kind = 'torn' AND segment_base < last_segment_base)
