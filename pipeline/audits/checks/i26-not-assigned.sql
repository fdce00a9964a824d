-- title: a commit for a partition of another member (conformance 3 I26)
-- severity: error
-- needs: journal
-- The assignment of this generation does not give the partition to this member. A cooperative consumer (KIP-429) that must revoke a
-- partition commits for it once more, in the generation in which it belongs to no member yet: that is not reported.
SELECT sent.run, sent.id, sent.topic, sent.partition, sent.committed_offset AS offset, sent.client_id, sent.software,
       sent.group_id, sent.member_id, sent.generation
FROM commits sent
WHERE sent.api = 'OffsetCommit' AND sent.error = 'NONE' AND sent.generation >= 0
  AND EXISTS (SELECT 1 FROM assignments WHERE assignments.run = sent.run AND assignments.era = sent.era
    AND assignments.group_id = sent.group_id AND assignments.generation = sent.generation)
  AND NOT EXISTS (SELECT 1 FROM assignments WHERE assignments.run = sent.run AND assignments.era = sent.era
    AND assignments.group_id = sent.group_id AND assignments.generation = sent.generation
    AND assignments.member_id = sent.member_id AND assignments.topic = sent.topic AND assignments.partition = sent.partition)
  AND (EXISTS (SELECT 1 FROM assignments WHERE assignments.run = sent.run AND assignments.era = sent.era
      AND assignments.group_id = sent.group_id AND assignments.generation = sent.generation
      AND assignments.topic = sent.topic AND assignments.partition = sent.partition)
    OR NOT EXISTS (SELECT 1 FROM assignments WHERE assignments.run = sent.run AND assignments.era = sent.era
      AND assignments.group_id = sent.group_id AND assignments.generation < sent.generation
      AND assignments.member_id = sent.member_id AND assignments.topic = sent.topic AND assignments.partition = sent.partition))
