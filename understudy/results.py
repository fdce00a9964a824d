"""Dataclasses of the control plane's responses. Times are milliseconds of the cluster's clock since 1970."""

from control_api.answers.cluster import (
    Broker,
    ClockState,
    ClusterInfo,
    Controller,
    Health,
    Listener,
    SnapshotInfo,
    VersionRange,
)
from control_api.answers.clusters import RunningCluster
from control_api.answers.common import Refusal
from control_api.answers.diagrams import Diagram, Lane, Shape, Step
from control_api.answers.faults import FaultState, ServedApi
from control_api.answers.groups import (
    Group,
    GroupEvent,
    GroupOffset,
    Member,
    PartitionLag,
    SharePartition,
    ShareRecords,
)
from control_api.answers.journal import JournalEntry
from control_api.answers.overview import (
    Activity,
    ClientActivity,
    CountedError,
    LatestRefusal,
    Overview,
    OverviewGroup,
    OverviewTransaction,
)
from control_api.answers.producers import ProducerEvent, ProducerLife, ProducerPlace
from control_api.answers.registry import RegistryFaultState, RegistryInfo
from control_api.answers.report import Report, ReportedRefusal, ReportedRequest
from control_api.answers.scenario import RecordedStep
from control_api.answers.security import Acl, Quota
from control_api.answers.topics import (
    AbortedTransaction,
    Decoded,
    Header,
    Partition,
    Producer,
    Record,
    Segment,
    Topic,
    Written,
)
from control_api.answers.transactions import PastTransaction, TimelineEvent, Transaction
from control_api.answers.users import User

__all__ = [
    "AbortedTransaction",
    "Acl",
    "Activity",
    "Broker",
    "ClientActivity",
    "ClockState",
    "ClusterInfo",
    "Controller",
    "CountedError",
    "Decoded",
    "Diagram",
    "FaultState",
    "Group",
    "GroupEvent",
    "GroupOffset",
    "Header",
    "Health",
    "JournalEntry",
    "Lane",
    "LatestRefusal",
    "Listener",
    "Member",
    "Overview",
    "OverviewGroup",
    "OverviewTransaction",
    "Partition",
    "PartitionLag",
    "PastTransaction",
    "Producer",
    "ProducerEvent",
    "ProducerLife",
    "ProducerPlace",
    "Quota",
    "Record",
    "RecordedStep",
    "Refusal",
    "RegistryFaultState",
    "RegistryInfo",
    "Report",
    "ReportedRefusal",
    "ReportedRequest",
    "RunningCluster",
    "Segment",
    "ServedApi",
    "Shape",
    "SharePartition",
    "ShareRecords",
    "SnapshotInfo",
    "Step",
    "TimelineEvent",
    "Topic",
    "Transaction",
    "User",
    "VersionRange",
    "Written",
]
