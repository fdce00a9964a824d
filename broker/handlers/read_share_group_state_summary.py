"""ReadShareGroupStateSummary: reads offsets and counts of share partitions; sent by group coordinators (KIP-932).

Versions 0-1; the delivery-complete count since v1 (KIP-1226). Not done: nothing.
"""

from broker.coordination.share_state.persister import SharePartitionKey, SummaryResult
from broker.request.api import Api
from broker.request.context import RequestContext
from broker.request.share_state import ask_own, each_partition, refused_partitions
from protocol.apis import ApiKey
from protocol.errors import KafkaError
from protocol.messages.read_share_group_state_summary import (
    PartitionData,
    PartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
)

_RPC = "read share group state summary"


async def handle(request: ReadShareGroupStateSummaryRequest, ctx: RequestContext) -> ReadShareGroupStateSummaryResponse:
    """Read the summary of each partition at this broker's share coordinator (groups D.9)."""

    async def answer(key: SharePartitionKey, asked: PartitionData) -> PartitionResult:  # noqa: ARG001
        result = await ask_own(ctx, key, SummaryResult, _RPC, lambda machine, _now_ms, to: machine.summarize(key, to))
        if result.failed:
            return PartitionResult(key.partition, result.error, result.message)
        return PartitionResult(
            key.partition,
            state_epoch=result.state_epoch,
            leader_epoch=result.leader_epoch,
            start_offset=result.start_offset,
            delivery_complete_count=result.delivery_complete_count,
        )

    results = await each_partition(request, ctx, answer)
    return ReadShareGroupStateSummaryResponse(
        [ReadStateSummaryResult(topic_id, partitions) for topic_id, partitions in results]
    )


def refuse(
    request: ReadShareGroupStateSummaryRequest,
    error: KafkaError,
    version: int,  # noqa: ARG001
) -> ReadShareGroupStateSummaryResponse:
    """Put the error on every partition."""
    results = refused_partitions(
        request, error, lambda partition, code, text: PartitionResult(partition, error_code=code, error_message=text)
    )
    return ReadShareGroupStateSummaryResponse(
        [ReadStateSummaryResult(topic_id, partitions) for topic_id, partitions in results]
    )


API: Api[ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse] = Api(
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, (0, 1), handle, refuse
)
