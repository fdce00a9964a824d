-- title: bytes that are not a batch
-- severity: error
-- There is no batch where one should begin, and what follows in the segment cannot be found. A broker cannot read beyond this point.
SELECT ordered.directory, topic, partition, place AS offset, damage, segment, position, size
FROM ordered JOIN partitions USING (directory, topic, partition)
WHERE damage_kind = 'damaged' OR (damage_kind = 'torn' AND segment_base < last_segment_base)
