"""ReadShareGroupStateSummary: reads offsets and counts of share partitions; sent by group coordinators (KIP-932).

Versions 0-1; the delivery-complete count since v1 (KIP-1226). Not done: nothing.
"""

from broker.coordination.share_state.persister import SharePartitionKey, SummaryResult
from broker.request.api import Api
from broker.request.context import RequestContext
from broker.request.share_state import Operation, StateRequests
from protocol.apis import ApiKey
from protocol.messages.read_share_group_state_summary import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)


def _summary(partition: int, summary: SummaryResult) -> PartitionResult:
    return PartitionResult(
        partition,
        state_epoch=summary.state_epoch,
        leader_epoch=summary.leader_epoch,
        start_offset=summary.start_offset,
        delivery_complete_count=summary.delivery_complete_count,
    )


_REQUESTS = StateRequests(
    "read share group state summary",
    SummaryResult,
    PartitionResult,
    ReadStateSummaryResult,
    ReadShareGroupStateSummaryResponse,
    _summary,
)


async def handle(request: ReadShareGroupStateSummaryRequest, ctx: RequestContext) -> ReadShareGroupStateSummaryResponse:
    """Read the summary of each partition at this broker's share coordinator (groups D.9)."""

    def operation(key: SharePartitionKey, _each: PartitionData) -> Operation:
        return lambda machine, _now_ms, to: machine.summarize(key, to)

    return await _REQUESTS.handle(request, ctx, operation)


API: Api[ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse] = Api(
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, handle, _REQUESTS.refuse
)
