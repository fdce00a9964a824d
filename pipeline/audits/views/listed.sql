-- The offsets that clients got from ListOffsets and OffsetFetch.
SELECT DISTINCT run, era, id, end_us, client_host, client_id, coalesce(topic_names.topic, name) AS topic, partition, offset
FROM (
  SELECT calls.* EXCEPT (got), coalesce(nullif(each.name, ''), each.topic_id) AS name, piece.partition_index AS partition, piece.offset
  FROM (SELECT *, from_json(response, 'topics ARRAY<STRUCT<name STRING, topic_id STRING, partitions ARRAY<STRUCT<partition_index
          INT, offset BIGINT, error_code STRING>>>>') AS got FROM calls WHERE api = 'ListOffsets') calls
  CROSS JOIN LATERAL explode(got.topics) AS each_rows(each) CROSS JOIN LATERAL explode(each.partitions) AS piece_rows(piece)
  UNION ALL
  SELECT calls.* EXCEPT (got), coalesce(nullif(each.name, ''), each.topic_id), piece.partition_index, piece.committed_offset
  FROM (SELECT *, from_json(response, 'groups ARRAY<STRUCT<topics ARRAY<STRUCT<name STRING, topic_id STRING, partitions
          ARRAY<STRUCT<partition_index INT, committed_offset BIGINT>>>>>>') AS got FROM calls WHERE api = 'OffsetFetch') calls
  CROSS JOIN LATERAL explode(got.groups) AS one_rows(one) CROSS JOIN LATERAL explode(one.topics) AS each_rows(each)
  CROSS JOIN LATERAL explode(each.partitions) AS piece_rows(piece)
  UNION ALL
  SELECT calls.* EXCEPT (got), each.name, piece.partition_index, piece.committed_offset
  FROM (SELECT *, from_json(response, 'topics ARRAY<STRUCT<name STRING, partitions ARRAY<STRUCT<partition_index INT,
          committed_offset BIGINT>>>>') AS got FROM calls WHERE api = 'OffsetFetch') calls
  CROSS JOIN LATERAL explode(got.topics) AS each_rows(each) CROSS JOIN LATERAL explode(each.partitions) AS piece_rows(piece)
)
LEFT JOIN topic_names ON topic_names.topic_id = name
WHERE offset >= 0
