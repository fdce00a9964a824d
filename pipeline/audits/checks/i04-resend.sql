-- title: a resend with other records (conformance 3 I04)
-- severity: error
-- needs: journal
-- The same sequence number was sent twice with another number of records or other bytes. The broker treats the later one as a duplicate and
-- drops it: its records are lost.
SELECT run, id, topic, partition, stamped_offset AS offset, client_id, software, software_version, producer_id, producer_epoch,
       base_sequence, count, first_count, crc, first_crc
FROM (
  SELECT *, first_value(count) OVER same AS first_count, first_value(crc) OVER same AS first_crc,
         max(error = 'MESSAGE_TOO_LARGE') OVER same AS has_to_split
  FROM produces WHERE producer_id >= 0 AND base_sequence >= 0 AND NOT coalesce(log_append_time, false)
  WINDOW same AS (PARTITION BY run, era, producer_id, producer_epoch, topic, partition, base_sequence ORDER BY id)
)
WHERE (count <> first_count OR crc <> first_crc) AND NOT coalesce(has_to_split, false)
