-- title: a member epoch that goes back
-- severity: error
-- needs: journal
-- A member of a consumer group (KIP-848) that sends its epoch gets the same or a newer one; it had not been fenced.
SELECT run, id, client_id, software, group_id, member_id, max(requested_epoch) AS requested_epoch, max(member_epoch) AS member_epoch
FROM (
  SELECT run, id, client_id, software, group_id, member_id, requested_epoch, member_epoch
  FROM (
    SELECT run, id, client_id, software, get_json_object(request, '$.group_id') AS group_id, get_json_object(request, '$.member_id') AS member_id,
           try_cast(get_json_object(request, '$.member_epoch') AS INT) AS requested_epoch,
           try_cast(get_json_object(response, '$.member_epoch') AS INT) AS member_epoch
    FROM calls WHERE api IN ('ConsumerGroupHeartbeat', 'ShareGroupHeartbeat', 'StreamsGroupHeartbeat') AND error IS NULL AND response IS NOT NULL
      AND coalesce(size(faults), 0) = 0
  )
  WHERE requested_epoch > 0 AND member_epoch < requested_epoch
  UNION ALL
  SELECT answer_faults.run, answer_faults.id, client_id, software, group_id, member_id, CAST(NULL AS INT), CAST(NULL AS INT)
  FROM answer_faults JOIN calls ON calls.run = answer_faults.run AND calls.id = answer_faults.id
  WHERE kind = 'member-epoch-answer'
) found
GROUP BY run, id, client_id, software, group_id, member_id
