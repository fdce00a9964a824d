-- title: the same sequence numbers twice
-- severity: error
-- A producer numbers its records, and a broker that knows the producer rejects numbers that it already has. Here they are in the log a
-- second time: the records are duplicated for every consumer. Usual cause: the producer's state was lost (expiry, an unclean election)
-- between the first attempt and its retry. Not checked in `__consumer_offsets`: a group coordinator writes the offsets of a transaction
-- with its producer's id, each batch with sequence 0.
SELECT directory, topic, partition, base_offset AS offset, producer_id, producer_epoch, base_sequence, last_sequence,
       data_sequence AS already_up_to, data_offset AS earlier_offset, record_count, segment, position
FROM produced
WHERE NOT is_control AND topic <> '__consumer_offsets' AND base_sequence >= 0 AND producer_epoch = data_epoch
  AND pmod(CAST(base_sequence AS BIGINT) - data_sequence - 1, 2147483648) >= 1073741824
