-- The fetches that the logs can be compared with.
SELECT fetches.* FROM fetches CROSS JOIN era LEFT JOIN deletions USING (topic)
WHERE struct(run, era) >= since AND (deleted IS NULL OR struct(run, id) > deleted)
