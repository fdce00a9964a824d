-- title: a marker is missing
-- severity: error
-- The coordinator has completed a transaction and named its partitions. One of them has fewer markers of the producer than transactions
-- that ended there, though the log has continued: what the producer wrote there is undecided, or gets the outcome of the producer's next
-- transaction. Kafka 4.3.1 does this when a broker starts with an overdue transaction: as long as the partitions have no leader, the
-- coordinator takes them for deleted ones (KRaftMetadataCache.getPartitionLeaderEndpoint).
SELECT directory, topic, partition, producer_id, producer_epoch, transactional_id, decisions, coalesce(markers, 0) AS markers
FROM (SELECT transactional_id, producer_id, producer_epoch, topic, partition, count(*) AS decisions, max(last_update_ms) AS last_update_ms
      FROM decisions WHERE is_complete GROUP BY ALL) decided
JOIN partitions USING (topic, partition)
LEFT JOIN (SELECT directory, topic, partition, producer_id, producer_epoch, count(*) AS markers FROM produced WHERE is_control GROUP BY ALL)
  USING (directory, topic, partition, producer_id, producer_epoch)
WHERE decisions > coalesce(markers, 0) AND log_start = 0 AND cleaned_to = 0 AND NOT coalesce(is_recreated, true) AND NOT is_damaged
  AND EXISTS (SELECT 1 FROM batches WHERE batches.directory = partitions.directory AND batches.topic = decided.topic
              AND batches.partition = decided.partition AND max_timestamp_ms > decided.last_update_ms)
  AND NOT EXISTS (SELECT 1 FROM transactions WHERE marker IS NULL AND first_offset IS NOT NULL
                  AND transactions.producer_id = decided.producer_id AND transactions.topic = decided.topic
                  AND transactions.partition = decided.partition)
