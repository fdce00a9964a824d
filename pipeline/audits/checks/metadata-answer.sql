-- title: an answer to Metadata that contradicts itself
-- severity: error
-- needs: journal
-- A partition's leader is one of its replicas and of the brokers that the same answer names, its ISR are replicas, each partition
-- occurs once, and the controller is one of the brokers.
WITH answers AS (
  SELECT run, id, client_id, software, from_json(response, 'brokers ARRAY<STRUCT<node_id INT>>, controller_id INT, topics ARRAY<STRUCT<name
           STRING, error_code STRING, partitions ARRAY<STRUCT<error_code STRING, partition_index INT, leader_id INT, replica_nodes
           ARRAY<INT>, isr_nodes ARRAY<INT>>>>>') AS got
  FROM calls WHERE api = 'Metadata' AND response IS NOT NULL AND size(coalesce(faults, array())) = 0
)
SELECT run, id, client_id, software, got.controller_id, to_json(got.topics) AS topics
FROM answers
WHERE (size(got.brokers) > 0 AND got.controller_id >= 0
       AND NOT exists(got.brokers, broker -> broker.node_id = got.controller_id))
  OR exists(got.topics, topic -> size(array_distinct(transform(topic.partitions, each -> each.partition_index))) < size(topic.partitions)
    OR exists(topic.partitions, each -> each.error_code = 'NONE' AND (
      (each.leader_id >= 0 AND NOT array_contains(each.replica_nodes, each.leader_id))
      OR size(array_except(each.isr_nodes, each.replica_nodes)) > 0
      OR (each.leader_id >= 0 AND size(got.brokers) > 0 AND NOT exists(got.brokers, broker -> broker.node_id = each.leader_id)))))
