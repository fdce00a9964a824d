-- Records by chance, always the same ones, with what kind of value they have.
SELECT topic, partition, offset, value,
       value_kind(value) AS kind
FROM records
WHERE pmod(xxhash64(topic, partition, offset), 1000000) < :sample_ppm
