"""The transactional script: its steps in their order.

It is played like the other one. It works on the topics TOPIC-in, TOPIC-out and TOPIC-result (three partitions each),
with the transactional id TOPIC-id and the group TOPIC-group.
"""

TRANSACTION_STEPS = {
    "create": "the topics are created, and 300 numbered records are in the input",
    "commit": "three partitions in one transaction: read_committed sees it after the commit",
    "abort": "an aborted transaction is seen by read_uncommitted only",
    "isolation": "read_committed sees neither an open transaction nor what comes after it, until it ends",
    "fencing": "a second producer with the same id fences the first, whose open transaction is aborted",
    "transform": "KIP-98: consume, transform, produce, send offsets; some abort; each record comes out once",
    "zombie": "offsets sent by a member of a former generation are refused (KIP-447)",
    "timeout": "a transaction that outlives its timeout is aborted by the coordinator, and the id goes on (KIP-588)",
}

# What Kafka's own test tools do, with clients killed on the way.
TOOLS_STEPS = {
    "verifiable_producer": "VerifiableProducer: 6,000 records, each acknowledged",
    "verifiable_consumer": "VerifiableConsumer in a group of two reads all of them and commits",
    "copier": "three TransactionalMessageCopiers in a group, random aborts, one killed: each record once",
}
STREAMS_STEPS = {
    "exactly_once_v2": "a stateful count, killed and started again: every count of every key, each once",
    "classic_before_streams": "the classic protocol: terms counted over a repartition topic, until its group is empty",
    "streams_group": "group.protocol=streams: it goes on from there; one killed, one added, standbys",
    "streams_groups_tool": "kafka-streams-groups: list, describe, reset offsets, delete",
    "classic_after_streams": "the same application with the classic protocol goes on from the group's offsets",
}
