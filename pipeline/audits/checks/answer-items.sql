-- title: a response with other items than were requested
-- severity: error
-- needs: journal
-- A request named or filtered topics, partitions, groups, settings or others, and the response omits one of them, has one twice, or has one
-- that was not requested. Checked if the response has no top-level error; requests by topic id only if the names are known.
SELECT run, id, api, client_id, software, min(item) AS item, max(items) AS items, min(what) AS what
FROM (
  SELECT items.run, items.id, items.api, calls.client_id, calls.software, min(item) AS item, count(*) AS items,
         min(CASE WHEN asked = 0 THEN 'not asked for' WHEN answered = 0 THEN 'left out' ELSE 'twice' END) AS what
  FROM (SELECT run, id, api, item, sum(asked) AS asked, sum(answered) AS answered FROM answer_items WHERE item IS NOT NULL GROUP BY run, id, api, item) items
  JOIN (SELECT run, id, api FROM answer_items GROUP BY run, id, api
        HAVING sum(asked) > 0 AND count_if(asked = 1 AND item IS NULL) = 0 AND count_if(answered = 1 AND item IS NULL) = 0) whole
    ON whole.run = items.run AND whole.id = items.id
  JOIN calls ON calls.run = items.run AND calls.id = items.id
  WHERE coalesce(size(calls.faults), 0) = 0 AND (asked = 0 OR answered = 0 OR answered > greatest(asked, 1))
  GROUP BY items.run, items.id, items.api, calls.client_id, calls.software
  UNION ALL
  SELECT answer_faults.run, answer_faults.id, calls.api, calls.client_id, calls.software, CAST(NULL AS STRING), CAST(NULL AS BIGINT), what
  FROM answer_faults JOIN calls ON calls.run = answer_faults.run AND calls.id = answer_faults.id
  WHERE kind = 'answer-items'
) found
GROUP BY run, id, api, client_id, software
