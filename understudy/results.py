"""Dataclasses of the control plane's answers. Times are milliseconds of the cluster's clock since 1970."""

from understudy.control_api.answers.cluster import (
    Broker,
    ClockState,
    ClusterInfo,
    Health,
    Listener,
    SnapshotInfo,
    VersionRange,
)
from understudy.control_api.answers.common import Refusal
from understudy.control_api.answers.faults import FaultState
from understudy.control_api.answers.groups import Group, GroupEvent, GroupOffset, Member, SharePartition, ShareRecords
from understudy.control_api.answers.journal import JournalEntry
from understudy.control_api.answers.producers import ProducerEvent, ProducerLife, ProducerPlace
from understudy.control_api.answers.report import Report, ReportedRefusal, ReportedRequest
from understudy.control_api.answers.topics import (
    AbortedTransaction,
    Header,
    Partition,
    Producer,
    Record,
    Segment,
    Topic,
    Written,
)
from understudy.control_api.answers.transactions import TimelineEvent, Transaction

__all__ = [
    "AbortedTransaction",
    "Broker",
    "ClockState",
    "ClusterInfo",
    "FaultState",
    "Group",
    "GroupEvent",
    "GroupOffset",
    "Header",
    "Health",
    "JournalEntry",
    "Listener",
    "Member",
    "Partition",
    "Producer",
    "ProducerEvent",
    "ProducerLife",
    "ProducerPlace",
    "Record",
    "Refusal",
    "Report",
    "ReportedRefusal",
    "ReportedRequest",
    "Segment",
    "SharePartition",
    "ShareRecords",
    "SnapshotInfo",
    "TimelineEvent",
    "Topic",
    "Transaction",
    "VersionRange",
    "Written",
]
