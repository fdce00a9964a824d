-- title: a partition or task assigned to two members at once
-- severity: error
-- needs: journal
-- Heartbeats assigned a partition of a consumer group, or an active task of a streams group, to a member while another one owned it, that
-- is, before that one reported without it, left or was fenced, and it was alive later; a task has two roles in one member; or a member got
-- a topic that it never subscribed to, or a task that is in no topology.
SELECT answer_faults.run, answer_faults.id, calls.api, calls.client_id, calls.software, topic, partition, offset, group_id, member_id, what
FROM answer_faults JOIN calls ON calls.run = answer_faults.run AND calls.id = answer_faults.id
WHERE kind = 'assignment-answer'
