-- title: offsets that are lost
-- One row per range of offsets that should be in a log and is not, with what shows it: the log itself, its high watermark, a producer's
-- sequence numbers, a group's commit, with `--journal` an acknowledgement, or with `--history` what a client recorded. `still_in`: the data
-- directories whose replica has the whole range; `keys` are those of its first records there, `ids` those of its records in the histories.
-- `first_offset` of records that were never written is unknown.
SELECT topic, partition, first_offset, last_offset, records, what, whose, directory, still_in, keys, ids
FROM lost_ranges LEFT JOIN lost_keys USING (topic, partition, first_offset, last_offset)
LEFT JOIN lost_ids USING (topic, partition, first_offset, last_offset)
ORDER BY topic, partition, last_offset, what
