-- The produced sets of records that the logs can be compared with.
SELECT produces.* FROM produces CROSS JOIN era LEFT JOIN deletions USING (topic)
WHERE struct(run, era) >= since AND (deleted IS NULL OR struct(run, id) > deleted)
