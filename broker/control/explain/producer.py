"""`producers why`: explains a producer's last refused batch by the partition's producer state and who changed it."""

from broker.control.event_text import nothing_refused
from broker.control.explain.answers import explanation
from broker.control.explain.batch import Refused
from broker.control.explain.transaction import last_refusal
from broker.control.producers import known
from broker.control.request import ControlRequest
from broker.control.verbs import answers
from control_api.answers.common import Refusal
from protocol.errors import ErrorCode

E = ErrorCode
_OF_SEQUENCES = frozenset({E.OUT_OF_ORDER_SEQUENCE_NUMBER.name, E.UNKNOWN_PRODUCER_ID.name})


@answers("producers why")
async def why(request: ControlRequest) -> Refusal:
    """Explain the last refusal of a producer."""
    producer_id, history, _ = known(request)
    events, forgotten = ([], 0) if history is None else (history.events, history.forgotten)
    last = next((at for at in reversed(range(len(events))) if events[at].error), None)
    refusal = None if last is None else events[last]
    name = None if history is None else history.transactional_id
    if name is not None and (refusal is None or refusal.error not in _OF_SEQUENCES):
        by_id = last_refusal(request, name, producer_id, since_ms=0 if refusal is None else refusal.until_ms)
        if by_id is not None:
            return by_id
    if refusal is None or last is None:
        return explanation(nothing_refused(f"the producer id {producer_id}", forgotten), forgotten)
    text = Refused(request, events[:last], refusal).explain()
    return explanation(
        text, forgotten, error=refusal.error, at_ms=refusal.until_ms, rule=refusal.rule, source=refusal.source
    )
