-- title: a record that a client got is not in the log
-- severity: error
-- needs: history, logs
-- A record was acknowledged at this offset, or polled from it, and no batch in the log has it. Offsets below the log start and within the
-- cleaner's reach are not checked, nor deleted topics.
SELECT events.topic AS topic, events.partition AS partition, events.offset AS offset, events.id AS id, event AS what, client, log_end
FROM client_events events
JOIN (SELECT topic, partition, max(log_end) AS log_end, max(greatest(log_start, cleaned_to)) AS judged_from
      FROM partitions GROUP BY topic, partition) ends ON ends.topic = events.topic AND ends.partition = events.partition
WHERE event IN ('acknowledged', 'polled') AND events.offset >= judged_from
  AND NOT EXISTS (SELECT 1 FROM batches WHERE batches.topic = events.topic AND batches.partition = events.partition
                  AND NOT is_control AND events.offset BETWEEN base_offset AND last_offset)
