-- title: a response that the generations of a classic group contradict
-- severity: error
-- needs: journal
-- A member was refused with a generation that it had been granted and that was the newest; it was unknown a second after it had been known,
-- without having been removed; its heartbeat succeeded while another member waited for the next generation; or one generation had two
-- protocols.
SELECT answer_faults.run, answer_faults.id, calls.api, calls.client_id, calls.software, group_id, member_id, what
FROM answer_faults JOIN calls ON calls.run = answer_faults.run AND calls.id = answer_faults.id
WHERE kind = 'generation-answer'
