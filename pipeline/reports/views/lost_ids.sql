-- The ids by which clients know the first records of the lost ranges, from their histories, with those that they polled.
SELECT topic, partition, first_offset, last_offset, slice(array_sort(collect_set(id)), 1, 20) AS ids
FROM (SELECT DISTINCT topic, partition, first_offset, last_offset FROM lost_ranges WHERE last_offset >= first_offset) lost
JOIN (SELECT topic, partition, offset, id FROM client_events WHERE event IN ('acknowledged', 'polled')) known USING (topic, partition)
WHERE known.offset BETWEEN first_offset AND last_offset
GROUP BY topic, partition, first_offset, last_offset
