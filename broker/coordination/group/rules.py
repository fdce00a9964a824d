"""Rules by which groups refuse requests: a section of the specification, and the KIP or Kafka class behind it."""

from typing import NamedTuple


class Rule(NamedTuple):
    """The id of a rule and its source."""

    id: str
    source: str

    def row(self, name: str) -> "Rule":
        """Return the rule of a row of this section, with the same source."""
        return Rule(f"{self.id}{name}", self.source)


JOIN = Rule("groups A.4", "GroupMetadataManager.classicGroupJoin")
REPLACEMENT = Rule("groups A.6", "KIP-345")
SYNC = Rule("groups A.7", "GroupMetadataManager.classicGroupSync")
HEARTBEAT = Rule("groups A.8", "GroupMetadataManager.classicGroupHeartbeat")
LEAVE = Rule("groups A.9", "GroupMetadataManager.classicGroupLeave")
COMMIT = Rule("groups B.1", "OffsetMetadataManager.commitOffset")
COMMIT_OF_MEMBER = COMMIT.row(" OC2.2")
FIND_COORDINATOR = Rule("groups 0.5", "KafkaApis.handleFindCoordinatorRequest")
COMMIT_PENDING = Rule("transactions C.4.2", "OffsetMetadataManager.commitTransactionalOffset")
OFFSET_FETCH = Rule("groups B.2", "OffsetMetadataManager.fetchOffsets")
OFFSET_DELETE = Rule("transactions E.4", "OffsetMetadataManager.deleteOffsets")
DESCRIBE = Rule("groups A.13", "KIP-848")
CONSUMER_VALIDATION = Rule("groups C.2", "KIP-848")
CONSUMER_LEAVE = Rule("groups C.3", "KIP-848")
CONSUMER_HEARTBEAT = Rule("groups C.4", "KIP-848")
MEMBER_LOOKUP = CONSUMER_HEARTBEAT.row(" H4")
EPOCH_CHECK = CONSUMER_HEARTBEAT.row(" H5")
RECONCILIATION = Rule("groups C.5", "KIP-848")
REGULAR_EXPRESSIONS = Rule("groups C.9", "KIP-848")
UPGRADE = Rule("groups C.10.1", "KIP-848")
CLASSIC_JOIN = Rule("groups C.10.2", "KIP-848")
CLASSIC_SYNC = Rule("groups C.10.3", "KIP-848")
CLASSIC_HEARTBEAT = Rule("groups C.10.4", "KIP-848")
STREAMS_VALIDATION = Rule("groups E.1", "KIP-1071")
STREAMS_LEAVE = Rule("groups E.2", "KIP-1071")
STREAMS_HEARTBEAT = Rule("groups E.3", "KIP-1071")
STREAMS_TOPOLOGY = Rule("groups E.4", "KIP-1071")
STREAMS_RECONCILIATION = Rule("groups E.6", "KIP-1071")
STREAMS_DESCRIBE = Rule("groups E.8", "KIP-1071")
NO_CLASSIC_MEMBERS = Rule("groups A.3", "GroupMetadataManager.classicGroupJoin")
SHARE_HEARTBEAT = Rule("groups D.1", "KIP-932")
SHARE_FETCH = Rule("groups D.5", "KIP-932")
SHARE_ACKNOWLEDGE = Rule("groups D.6", "KIP-932")
SHARE_COMMIT = COMMIT.row(" OC4")
SHARE_OFFSETS = Rule("groups D.10", "KIP-932")
