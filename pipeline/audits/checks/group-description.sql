-- title: a wrong description of a group
-- severity: error
-- needs: journal
-- A description or list of groups differs from what the members sent and received: another epoch, client id, subscription or assignment, a
-- member or group that is missing or never existed; or it contradicts itself: an assignment epoch beyond the group's, a partition for two
-- members, a stable group with members of other epochs, or a state that does not match the number of members.
SELECT answer_faults.run, answer_faults.id, calls.api, calls.client_id, calls.software, topic, partition, offset, group_id, member_id, what
FROM answer_faults JOIN calls ON calls.run = answer_faults.run AND calls.id = answer_faults.id
WHERE kind = 'group-description'
