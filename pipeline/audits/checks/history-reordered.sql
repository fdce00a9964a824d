-- title: records in a different order than they were sent
-- severity: error
-- needs: history
-- An idempotent producer sent one record after another to a partition, and the later one has the lower offset.
SELECT topic, acked_partition AS partition, acked_offset AS offset, id, client, highest_offset, file, line
FROM (SELECT *, max(acked_offset) OVER (PARTITION BY client, topic, acked_partition ORDER BY number
                                        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS highest_offset
      FROM sent_records WHERE is_acked AND acked_offset >= 0 AND idempotent) ordered_sends
WHERE acked_offset < highest_offset
