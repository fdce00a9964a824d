-- title: records that cannot be decoded
-- severity: error
-- needs: records
-- The checksum is correct, but the records after the header are malformed: a wrong compression codec, count, length or offset. The batch
-- was written like this, and consumers fail here.
SELECT unread.directory, topic, partition, unread.base_offset AS offset, unread.damage, segment, position
FROM decoded unread ANTI JOIN (SELECT * FROM ordered WHERE damage IS NOT NULL) known USING (directory, segment, position)
WHERE unread.damage IS NOT NULL
