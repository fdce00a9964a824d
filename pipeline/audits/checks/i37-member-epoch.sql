-- title: a member epoch that was not granted (conformance 3 I37)
-- severity: error
-- needs: journal
-- In a consumer or share group (KIP-848, KIP-932) a heartbeat carries the epoch from the last response; 0 to join, -1 and -2 to leave.
SELECT run, id, client_id, software, software_version, group_id, member_id, member_epoch, granted_epoch
FROM (
  SELECT *, lag(got_epoch) OVER before AS granted_epoch, lag(end_us) OVER before AS granted_us, lag(error) OVER before AS previous_error
  FROM (SELECT run, era, id, ts_us, end_us, client_id, software, software_version, error,
               get_json_object(request, '$.group_id') AS group_id, get_json_object(request, '$.member_id') AS member_id,
               try_cast(get_json_object(request, '$.member_epoch') AS INT) AS member_epoch,
               try_cast(get_json_object(response, '$.member_epoch') AS INT) AS got_epoch
        FROM calls WHERE api IN ('ConsumerGroupHeartbeat', 'ShareGroupHeartbeat') AND outcome = 'answered')
  WINDOW before AS (PARTITION BY run, era, group_id, member_id ORDER BY id)
)
WHERE member_epoch > 0 AND previous_error IS NULL AND ts_us >= granted_us AND member_epoch <> granted_epoch
