-- title: a response that contradicts what was written or reported before
-- severity: error
-- needs: journal
-- What clients write by accepted requests is what brokers report afterwards: configurations, numbers of partitions, quotas, credentials,
-- ACLs, committed offsets with their metadata; and what was not changed, such as topic ids, the leader of an epoch and defaults, is
-- reported as before. This response reports something else. It may be 5 seconds behind the last change, but not behind an earlier response
-- of the same broker; committed offsets are never behind.
SELECT answer_faults.run, answer_faults.id, calls.api, calls.client_id, calls.software, topic, partition, offset, group_id, member_id, what
FROM answer_faults JOIN calls ON calls.run = answer_faults.run AND calls.id = answer_faults.id
WHERE kind = 'answer-contradicted'
