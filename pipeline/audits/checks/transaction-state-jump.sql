-- title: an invalid transition of a transaction's state
-- severity: error
-- The coordinator's record does not follow from the previous one: Ongoing becomes PrepareCommit or PrepareAbort, that becomes the Complete
-- state of the same outcome, and only then, or from Empty, a new transaction begins. Checked where the cleaner has not been. A record may
-- occur twice.
SELECT '__transaction_state' AS topic, partition, offset, transactional_id, previous_state, state
FROM (
  SELECT state_transactions.*, cleaned_to,
         lag(state_transactions.offset) OVER each AS previous_offset, lag(state) OVER each AS previous_state
  FROM state_transactions
  JOIN (SELECT partition, max(cleaned_to) AS cleaned_to FROM partitions WHERE topic = '__transaction_state' GROUP BY partition)
    USING (partition)
  WINDOW each AS (PARTITION BY transactional_id ORDER BY state_transactions.offset)
)
WHERE NOT is_tombstone AND (state IN ('Dead', 'PrepareEpochFence') OR (previous_offset >= cleaned_to AND previous_state <> state
  AND NOT CASE state
    WHEN 'Empty' THEN previous_state IN ('CompleteCommit', 'CompleteAbort')
    WHEN 'Ongoing' THEN previous_state IN ('Empty', 'CompleteCommit', 'CompleteAbort')
    WHEN 'PrepareCommit' THEN previous_state = 'Ongoing'
    WHEN 'PrepareAbort' THEN previous_state IN ('Ongoing', 'Empty', 'CompleteCommit', 'CompleteAbort')
    WHEN 'CompleteCommit' THEN previous_state = 'PrepareCommit'
    WHEN 'CompleteAbort' THEN previous_state = 'PrepareAbort' ELSE false END))
