"""The script that every client is driven through: its steps in their order, and the records that it produces.

`tests/clients/script.py` plays them with a library's driver of `understudy exam`. A step that fails is reported and
the script goes on; what fails with any cluster must be listed in `known.py`. A program that plays by itself, such as
that of LOAD_STEPS, is called with

    BOOTSTRAP BROKERS TOPIC BASE_MS

and prints one JSON line for each step: `{"step": ..., "ok": true, "detail": ...}`.

The script writes the same records with every library to TOPIC (three partitions, replicated to three brokers where
there are three). Record number n goes to partition n mod 3 with timestamp BASE_MS + 1000 n:

    n 0..149    thirty with each codec of CODECS in turn; with i = n mod 30: key "CODEC-i", value "CODEC-value-i-" and
                a hundred x
    n 150..152  key "headers-i", value "headers", headers h=one, h=two, empty=""  (the same name twice)
    n 153..155  key "null-i", value null
    n 156..158  key null, value "no-key-i"
    n 159..161  key "idempotent-i", value "idempotent", from an idempotent producer
    n 162..164  key "null-header-i", value "headers", header null=null; not from clients that cannot send it

so record n has offset n div 3 where all of them are sent.
"""

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

STEPS = {
    "list_topics": "the topics are listed, ours is not among them",
    "create_topic": "three partitions are created, replicated to every broker up to three",
    **{f"produce_{codec}": f"thirty records are produced, compressed: {codec}" for codec in CODECS},
    "produce_headers": "three records with a repeated header and an empty one",
    "produce_nulls": "three records without a value, three without a key",
    "produce_idempotent": "three records from an idempotent producer",
    "produce_null_header": "three records with a header that has no value",
    "consume_from_start": "all records come back: each partition in order, with the keys and values that were sent",
    "consume_headers": "the headers come back in their order, the null, where it was sent, as null",
    "consume_nulls": "null values and null keys come back as nulls",
    "consume_timestamps": "every record has the timestamp that it was sent with",
    "consume_by_timestamp": "the offset of a moment is found and read from",
    "group_join": "one member of a group is given all three partitions",
    "group_rebalance": "a second member joins, and each has a share of the partitions",
    "group_leave": "the second member leaves, and the first has all partitions again",
    "commit": "offsets 10, 11 and 12 are committed and read back",
    "resume": "a new member of the group goes on at the committed offsets",
    "list_groups": "the group is listed",
    "describe_group": "the group is described as stable, with its one member",
    "describe_cluster": "every broker, a controller among them",
    "describe_topic": "every partition with a leader and its replicas, all in sync",
    "describe_configs": "a topic's and a broker's settings are described with their defaults",
    "alter_configs": "one setting is altered and deleted again, each incrementally, the others stay",
    "delete_records": "the records of partition 0 before offset 5 are deleted, the earliest offset is 5",
    "delete_group": "the group is deleted when its last member has left",
    "delete_topic": "the topic is deleted and no longer listed",
}

LOAD_STEPS = {
    "group": "a group of three consumes, transforms, produces and commits 30,000 records, each once",
    "sessions": "GroupTransactSession: members come, go and die; each of 20,000 records comes out once",
}

# Kafka's own command-line tools play a script of their own: what each of them is for.
TOOL_STEPS = {
    "cluster_id": "kafka-cluster cluster-id",
    "broker_api_versions": "kafka-broker-api-versions: every broker returns its versions",
    "features_describe": "kafka-features describe: the finalized features",
    "quorum_describe": "kafka-metadata-quorum describe --status",
    "topics_list": "kafka-topics --list",
    "topics_create": "kafka-topics --create: three partitions, replicated, one with a setting",
    "topics_describe": "kafka-topics --describe: leaders, replicas, in-sync replicas, the setting",
    **{f"console_producer_{codec}": f"kafka-console-producer --compression-codec {codec}" for codec in CODECS},
    "console_producer_headers": "kafka-console-producer with keys, headers and null values",
    "console_consumer": "kafka-console-consumer --from-beginning: keys, headers, timestamps and values",
    "get_offsets": "kafka-get-offsets: latest, earliest, and by timestamp",
    "group_consume": "kafka-console-consumer in a group reads all and commits",
    "groups_list": "kafka-consumer-groups --list, with states, and kafka-groups --list",
    "groups_describe": "kafka-consumer-groups --describe: offsets, lag, members, state",
    "groups_reset_offsets": "kafka-consumer-groups --reset-offsets --to-earliest --execute, and the lag is back",
    "groups_delete": "kafka-consumer-groups --delete",
    "configs_describe": "kafka-configs --describe --all: of the topic and of a broker",
    "configs_alter": "kafka-configs --alter --add-config, then --delete-config",
    "configs_quotas": "kafka-configs --entity-type clients: a quota is set, described, and deleted",
    "topics_alter": "kafka-topics --alter --partitions 4",
    "producer_perf_test": "kafka-producer-perf-test: 20,000 records of 100 bytes",
    "consumer_perf_test": "kafka-consumer-perf-test reads them",
    "log_dirs_describe": "kafka-log-dirs --describe: the topic's partitions on every broker",
    "delete_records": "kafka-delete-records, and the earliest offset has moved",
    "topics_delete": "kafka-topics --delete, and it is no longer listed",
}
