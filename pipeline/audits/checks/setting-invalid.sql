-- title: a setting that no broker accepts
-- severity: error
-- The metadata has a value for a topic, group or client metrics configuration that Kafka rejects (ConfigDef; what any version since 3.3
-- accepts is accepted here), or a configuration of an unknown resource type. Brokers use their defaults instead, or cannot load the log.
-- Unknown names may be those of a later version.
WITH given AS (
  SELECT offset, fields.resource_type AS resource_type, fields.resource_name AS resource_name, fields.name AS name,
         fields.value AS value, regexp_replace(fields.value, '^[^!-~]+|[^!-~]+$', '') AS text
  FROM (SELECT offset, from_json(record, 'resource_type INT, resource_name STRING, name STRING, value STRING') AS fields
        FROM state_metadata WHERE type = 'ConfigRecord')
),
durations AS (  -- as java.time.Duration reads them: each number is a long
  SELECT given.*, regexp_extract(text, form, 1) AS sign, regexp_extract(text, form, 2) AS days, regexp_extract(text, form, 3) AS hours,
         regexp_extract(text, form, 4) AS minutes, regexp_extract(text, form, 5) AS seconds, regexp_extract(text, form, 6) AS fraction,
         regexp_like(text, form) AND NOT regexp_like(text, '[PpTt]$') AS is_duration
  FROM (SELECT given.*, concat('^by_duration:([+-]?)[Pp](?:([+-]?[0-9]+)[Dd])?(?:[Tt](?:([+-]?[0-9]+)[Hh])?(?:([+-]?[0-9]+)[Mm])?',
                               '(?:([+-]?[0-9]+)(?:[.,]([0-9]{0,9}))?[Ss])?)?$') AS form FROM given) given
),
judged AS (
  SELECT given.*, CASE sign WHEN '-' THEN -1 ELSE 1 END * (CASE days WHEN '' THEN 0 ELSE try_cast(days AS BIGINT) END * 86400E0
           + CASE hours WHEN '' THEN 0 ELSE try_cast(hours AS BIGINT) END * 3600E0 + CASE minutes WHEN '' THEN 0 ELSE try_cast(minutes AS BIGINT) END * 60E0
           + CASE seconds WHEN '' THEN 0 ELSE try_cast(seconds AS BIGINT) END * 1E0
           + CASE WHEN seconds LIKE '-%' THEN -1 ELSE 1 END * try_cast(concat('0', fraction, '0') AS BIGINT) / power(10E0, length(fraction) + 1)) AS behind_s
  FROM durations given
)
SELECT '__cluster_metadata' AS topic, 0 AS partition, offset, given.resource_type, resource_name, given.name, value
FROM judged given LEFT JOIN setting_rules rules ON rules.resource_type = given.resource_type AND rules.name = given.name
WHERE given.resource_type NOT IN (2, 4, 8, 16, 32)
  OR (value IS NOT NULL AND CASE kind
    WHEN 'boolean' THEN lower(text) NOT IN ('true', 'false')
    WHEN 'text' THEN NOT array_contains(split(allowed, ','), text)
    WHEN 'pattern' THEN NOT regexp_like(text, allowed)
    WHEN 'list' THEN text <> '' AND size(filter(split(text, ','), each -> NOT array_contains(split(allowed, ','), trim(each)))) > 0
    WHEN 'start' THEN NOT array_contains(split(allowed, ','), text)
      AND NOT (is_duration AND coalesce(behind_s BETWEEN 0 AND 9223372036854775807, false))
    WHEN 'distinct' THEN text <> '' AND (size(filter(split(text, ','), each -> trim(each) = '')) > 0
      OR size(array_distinct(transform(split(text, ','), each -> trim(each)))) < size(split(text, ',')))
    WHEN 'double' THEN try_cast(regexp_replace(text, '[fFdD]$', '') AS DOUBLE) IS NULL
      OR NOT try_cast(regexp_replace(text, '[fFdD]$', '') AS DOUBLE) BETWEEN least AND most
    WHEN 'number' THEN NOT regexp_like(text, '^[+-]?[0-9]+$') OR try_cast(text AS BIGINT) IS NULL
      OR try_cast(text AS BIGINT) < least OR try_cast(text AS BIGINT) > most
    ELSE false END)
