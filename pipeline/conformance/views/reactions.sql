-- What a client did after each response with an error, and after none at all: requests that it began later, up to the first that does more
-- than look something up. `who`: the transactional id or the group in a request; requests with another one, heartbeats and the like are
-- skipped. `target`: what makes two requests of an API the same request.
WITH acts AS (
  SELECT *, row_number() OVER (PARTITION BY run, era, client_host, client_id ORDER BY ts_us, id) AS place,
         min(id) OVER (PARTITION BY run, connection) AS connection_began,
         coalesce(nullif(get_json_object(request, '$.transactional_id'), ''),
                  nullif(get_json_object(request, '$.v3_and_below_transactional_id'), ''),
                  get_json_object(request, '$.transactions[0].transactional_id'), get_json_object(request, '$.group_id')) AS who,
         CASE WHEN api = 'Produce' THEN concat_ws('/', get_json_object(request, '$.topic_data[0].name'),
                get_json_object(request, '$.topic_data[0].partition_data[0].index'),
                get_json_object(request, '$.topic_data[0].partition_data[0].records.base_sequence'),
                get_json_object(request, '$.topic_data[0].partition_data[0].records.count')) ELSE '' END AS target,
         CASE WHEN api = 'EndTxn' THEN if(get_json_object(request, '$.committed') = 'true', 'EndTxn (commit)', 'EndTxn (abort)')
              WHEN api = 'InitProducerId' THEN if(coalesce(CAST(get_json_object(request, '$.producer_id') AS BIGINT), -1) >= 0,
                'InitProducerId (with its identity)', 'InitProducerId (new identity)')
              ELSE api END AS act
  FROM spoken
),
moments AS (
  SELECT run, era, client_host, client_id, ts_us AS at_us, 1 AS kind, id FROM acts
  UNION ALL
  SELECT run, era, client_host, client_id, end_us, 0, id FROM acts
  WHERE error IS NOT NULL OR outcome NOT IN ('answered', 'asked for no answer')
),
failed AS (  -- `place`: so many requests the client had begun when it failed
  SELECT run, era, client_host, client_id, id, explode(sequence(place + 1, place + 12)) AS place
  FROM (SELECT *, CAST(count_if(kind = 1) OVER (PARTITION BY run, era, client_host, client_id ORDER BY at_us, kind, id
                                                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS place FROM moments)
  WHERE kind = 0
),
followed AS (
  SELECT old.run, old.id, new.place, new.ts_us - old.end_us AS after_us,
         new.connection <> old.connection AND new.connection_began > old.id AS on_new_connection,
         new.api IN ('Metadata', 'FindCoordinator', 'DescribeCluster') AND new.api <> old.api AS looks_up,
         CASE WHEN new.api <> old.api THEN new.act
              WHEN new.target = old.target AND new.act = old.act THEN concat(new.act, ' again')
              WHEN new.api = 'Produce' THEN 'Produce (other records)' ELSE new.act END AS act
  FROM failed JOIN acts old USING (run, id)
  JOIN acts new ON new.run = failed.run AND new.era = failed.era AND new.client_host = failed.client_host
    AND new.client_id IS NOT DISTINCT FROM failed.client_id AND new.place = failed.place
  WHERE new.id <> old.id AND (new.who IS NULL OR old.who IS NULL OR new.who = old.who)
    AND (new.api = old.api OR new.api NOT IN ('ApiVersions', 'SaslHandshake', 'SaslAuthenticate', 'GetTelemetrySubscriptions',
                                              'PushTelemetry', 'Heartbeat', 'Fetch'))
),
decided AS (SELECT *, min(if(looks_up, NULL, place)) OVER (PARTITION BY run, id) AS decisive FROM followed)
SELECT failed_one.software, failed_one.software_version, failed_one.api, failed_one.run, failed_one.id,
       coalesce(failed_one.error, failed_one.outcome) AS error, coalesce(acted.reaction, 'nothing more') AS reaction, acted.after_us,
       coalesce(acted.on_new_connection, false) AS on_new_connection
FROM acts failed_one
LEFT JOIN (SELECT run, id, array_join(array_distinct(transform(array_sort(array_agg(struct(place, act))), one -> one.act)), ', ')
                    AS reaction, min(if(decisive IS NULL OR place = decisive, after_us, NULL)) AS after_us,
                  bool_or(on_new_connection) AS on_new_connection
           FROM decided WHERE decisive IS NULL OR place <= decisive GROUP BY run, id) acted
  ON acted.run = failed_one.run AND acted.id = failed_one.id
WHERE failed_one.error IS NOT NULL OR failed_one.outcome NOT IN ('answered', 'asked for no answer')
