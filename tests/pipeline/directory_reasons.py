"""Why a wrong directory is missed: the format takes it, legal data look the same, or a check is missing."""

import re
from typing import Final

from tests.pipeline.file_mutations import Fault

HARMLESS: Final = "harmless by the format"
LEGAL: Final = "as legal data"
SHOULD_BE_FOUND: Final = "should be found"

_REASONS: Final = [
    (reason, re.compile(pattern))
    for reason, patterns in {
        HARMLESS: (
            r"record field: .*: attributes ",  # of a record: no bit has a meaning
            r"batch header: .*: attributes bit [78]",
            r"marker: (key|value) version",  # a later one is read as today's
            r"record field: metadata: .*key length",  # records of the metadata have no key
            r"\.index: .*(entry lost|emptied|offset one more|position smaller)",  # a lookup begins earlier
            r"\.timeindex: .*(entry lost|entry twice|offset one more)",
            r"exchanged: .*\.index: ",
            r"file: .*\.index: (emptied|half|zeros)",
            r"file: .*\.(snapshot|checkpoint): removed",  # an older one; or without a producer
            r"\.snapshot: first offset of the transaction negative",  # no transaction, as -1
            r"segment: stray (garbage|rolled)",
            r"file: .*leader-epoch-checkpoint\.tmp",
            r"replication-offset-checkpoint: .*smaller",  # a broker that leads alone raises it at once
            r"cleaner-offset-checkpoint(: cleaner-offset-checkpoint)?: (emptied|missing|removed)",  # cleans again
            r"leader-epoch-checkpoint: __cluster_metadata",  # rebuilt of the log
            r"__cluster_metadata-0/(.*\.(index|timeindex|snapshot)|partition\.metadata): ",
            r"__cluster_metadata-0: copied to another number",
            r"^metadata snapshot: (FeatureLevelRecord: twice|ProducerIdsRecord: broker_)",  # not read
            r"is_migrating_zk_broker|zk_migration_ready",  # not read since 4.0
            r"meta\.properties: directory\.id missing",  # before 3.7
            r"quorum-state: (votedId|leaderEpoch|appliedOffset|currentVoters doubled)",
            r"\.kafka_cleanshutdown|bootstrap\.checkpoint: removed|understudy\.properties",
            r"brokers: .*(recovery-point|replication)-offset-checkpoint: of ",  # the same lines in another order
            r"meta\.properties: a byte (less|more)|partition\.metadata: a byte (less|more)",
        ),
        LEGAL: (
            r": attributes bit 3$",  # the type of timestamps is a setting
            r"coordinator: base_sequence",
            r"a replica: (attributes|base_timestamp)",  # each may have been cleaned by itself
            r"^record: .*(key missing|time negative)",
            r"^record field: .*timestamp delta (negative|null)",
            r"^record field: without producer: first: value length",  # it has none
            r"log-start-offset-checkpoint: .*field 2",  # where records were deleted
            r"meta\.properties: cluster\.id",
            r"__cluster_metadata-0: (removed|also at|under another number)",  # metadata.log.dir is another directory
            r"^__consumer_offsets: .*(client_id|client_host|subscri|rebalance_timeout|session_timeout|process_id)",
            r"^__consumer_offsets: .*(timestamp_ms (smaller|one more|larger)|metadata_hash|assignment_configs)",
            r"^__consumer_offsets: (OffsetCommit: (offset|metadata|version)|GroupMetadata: (generation|protocol))",
            r"^__consumer_offsets: .*GroupEpoch: value epoch|description_topology_epoch|Topology: value epoch",
            r"^__consumer_offsets: .*(assigned_partitions|topic_partitions|active_tasks|assignment_epochs) emptied",
            r"^__consumer_offsets: .*(previous_member_epoch|assignment_epochs \[-1\]) (smaller|one more)",
            r"^__transaction_state: .*(producer_epoch|timeout_ms|last_update_ms|start_ms|client_transaction_version)",
            r"^__share_group_state: .*(epoch|start_offset|timestamp_ms) (smaller|one more|larger)",
            r"^__cluster_metadata: (Begin|End|Abort)TransactionRecord: name",
            r"^__cluster_metadata: (RegisterControllerRecord|UserScramCredentialRecord): ",  # a registration, a user
            r"^__cluster_metadata: ProducerIdsRecord: broker_epoch",
            r": (first|last): (twice|again at the end|exchanged with the next)",  # of independent records
            r"(OffsetCommit|GroupMetadata|TransactionRecord|ClearElrRecord): (first|last): left out",
            r"^exchanged: .*\.snapshot: ",  # producers expire, and a snapshot may have none
            r"^exchanged: .*leader-epoch-checkpoint: of its topic",
            r"^folder: (compacted|cut)-\d: the files of",  # partitions with the same records
            r"^exchanged: cut-\d/.*\.log: of its topic",  # as above
        ),
    }.items()
    for pattern in patterns
]  # fmt: skip


def reason_of(fault: Fault) -> str:
    """The reason why a fault is not found."""
    name = f"{fault.kind}: {fault.name}"
    return next((reason for reason, pattern in _REASONS if pattern.search(name)), SHOULD_BE_FOUND)
