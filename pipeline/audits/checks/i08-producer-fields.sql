-- title: a producer id without epoch, sequence or acks=all (conformance 3 I08)
-- severity: error
-- needs: journal
-- A producer with a producer id has an epoch and sequences too, and waits for all in-sync replicas (acks=-1).
SELECT run, id, topic, partition, client_id, software, software_version, producer_id, producer_epoch, base_sequence, acks, error
FROM produces
WHERE producer_id >= 0 AND (producer_epoch < 0 OR base_sequence < 0 OR acks <> -1)
