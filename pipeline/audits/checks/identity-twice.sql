-- title: an input with several outputs
-- severity: error
-- needs: id
-- An identity occurs more often in the outputs than in the inputs: the record was processed again although the first result was committed.
SELECT last.topic, last.partition, last.offset, last.id, outputs, inputs
FROM (SELECT id, count(*) AS outputs, max(struct(timestamp_ms, topic, partition, offset)) AS newest FROM outputs WHERE id IS NOT NULL GROUP BY id) made
JOIN (SELECT id, count(*) AS inputs FROM inputs WHERE id IS NOT NULL GROUP BY id) there ON there.id = made.id
JOIN outputs last ON last.id = made.id AND last.topic = newest.topic AND last.partition = newest.partition AND last.offset = newest.offset
WHERE outputs > inputs
