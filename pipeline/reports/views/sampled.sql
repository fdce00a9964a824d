-- Records by chance, always the same ones, with what kind of value they have.
SELECT topic, partition, offset, value,
       CASE WHEN value IS NULL THEN 'null'
            WHEN length(value) = 0 THEN 'empty'
            WHEN startswith(value, X'00') AND length(value) > 5 THEN 'schema registry'
            WHEN NOT is_valid_utf8(CAST(value AS STRING)) THEN 'binary'
            WHEN try_parse_json(CAST(value AS STRING)) IS NULL THEN 'text'
            WHEN schema_of_variant(try_parse_json(CAST(value AS STRING))) LIKE 'OBJECT%' THEN 'JSON object'
            WHEN schema_of_variant(try_parse_json(CAST(value AS STRING))) LIKE 'ARRAY%' THEN 'JSON array'
            ELSE 'JSON scalar' END AS kind
FROM records
WHERE pmod(xxhash64(topic, partition, offset), 1000000) < :sample_ppm
