-- title: a Metadata response that contradicts itself
-- severity: error
-- needs: journal
-- A partition's leader is one of its replicas and of the brokers in the same response, its ISR are replicas, each partition occurs once,
-- and the controller is one of the brokers. A topic without an error has partitions, a partition without an error has a leader in its ISR,
-- ports of brokers are valid, and only the coordinators' topics are internal.
WITH answers AS (
  SELECT run, id, client_id, software, from_json(response, 'brokers ARRAY<STRUCT<node_id INT, port INT>>, controller_id INT, topics ARRAY<STRUCT<name
           STRING, error_code STRING, is_internal BOOLEAN, partitions ARRAY<STRUCT<error_code STRING, partition_index INT, leader_id INT, replica_nodes
           ARRAY<INT>, isr_nodes ARRAY<INT>>>>>') AS got
  FROM calls WHERE api = 'Metadata' AND response IS NOT NULL AND coalesce(size(faults), 0) = 0
)
SELECT run, id, client_id, software, got.controller_id, to_json(got.topics) AS topics
FROM answers
WHERE (size(got.brokers) > 0 AND got.controller_id >= 0
       AND size(filter(got.brokers, broker -> broker.node_id = got.controller_id)) = 0)
  OR got.controller_id < -1 OR size(filter(got.brokers, broker -> broker.port NOT BETWEEN 1 AND 65535)) > 0
  OR size(array_distinct(transform(got.brokers, broker -> broker.node_id))) < size(got.brokers)
  OR size(filter(got.topics, topic -> (topic.error_code = 'NONE' AND (size(topic.partitions) = 0
    OR (topic.is_internal AND topic.name NOT IN ('__consumer_offsets', '__transaction_state', '__share_group_state'))
    OR (NOT topic.is_internal AND topic.name IN ('__consumer_offsets', '__transaction_state'))))
    OR size(array_distinct(transform(topic.partitions, each -> each.partition_index))) < size(topic.partitions)
    OR size(filter(topic.partitions, each -> each.error_code = 'NONE' AND (
      each.leader_id < 0 OR NOT array_contains(each.replica_nodes, each.leader_id)
      OR NOT array_contains(each.isr_nodes, each.leader_id)
      OR size(array_distinct(each.replica_nodes)) < size(each.replica_nodes) OR size(array_distinct(each.isr_nodes)) < size(each.isr_nodes)
      OR size(array_except(each.isr_nodes, each.replica_nodes)) > 0
      OR (size(filter(got.brokers, broker -> broker.node_id = each.leader_id)) = 0)))) > 0)) > 0
