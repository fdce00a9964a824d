"""The last refusal of each transactional id, each producer without a transactional id, and each group."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import NamedTuple

from broker.control.coordinators import transaction_coordinators
from broker.control.explain.group import why as why_group
from broker.control.explain.producer import why as why_producer
from broker.control.explain.transaction import why as why_transaction
from broker.control.problems import Problem
from broker.control.request import ControlRequest
from control_api.answers.common import Refusal

_MOST_SUBJECTS = 50
"""Ids, groups or producers, the newest: each is explained, which reads its timeline; ours, more are not read."""
Why = Callable[[ControlRequest], Awaitable[Refusal]]


class Subject(NamedTuple):
    """What a refusal is about: its kind (the group of verbs), its name there, and a text to print."""

    kind: str
    name: str
    text: str


async def refusals_since(request: ControlRequest, since_ms: int) -> AsyncIterator[tuple[Subject, Refusal]]:
    """Yield the refusals since a time of the cluster's clock, for the 50 ids of each kind that were refused last."""
    for subject, why, names in _subjects(request):
        try:
            last = await why(ControlRequest(request.cluster, names))
        except Problem:  # its coordinator is loading, or has just moved
            continue
        if last.error is not None and (last.at_ms or 0) >= since_ms:
            yield subject, last


def _subjects(request: ControlRequest) -> Iterator[tuple[Subject, Why, dict[str, str]]]:
    # Ids come from the timelines: coordinators do not know ids that they refused from the start, or have removed.
    for name in request.cluster.transaction_timelines.refused()[-_MOST_SUBJECTS:]:
        subject = Subject("transactions", name, f"transactional id {name}")
        yield subject, why_transaction, {"transactional_id": name}
    transactional = {
        record.producer_id
        for _, coordinator in transaction_coordinators(request.cluster)
        for record in coordinator.machine.transactions.values()
    }
    timelines = request.cluster.producer_timelines
    for producer_id in timelines.refused()[-_MOST_SUBJECTS:]:
        history = timelines.of(producer_id)
        if history is not None and producer_id not in transactional:
            subject = Subject("producers", str(producer_id), f"producer {producer_id} ({history.client_id})")
            yield subject, why_producer, {"producer_id": str(producer_id)}
    for name in request.cluster.group_timelines.refused()[-_MOST_SUBJECTS:]:
        yield Subject("groups", name, f"group {name}"), why_group, {"group": name}
