"""Offsets that a request appends or fetches, for faults that match a record instead of the n-th request.

How clients batch and poll depends on timing, so the n-th request carries other records in each run. The offset of a
record is the same in every run.
"""

from typing import Any

from broker.request.context import RequestContext
from protocol.items import PARTITION, TOPIC, Selection
from protocol.messages.fetch import FetchRequest
from protocol.messages.produce import ProduceRequest
from protocol.records.batch import RecordBatch, begins_with_batch
from protocol.types import Message


def reaches(request: Message, ctx: RequestContext, wanted: Selection, offset: int) -> bool:
    """Return whether a Produce would append a record at or beyond this offset, or a Fetch starts there or later."""
    if isinstance(request, ProduceRequest):
        return _appends(request, ctx, wanted, offset)
    return isinstance(request, FetchRequest) and _reads(request, ctx, wanted, offset)


def _appends(request: ProduceRequest, ctx: RequestContext, wanted: Selection, offset: int) -> bool:
    hosted = ctx.cluster.partitions.get((wanted.topic or "", wanted.partition or 0))
    log = None if hosted is None else hosted.logs.get(hosted.state.leader)
    if log is None:
        return False
    sets = (
        partition.records
        for topic in request.topic_data
        if wanted.agrees(TOPIC, topic.topic_id or topic.name)
        for partition in topic.partition_data
        if wanted.agrees(PARTITION, partition.index)
    )
    return any(log.log_end_offset + _count(records) > offset for records in sets)


def _count(records: Any) -> int:
    """Return the number of offsets that a record set takes; 1 for formats before v2, whose messages are not counted."""
    if not records or not begins_with_batch(records):
        return 1
    return RecordBatch(records).last_offset_delta + 1


def _reads(request: FetchRequest, ctx: RequestContext, wanted: Selection, offset: int) -> bool:
    """Include the fetch session (KIP-227), whose partitions an incremental request does not repeat."""
    begins = {
        (topic.topic_id or topic.topic): partition.fetch_offset
        for topic in request.topics
        if wanted.agrees(TOPIC, topic.topic_id or topic.topic)
        for partition in topic.partitions
        if wanted.agrees(PARTITION, partition.partition)
    }
    session = ctx.node.sessions.get(request.session_id) if request.session_epoch > 0 else None
    if session is not None:
        for (topic, index), interest in session.interests.items():
            if wanted.agrees(TOPIC, topic) and wanted.agrees(PARTITION, index):
                begins.setdefault(topic, interest.wanted.fetch_offset)
    return any(begin >= offset for begin in begins.values())
