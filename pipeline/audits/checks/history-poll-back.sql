-- title: a poll went back
-- severity: error
-- needs: history
-- Without a new assignment, a consumer got an offset again, or a lower one than before, or than its start position. A seek is an assignment
-- in the history.
SELECT topic, partition, offset, id, client, run, previous_offset, start_offset, file, line
FROM polled_records JOIN (SELECT topic, partition, client, run, start_offset FROM poll_runs) runs USING (topic, partition, client, run)
WHERE offset <= previous_offset OR offset < start_offset
