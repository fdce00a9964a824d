-- title: delivered records that differ from the log
-- severity: error
-- needs: journal
-- A consumer received a batch that the log does not have, or that differs in its last offset, producer, checksum, size or epoch. Checked
-- where the log was neither truncated nor cleaned.
SELECT given.run, given.id, given.topic, given.partition, given.base_offset AS offset, given.client_id, given.software,
       given.last_offset, given.producer_id, max(batches.last_offset) AS log_last_offset, max(batches.producer_id) AS log_producer_id
FROM (SELECT run, id, topic, partition, client_id, software, batch.base_offset, batch.last_offset, batch.producer_id,
             batch.count, batch.size_bytes, batch.leader_epoch, batch.producer_epoch, batch.base_sequence, batch.crc, batch.transactional, batch.control,
             batch.compression, batch.log_append_time, batch.base_timestamp_ms, batch.max_timestamp_ms
      FROM (SELECT run, id, topic, partition, client_id, software, batches FROM current_fetches
            UNION ALL
            SELECT run, id, topic, partition, client_id, software, batches
            FROM (SELECT pieces.*, topic_names.topic FROM (
                  SELECT got.run, got.era, got.id, got.client_id, got.software, each.topic_id, piece.partition_index AS partition, piece.records.batches AS batches
                  FROM (SELECT *, from_json(response, 'responses ARRAY<STRUCT<topic_id STRING, partitions ARRAY<STRUCT<partition_index INT, records STRUCT<batches
                          ARRAY<STRUCT<base_offset BIGINT, last_offset BIGINT, producer_id BIGINT, transactional BOOLEAN, control BOOLEAN, count BIGINT, size_bytes
                          BIGINT, leader_epoch INT, producer_epoch INT, base_sequence BIGINT, crc BIGINT, compression STRING, log_append_time BOOLEAN,
                          base_timestamp_ms BIGINT, max_timestamp_ms BIGINT>>>>>>>').responses AS topics
                        FROM calls WHERE api = 'ShareFetch' AND response IS NOT NULL) got
                  CROSS JOIN LATERAL explode(topics) AS each_rows(each) CROSS JOIN LATERAL explode(each.partitions) AS piece_rows(piece)) pieces
                  JOIN topic_names ON topic_names.topic_id = pieces.topic_id) shared
            CROSS JOIN era LEFT JOIN deletions USING (topic)
            WHERE struct(run, era) >= since AND deleted IS NULL) handed
      CROSS JOIN LATERAL explode(batches) AS batch_rows(batch)) given
JOIN (SELECT topic, partition, max(log_end) AS log_end, max(greatest(log_start, cleaned_to)) AS judged_from, max(is_damaged) AS is_damaged
      FROM partitions GROUP BY ALL) USING (topic, partition)
LEFT JOIN batches ON batches.topic = given.topic AND batches.partition = given.partition AND batches.base_offset = given.base_offset
  AND batches.damage IS NULL
WHERE given.base_offset >= judged_from AND given.base_offset < log_end AND NOT is_damaged
GROUP BY ALL
HAVING coalesce(max(if(batches.last_offset = given.last_offset AND batches.producer_id = given.producer_id
    AND coalesce(given.count = batches.record_count, true) AND coalesce(given.size_bytes = batches.size, true)
    AND coalesce(given.leader_epoch = batches.leader_epoch, true) AND coalesce(given.producer_epoch = batches.producer_epoch, true)
    AND coalesce(given.base_sequence = batches.base_sequence, true) AND coalesce(given.crc = batches.crc, true)
    AND coalesce(given.transactional = batches.is_transactional, true) AND coalesce(given.control = batches.is_control, true)
    AND coalesce(given.compression = batches.codec, true) AND coalesce(given.log_append_time = (batches.timestampType = 1), true)
    AND coalesce(given.base_timestamp_ms = batches.base_timestamp_ms, true) AND coalesce(given.max_timestamp_ms = batches.max_timestamp_ms, true), 1, 0)), 0) = 0
