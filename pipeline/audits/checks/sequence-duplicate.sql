-- title: the same sequence numbers twice
-- severity: error
-- A producer numbers its records; a broker that remembers it refuses numbers that it has. Here they are in the log a second
-- time: the records are doubled for every consumer. Usual cause: the producer's state was lost (expiry, an unclean election)
-- between the first attempt and its retry. Not looked at in `__consumer_offsets`: a group's coordinator writes the offsets of a
-- transaction in its producer's name, each batch with the number 0.
SELECT directory, topic, partition, base_offset AS offset, producer_id, producer_epoch, base_sequence, last_sequence,
       data_sequence AS already_up_to, data_offset AS earlier_offset, record_count, segment, position
FROM produced
WHERE NOT is_control AND topic <> '__consumer_offsets' AND base_sequence >= 0 AND producer_epoch = data_epoch
  AND pmod(CAST(base_sequence AS BIGINT) - data_sequence - 1, 2147483648) >= 1073741824
