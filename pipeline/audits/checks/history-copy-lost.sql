-- title: a record was not copied
-- severity: error
-- needs: history
-- The group of a program that copies records has committed an offset behind the record, or the program ran until nothing was left to copy,
-- and no consumer with read_committed got a copy.
SELECT known.topic AS topic, known.partition AS partition, known.offset AS offset, known.id AS id, copiers.topic AS output,
       copiers.group_id AS group_id
FROM (SELECT DISTINCT topic, source_topic, group_id FROM client_events WHERE event = 'sent' AND source_id IS NOT NULL
      AND group_id IS NOT NULL) copiers
JOIN known_records known ON known.topic = copiers.source_topic
WHERE EXISTS (SELECT 1 FROM client_events done
              WHERE done.group_id = copiers.group_id AND done.topic = known.topic
                AND (done.event = 'drained' OR (done.event IN ('committed', 'stored') AND done.partition = known.partition
                                                AND done.offset > known.offset)))
  AND EXISTS (SELECT 1 FROM polled_records reader WHERE reader.topic = copiers.topic AND reader.isolation = 'read_committed')
  AND NOT EXISTS (SELECT 1 FROM client_events sent JOIN polled_records polled ON polled.topic = sent.topic AND polled.id = sent.id
                  WHERE sent.event = 'sent' AND sent.source_topic = known.topic AND sent.source_id = known.id
                    AND sent.topic = copiers.topic AND sent.group_id = copiers.group_id AND polled.isolation = 'read_committed')
