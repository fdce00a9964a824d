-- title: one record at two offsets
-- severity: error
-- needs: history
-- An idempotent producer sent the record once, and it was polled or acknowledged at two offsets of the topic.
SELECT topic, max_by(partition, struct(partition, offset)) AS partition, max(offset) AS offset, id, count(*) AS places, min(offset) AS first_offset
FROM (SELECT DISTINCT topic, partition, offset, id FROM client_events
      WHERE event = 'polled' OR (event = 'acknowledged' AND offset >= 0)) places
WHERE NOT EXISTS (SELECT 1 FROM sent_records WHERE sent_records.topic = places.topic AND sent_records.id = places.id AND NOT idempotent)
GROUP BY topic, id HAVING count(*) > 1
