-- title: responses of a connection out of order
-- severity: error
-- needs: journal
-- A broker answers the requests of one connection in order; a client takes each response for that of its oldest request.
SELECT run, id, api, client_id, software, connection, previous_id, previous_end_us - end_us AS earlier_by_us
FROM (
  SELECT *, lag(id) OVER before AS previous_id, lag(end_us) OVER before AS previous_end_us
  FROM calls WHERE outcome = 'answered' AND coalesce(size(faults), 0) = 0
  WINDOW before AS (PARTITION BY run, connection ORDER BY id)
)
WHERE end_us < previous_end_us
