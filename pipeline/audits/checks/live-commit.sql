-- title: OffsetFetch and the coordinator's log differ
-- severity: error
-- needs: live
-- The group's coordinator returns another committed offset than the last one in its log, or an offset beyond the partition's end.
SELECT topic, partition, live_commits.committed_offset AS offset, group_id, committed.committed_offset AS log_offset,
       NULL AS high_watermark
FROM live_commits JOIN committed USING (group_id, topic, partition)
WHERE live_commits.committed_offset <> committed.committed_offset
UNION ALL
SELECT topic, partition, committed_offset, group_id, NULL, high_watermark
FROM live_commits JOIN live_partitions USING (topic, partition)
WHERE committed_offset > high_watermark
