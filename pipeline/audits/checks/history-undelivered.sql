-- title: a record was never delivered
-- severity: error
-- needs: history
-- All failures were over, and the members of the group polled until nothing came any more: no member ever got a record that was written.
-- Of a consumer without a group: it did not get a record at or behind its last position.
SELECT known.topic AS topic, known.partition AS partition, known.offset AS offset, known.id AS id, waited.client AS client,
       waited.group_id AS group_id
FROM (SELECT topic, group_id, max(client) AS client FROM client_events WHERE event = 'drained' AND group_id IS NOT NULL
      GROUP BY topic, group_id) waited
JOIN known_records known ON known.topic = waited.topic
WHERE NOT EXISTS (SELECT 1 FROM polled_records own
                  JOIN (SELECT DISTINCT client, group_id FROM client_events WHERE group_id IS NOT NULL AND event NOT IN ('sent', 'stored')) members
                    ON members.client = own.client
                  WHERE members.group_id = waited.group_id AND own.topic = known.topic AND own.partition = known.partition
                    AND own.offset = known.offset)
UNION ALL
SELECT known.topic, known.partition, known.offset, known.id, waited.client, NULL
FROM (SELECT DISTINCT client, topic FROM client_events WHERE event = 'drained' AND group_id IS NULL) waited
JOIN (SELECT client, topic, partition, max_by(offset, run) AS start_offset FROM client_events
      WHERE event = 'assigned' AND offset IS NOT NULL GROUP BY client, topic, partition) own
  ON own.client = waited.client AND own.topic = waited.topic
JOIN known_records known ON known.topic = own.topic AND known.partition = own.partition AND known.offset >= own.start_offset
WHERE NOT EXISTS (SELECT 1 FROM polled_records got WHERE got.client = waited.client AND got.topic = known.topic
                  AND got.partition = known.partition AND got.offset = known.offset)
