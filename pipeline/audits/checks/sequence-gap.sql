-- title: sequence numbers are missing
-- severity: error
-- Sequence numbers are missing between two batches of one producer and epoch: records that it has sent are not in the log. Not checked in
-- `__consumer_offsets`, where a group coordinator writes with a producer's id.
SELECT produced.directory, topic, partition, base_offset AS offset, producer_id, producer_epoch, base_sequence,
       pmod(CAST(data_sequence AS BIGINT) + 1, 2147483648) AS expected_sequence,
       pmod(CAST(base_sequence AS BIGINT) - data_sequence - 1, 2147483648) AS missing_records, segment, position
FROM produced JOIN partitions USING (directory, topic, partition)
WHERE NOT is_control AND topic <> '__consumer_offsets' AND base_sequence >= 0 AND producer_epoch = data_epoch AND data_offset >= cleaned_to
  AND pmod(CAST(base_sequence AS BIGINT) - data_sequence - 1, 2147483648) BETWEEN 1 AND 1073741823
