-- title: a sequence that neither continues nor repeats (conformance 3 I03)
-- severity: error
-- needs: journal
-- On the wire, per producer, epoch and partition: the next batch continues where the last one ended, or repeats one of the last five
-- unchanged. This one does neither: the client lost count, and the broker will reject it, or the records are lost.
SELECT run, id, topic, partition, stamped_offset AS offset, client_id, software, software_version, producer_id, producer_epoch,
       base_sequence, count, expected, error
FROM (
  SELECT *, max(base_sequence + count) OVER before AS expected,
         array_agg(struct(base_sequence, count)) OVER before AS earlier,
         max(error = 'MESSAGE_TOO_LARGE') OVER before AS has_to_split
  FROM produces WHERE producer_id >= 0 AND base_sequence >= 0
  WINDOW before AS (PARTITION BY run, era, producer_id, producer_epoch, topic, partition ORDER BY id
                    ROWS BETWEEN 50 PRECEDING AND 1 PRECEDING)
)
WHERE base_sequence <> expected AND NOT array_contains(earlier, struct(base_sequence, count))
  AND NOT coalesce(has_to_split, false) AND expected < 2147483000
