"""ListTransactions: lists the transactional ids that this broker coordinates (KIP-664).

Versions 0-2: filters by duration (KIP-994) and by pattern (KIP-1152). Not done: nothing.
"""

from broker.coordination.transaction.listing import TransactionFilter, compile_pattern
from broker.coordination.transaction.states import BY_TEXT
from broker.request.api import Api, top_level
from broker.request.context import AclOperation, RequestContext, ResourceType
from protocol.apis import ApiKey
from protocol.java import string_hash
from protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from protocol.scala import few_order


async def handle(request: ListTransactionsRequest, ctx: RequestContext) -> ListTransactionsResponse:
    """List this broker's transactions; clients send it to every broker and merge the responses (transactions C.7)."""
    runtimes = [runtime for _, runtime in sorted(ctx.node.coordinators.transactions.items())]
    for runtime in runtimes:
        runtime.check_active()  # before the pattern is compiled
    known = frozenset(BY_TEXT[text] for text in request.state_filters if text in BY_TEXT)
    wanted = TransactionFilter(
        known if request.state_filters else None,
        frozenset(request.producer_id_filters),
        request.duration_filter,
        compile_pattern(request.transactional_id_pattern),
    )
    records = [record for runtime in runtimes for record in wanted.of(runtime.machine, ctx.now_ms)]
    return ListTransactionsResponse(
        unknown_state_filters=few_order((text for text in request.state_filters if text not in BY_TEXT), string_hash),
        transaction_states=[
            TransactionState(record.transactional_id, record.producer_id, record.state.text)
            for record in records
            if ctx.authorized(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, record.transactional_id)
        ],
    )


API: Api[ListTransactionsRequest, ListTransactionsResponse] = Api(
    ApiKey.LIST_TRANSACTIONS, handle, top_level(ListTransactionsResponse)
)
