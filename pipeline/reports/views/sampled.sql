-- A random but repeatable sample of records, with the kind of their value.
SELECT topic, partition, offset, value,
       value_kind(value) AS kind
FROM records
WHERE pmod(xxhash64(topic, partition, offset), 1000000) < :sample_ppm
