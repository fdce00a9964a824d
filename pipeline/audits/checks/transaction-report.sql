-- title: a description of a transaction that its producer's responses contradict
-- severity: error
-- needs: journal
-- DescribeTransactions or ListTransactions reported another state of a transactional id than its producer's last accepted request had
-- caused, omitted an ongoing transaction or one of its partitions, or the id got another producer id before its epochs were used up. No
-- other request had changed the id meanwhile, and its transaction had not timed out.
SELECT answer_faults.run, answer_faults.id, calls.api, calls.client_id, calls.software, topic, partition, what
FROM answer_faults JOIN calls ON calls.run = answer_faults.run AND calls.id = answer_faults.id
WHERE kind = 'transaction-report'
