-- title: a record was copied twice
-- severity: error
-- needs: history
-- A program copies records from one topic to another in transactions, and consumers with read_committed got two copies of one record.
SELECT copies.topic AS topic, max(copies.partition) AS partition, max(copies.offset) AS offset, max(copies.id) AS id,
       min(copies.id) AS other_id, copies.source_topic AS source_topic, copies.source_id AS source_id, count(*) AS copies
FROM (SELECT DISTINCT polled.topic, polled.partition, polled.offset, polled.id, sent.source_topic, sent.source_id, sent.group_id
      FROM polled_records polled
      JOIN (SELECT * FROM client_events WHERE event = 'sent' AND source_id IS NOT NULL) sent
        ON sent.topic = polled.topic AND sent.id = polled.id
      WHERE polled.isolation = 'read_committed') copies
GROUP BY copies.topic, copies.source_topic, copies.source_id, copies.group_id HAVING count(*) > 1
