-- title: a fetch that skips records (conformance 3 I29)
-- severity: warning
-- needs: journal
-- A consumer requested an offset beyond what it had received, and no offset from the broker (ListOffsets, OffsetFetch, a commit) explains
-- it. A seek may explain it, but is not visible.
SELECT sent.run, sent.id, sent.topic, sent.partition, asked_offset AS offset, sent.client_id, software, software_version,
       previous_to + 1 AS expected_offset
FROM (
  SELECT *, max(delivered_to) OVER (PARTITION BY run, era, connection, topic, partition ORDER BY id
                                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS previous_to
  FROM fetches WHERE coalesce(replica_id, -1) < 0
) sent
WHERE asked_offset > previous_to + 1
  AND NOT EXISTS (SELECT 1 FROM listed WHERE listed.run = sent.run AND listed.era = sent.era AND listed.client_id = sent.client_id
    AND listed.topic = sent.topic AND listed.partition = sent.partition AND listed.id < sent.id AND listed.offset = asked_offset)
  AND NOT EXISTS (SELECT 1 FROM commits WHERE commits.run = sent.run AND commits.era = sent.era AND commits.topic = sent.topic
    AND commits.partition = sent.partition AND commits.id < sent.id AND commits.committed_offset = asked_offset)
