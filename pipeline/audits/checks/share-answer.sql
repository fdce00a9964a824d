-- title: a response that breaks the rules of a share group
-- severity: error
-- needs: journal
-- A record was given to a member of a share group (KIP-932) while another fetch still had it, after it had been accepted or rejected, outside
-- of the records of the answer, or with a delivery count that does not follow the last one; the holder's acknowledgement was refused, or that of
-- records which no one had was accepted; a share session went on with another epoch than the next one.
SELECT answer_faults.run, answer_faults.id, calls.api, calls.client_id, calls.software, topic, partition, offset, group_id, member_id, what
FROM answer_faults JOIN calls ON calls.run = answer_faults.run AND calls.id = answer_faults.id
WHERE kind = 'share-answer'
