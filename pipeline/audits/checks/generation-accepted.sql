-- title: a member of an old generation is not refused
-- severity: error
-- needs: journal
-- The group had a newer generation before the request was sent, and the broker accepted the request: a member that lost its partitions
-- commits for them, or continues working.
SELECT asked.run, asked.id, asked.client_id, asked.software, asked.api, asked.group_id, asked.member_id, asked.generation,
       max(newer.given_generation) AS group_generation
FROM members asked
JOIN members own ON own.run = asked.run AND own.era = asked.era AND own.group_id = asked.group_id AND own.member_id = asked.member_id
  AND own.api = 'JoinGroup' AND own.error IS NULL AND own.given_generation = asked.generation
JOIN members newer ON newer.run = asked.run AND newer.era = asked.era AND newer.group_id = asked.group_id AND newer.id > own.id
  AND newer.api = 'JoinGroup' AND newer.error IS NULL AND newer.given_generation > asked.generation AND newer.end_us < asked.ts_us
WHERE asked.api IN ('OffsetCommit', 'Heartbeat', 'SyncGroup') AND asked.error IS NULL AND asked.outcome = 'answered'
GROUP BY ALL
