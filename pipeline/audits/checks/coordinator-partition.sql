-- title: a coordinator's record in the wrong partition
-- severity: error
-- A group, a transactional id, or a share partition (`group:topic id:partition`) belongs to the partition that its name hashes to (Java's
-- `String.hashCode`, of UTF-16: a character beyond 65535 counts as two). No coordinator will find it in another partition.
WITH named AS (
  SELECT '__consumer_offsets' AS topic, partition, offset, group_id AS name FROM state_offsets
  UNION SELECT '__consumer_offsets', partition, offset, group_id FROM state_groups
  UNION SELECT '__consumer_offsets', partition, offset, group_id FROM state_group_records
  UNION SELECT '__share_group_state', partition, offset, concat(group_id, ':', topic_id, ':', shared_partition) FROM state_share
  UNION SELECT '__transaction_state', partition, offset, transactional_id FROM state_transactions
),
hashed AS (
  SELECT named.*, aggregate(
           transform(filter(split(name, ''), each -> each <> ''), each -> CAST(ascii(each) AS BIGINT)),
           CAST(0 AS BIGINT), (total, each) -> pmod(CASE WHEN each < 65536 THEN total * 31 + each
             ELSE (total * 31 + 55232 + each DIV 1024) * 31 + 56320 + each % 1024 END, 4294967296)
         ) AS hash
  FROM named
)
-- Kafka takes the absolute value of the signed hash, and 0 for the smallest integer (Utils.abs).
SELECT topic, partition, offset, name, right_partition
FROM (
  SELECT hashed.*, count,
    CASE WHEN hash < 2147483648 THEN hash WHEN hash = 2147483648 THEN 0 ELSE 4294967296 - hash END % count AS right_partition
  FROM hashed JOIN (SELECT topic, count(*) AS count FROM metadata_partitions GROUP BY topic) USING (topic)
)
WHERE partition <> right_partition AND count > 1
