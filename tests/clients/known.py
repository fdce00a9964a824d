"""What a client cannot do with any cluster: (client, step) -> the reason, seen alike on Apache Kafka 4.3.1.

A step listed here must fail; one that begins to pass is a mistake in this table.
"""

KNOWN: dict[tuple[str, str], str] = {
    ("confluent-kafka-2.3", "delete_records"): "AdminClient.delete_records came with 2.4",
    (
        "kafka-go",
        "produce_idempotent",
    ): "has no idempotent producer: it knows InitProducerId, its Writer does not use it",
    ("kafka-go", "consume_headers"): "gives a header with an empty value as one without a value",
    ("kafka-go", "delete_records"): "has no call for DeleteRecords",
    ("kafkajs", "produce_null_header"): "its encoder takes strings and buffers only",
    ("confluent-kafka-javascript", "produce_null_header"): "header values must be strings or buffers",
    ("confluent-kafka-javascript", "describe_cluster"): "its admin client has no call for DescribeCluster",
    ("confluent-kafka-javascript", "describe_configs"): "its admin client has no call for DescribeConfigs",
    ("confluent-kafka-javascript", "alter_configs"): "its admin client has no call for IncrementalAlterConfigs",
    ("kafka-python", "produce_null_header"): "refuses it itself: all header items must be (str, bytes) tuples",
    ("aiokafka", "delete_group"): "AIOKafkaAdminClient has no call for DeleteGroups",
    ("aiokafka-transactions", "zombie"): "send_offsets_to_transaction takes the group's id only: nothing can be fenced",
    ("kafkajs-transactions", "zombie"): "sendOffsets takes the group's id only: nothing can be fenced",
    ("franz-go-transactions", "zombie"): "a GroupTransactSession sees by itself that its member is fenced, and aborts",
}
