-- title: a committed offset is gone
-- severity: error
-- needs: history
-- The client reported that the group committed an offset, and in the end the group had a lower one, or none: records are processed again.
SELECT topic, partition, max(offset) AS offset, group_id, max_by(client, offset) AS client, stored_offset
FROM (SELECT done.*, coalesce(ends.offset, -1) AS stored_offset
      FROM (SELECT * FROM client_events WHERE event = 'committed') done
      JOIN (SELECT DISTINCT group_id FROM client_events WHERE event = 'stored') known ON known.group_id = done.group_id
      LEFT JOIN (SELECT group_id, topic, partition, max(offset) AS offset FROM client_events WHERE event = 'stored'
                 GROUP BY group_id, topic, partition) ends
        ON ends.group_id = done.group_id AND ends.topic = done.topic AND ends.partition = done.partition) compared
WHERE offset > stored_offset
GROUP BY topic, partition, group_id, stored_offset
