-- title: the log ends within a batch
-- severity: warning
-- The last bytes of the newest segment are the beginning of a batch: the machine stopped while it was written, or it is being
-- written now. A broker cuts it off when it starts; what was in it had not been acknowledged, unless nothing was ever synced.
SELECT ordered.directory, topic, partition, place AS offset, damage, segment, position, size
FROM ordered JOIN partitions USING (directory, topic, partition)
WHERE damage_kind = 'torn' AND segment_base = last_segment_base
