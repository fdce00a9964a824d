-- title: two records at one offset
-- severity: error
-- needs: history
-- Clients polled different records at one offset, or polled another record than the one acknowledged there.
SELECT topic, partition, offset, min(id) AS id, max(id) AS other_id, count(DISTINCT id) AS records
FROM client_events WHERE event = 'polled' OR (event = 'acknowledged' AND offset >= 0)
GROUP BY topic, partition, offset HAVING count(DISTINCT id) > 1
