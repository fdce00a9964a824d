-- title: a batch fails its checksum
-- severity: error
-- The bytes are not those that were written: a fault of disk or memory, or an edited file. Consumers fail here with a corrupt record.
SELECT directory, topic, partition, place AS offset, damage, segment, position, size
FROM ordered
WHERE damage_kind = 'crc'
