-- title: the keys with the most records
-- needs: records
-- The keys with the most records in each topic (`--top`). `main_partition` has most of the key's records. Keys that are not text are shown
-- as X'...'.
SELECT topic, place, shown_bytes(key) AS key,
       records, share, value_bytes, partitions, main_partition,
       if(newest_ms BETWEEN 0 AND 253402300799999, timestamp_millis(newest_ms), NULL) AS newest_at
FROM (SELECT *, records / sum(records) OVER (PARTITION BY topic) AS share,
             row_number() OVER (PARTITION BY topic ORDER BY records DESC, value_bytes DESC, key) AS place FROM keys)
WHERE place <= :top
ORDER BY topic, place
