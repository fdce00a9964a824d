-- title: a response that breaks the rules of a share group
-- severity: error
-- needs: journal
-- A record was acquired by a member of a share group (KIP-932) while another fetch still held it, after it had been accepted or rejected,
-- without being in the records of the response, or with a delivery count that does not follow the last one; the holder's acknowledgement
-- was refused, or one of records that were not acquired was accepted; or a share session continued with an epoch other than the next one.
SELECT answer_faults.run, answer_faults.id, calls.api, calls.client_id, calls.software, topic, partition, offset, group_id, member_id, what
FROM answer_faults JOIN calls ON calls.run = answer_faults.run AND calls.id = answer_faults.id
WHERE kind = 'share-answer'
