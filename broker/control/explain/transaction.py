"""`transactions why`: explains a transactional id's last refusal: what fenced the producer, when and by which rule."""

from collections.abc import Callable, Mapping, Sequence

from broker.control.coordinators import transaction_coordinator, transaction_coordinators
from broker.control.event_text import (
    actor,
    citation,
    move,
    nothing_refused,
    place,
    refused,
    request,
)
from broker.control.explain.answers import explanation, faults
from broker.control.explain.batch import Refused as RefusedBatch
from broker.control.problems import Problem, not_found
from broker.control.request import ControlRequest
from broker.control.verbs import answers
from broker.coordination.coordinators import TRANSACTION_TOPIC
from broker.coordination.runtime import State
from broker.coordination.transaction.completion import CANNOT_BE_COMPLETED
from broker.coordination.transaction.transitions import UNWRITABLE, ProducerIdAndEpoch
from broker.settings.specification import cite
from broker.steering.timelines.transaction_events import Event, History, mover_past
from control_api.answers.common import Refusal
from control_api.answers.transactions import TimelineEvent
from control_api.encoding import copied
from control_api.spelling import suggestion
from control_api.times import local_time
from protocol.errors import ErrorCode

E = ErrorCode


def timeline_of(history: History) -> tuple[TimelineEvent, ...]:
    """Return the events of a transactional id, oldest first."""
    return tuple(copied(TimelineEvent, event, citation=cite(event.rule, event.source)) for event in history.events)


@answers("transactions why")
async def why(request: ControlRequest) -> Refusal:
    """Explain the last refusal of a transactional id."""
    name = request.names["transactional_id"]
    history = request.source.transaction_timelines.of(name)
    last = next((at for at in reversed(range(len(history.events))) if history.events[at].error), None)
    if last is None:
        node_and_coordinator = None if request.source.own is None else transaction_coordinator(request.cluster, name)
        if not history.events and (
            node_and_coordinator is None or name not in node_and_coordinator[1].machine.transactions
        ):
            raise unused(request, name)
        return explanation(nothing_refused(repr(name), history.forgotten), history.forgotten)
    return _refusal(request, name, history, last)


def unused(request: ControlRequest, name: str) -> Problem:
    """Build a 404 for an unknown transactional id; the detail suggests similar ids."""
    coordinators = [] if request.source.own is None else transaction_coordinators(request.cluster)
    names = [str(each) for _, coordinator in coordinators for each in coordinator.machine.transactions]
    return not_found(f"no client has used the transactional id {name!r}{suggestion(name, names)}")


def last_refusal(request: ControlRequest, name: str, producer_id: int, *, since_ms: int) -> Refusal | None:
    """Explain the last refusal of a transactional id; ``None`` if it is older or was of another producer id."""
    history = request.source.transaction_timelines.of(name)
    events = history.events
    last = next((at for at in reversed(range(len(events))) if events[at].error), None)
    if last is None or events[last].at_ms < since_ms or events[last].request_producer.producer_id != producer_id:
        return None
    return _refusal(request, name, history, last)


def _refusal(request: ControlRequest, name: str, history: History, at: int) -> Refusal:
    refusal = history.events[at]
    text = Refused(request, name, history.events[:at], refusal).explain()
    return explanation(
        text, history.forgotten, error=refusal.error, at_ms=refusal.until_ms, rule=refusal.rule, source=refusal.source
    )


def _is_move(event: Event) -> bool:
    """Return whether the event changed the state of the transactional id."""
    return event.error is None and bool(event.state_after)


class Refused:
    """A refused request about a transactional id, and the events before it."""

    def __init__(self, request: ControlRequest, name: str, before: Sequence[Event], refusal: Event) -> None:
        self._request, self._name, self._before, self._refusal = request, name, before, refusal
        self._moves = [event for event in before if _is_move(event)]

    def explain(self) -> str:
        """Return the cause first, then the refused request."""
        refusal = self._refusal
        source = cite(refusal.rule, refusal.source)
        return f"{self.cause()} {refused(request(refusal), refusal.until_ms, refusal.error, source, refusal.count)}"

    def cause(self) -> str:
        """Return the cause without the refused request."""
        refusal = self._refusal
        if refusal.fault is not None:
            return f"a fault: {faults(self._request, refusal.fault)}; the error did not come from the coordinator."
        return _EXPLAIN.get(ErrorCode[refusal.error or "NONE"], Refused.plainly)(self)

    # --- causes ------------------------------------------------------------------------------------------------------

    def fenced(self) -> str:
        """Explain PRODUCER_FENCED and INVALID_PRODUCER_EPOCH, its code in older versions."""
        sent, now = self._refusal.request_producer, self._refusal.after
        mover = self._fencing_event(sent)
        if mover is not None:
            return f"fenced: {move(mover)}."
        if sent.producer_epoch > now.producer_epoch >= 0 and sent.producer_id == now.producer_id:
            return f"an epoch that was never assigned: the producer is at {place(now)}, the request has {place(sent)}."
        if self._refusal.detail:
            return f"fenced: {self._refusal.detail}."
        return f"fenced: the request has {place(sent)}, the transactional id is at {place(now)}; {self._unseen()}."

    def _unseen(self) -> str:
        """Return why the cause is not known."""
        if self._request.source.own is None:
            return (
                "the cause did not pass through this proxy, such as another client's request or a transaction timeout"
            )
        return "the log no longer has the cause"

    def _fencing_event(self, producer: ProducerIdAndEpoch) -> Event | None:
        """Return the event that fenced a producer, if it is known."""
        return mover_past(producer, self._moves[::-1])

    def mapping(self) -> str:
        """Explain INVALID_PRODUCER_ID_MAPPING."""
        expired = next((event for event in reversed(self._before) if event.event == "expired"), None)
        state, name = self._refusal.after, self._name
        if expired is not None and not self._known_since(expired):
            unused = "the transactional id had not been used for transactional.id.expiration.ms"
            return f"expired: at {local_time(expired.at_ms)} {unused}{citation(expired.rule, expired.source)}."
        if state.producer_id < 0:
            return f"unknown: no client has called InitProducerId for {name!r} at this coordinator."
        mover = next(
            (event for event in reversed(self._moves) if event.before.producer_id not in (-1, event.producer_id)), None
        )
        sent = self._refusal.request_producer.producer_id
        if mover is not None and mover.producer_before == sent:
            return f"wrong producer id: {move(mover)}."
        return f"wrong producer id: {name!r} has producer id {state.producer_id}, the request has {sent}."

    def _known_since(self, expired: Event) -> bool:
        return any(event.at_ms >= expired.at_ms and event.event == "initialised" for event in self._moves)

    def busy(self) -> str:
        """Explain CONCURRENT_TRANSACTIONS."""
        prepared = (e for e in reversed(self._moves) if e.count == 1 and e.state_after.startswith("Prepare"))
        decided = next(prepared, None)
        if decided is not None and decided.event == CANNOT_BE_COMPLETED:
            why = f"{decided.detail}{citation(decided.rule, decided.source)}"
            return f"stuck: at {local_time(decided.at_ms)} the coordinator could not complete the transaction: {why}."
        if (stuck := self._stuck()) is not None:
            why = f"{stuck.detail}{citation(stuck.rule, stuck.source)}"
            return f"stuck: at {local_time(stuck.at_ms)} {actor(stuck)}, which was refused: {why}."
        since = "" if decided is None else f"at {local_time(decided.at_ms)} {actor(decided)} ({decided.event}), and "
        cluster = self._request.source.own
        held = None if cluster is None else cluster.markers.holds.held(self._name)
        if decided is not None and decided.event == "aborted for a new producer" and held is None:
            rule = citation(decided.rule, decided.source)
            return f"busy: {since}the open transaction had to be aborted first{rule}; a retry succeeds."
        holding = "" if held is None else f"; the control plane holds it at {held[0].value!r}"
        return f"busy: {since}not all markers of that transaction had been written{holding}."

    def _stuck(self) -> Event | None:
        """Return the request whose record could not be written, if the id is still in transition since."""
        for event in reversed(self._before):
            if _is_move(event):
                return None
            if event.rule == UNWRITABLE:
                return event
        return None

    def wrong_state(self) -> str:
        """Explain INVALID_TXN_STATE."""
        if not self._moves:
            return f"the wrong state: {self._refusal.detail or 'no transaction is open'}."
        last = self._moves[-1]
        since = f"since {local_time(last.at_ms)}, when {actor(last)} ({last.event})"
        return f"the wrong state: the transactional id is in {last.state_after} {since}."

    def elsewhere(self) -> str:
        """Explain NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE and COORDINATOR_LOAD_IN_PROGRESS."""
        if self._request.source.own is None:
            return f"the coordinator: broker {self._refusal.broker} is not the coordinator, or is still loading."
        node_and_coordinator = transaction_coordinator(self._request.cluster, self._name)
        if node_and_coordinator is None:
            if TRANSACTION_TOPIC not in self._request.cluster.image.topics:
                return f"the coordinator: there is none before FindCoordinator has created {TRANSACTION_TOPIC}."
            return "the coordinator: no broker coordinates this transactional id now."
        node, coordinator = node_and_coordinator
        if self._refusal.error == E.COORDINATOR_LOAD_IN_PROGRESS.name:
            loading = (
                "is still loading" if coordinator.state is State.LOADING else "was loading then, and has finished since"
            )
            return f"the coordinator: broker {node.id} {loading}."
        broker = self._refusal.broker
        return f"the coordinator: the request went to broker {broker}; broker {node.id} is the coordinator now."

    def not_added(self) -> str:
        """Explain TRANSACTION_ABORTABLE."""
        state = f"; the transactional id is in {self._refusal.state_before}" if self._refusal.state_before else ""
        return f"not in the transaction: {self._refusal.detail or 'the partition was never added'}{state}."

    def timeout(self) -> str:
        """Explain INVALID_TRANSACTION_TIMEOUT."""
        if self._request.source.own is None:
            return "the timeout: it must be between 1 and the broker's transaction.max.timeout.ms."
        most_ms = self._request.cluster.settings.int("transaction.max.timeout.ms")
        rule = citation("transactions A.1 A9", "KIP-98")
        return f"the timeout: it must be between 1 and transaction.max.timeout.ms, which is {most_ms}{rule}."

    def sequence(self) -> str:
        """Explain OUT_OF_ORDER_SEQUENCE_NUMBER and UNKNOWN_PRODUCER_ID as for a producer without an id."""
        history = self._request.source.producer_timelines.of(self._refusal.request_producer.producer_id)
        events = [] if history is None else history.events
        for at in reversed(range(len(events))):
            if events[at].error == self._refusal.error and events[at].at_ms <= self._refusal.until_ms:
                return RefusedBatch(self._request, events[:at], events[at]).cause()
        mover = self._fencing_event(self._refusal.request_producer)
        moved = "" if mover is None else f"; {move(mover)}"
        rule = citation("transactions D.4", "ProducerAppendInfo")
        return f"the sequence: {self._refusal.detail or 'the partition expected another sequence'}{moved}{rule}."

    def plainly(self) -> str:
        """Describe any other error, with the id's state."""
        state = (
            f", in {self._refusal.state_before} at {place(self._refusal.after)}" if self._refusal.state_before else ""
        )
        return f"refused: {self._refusal.detail or self._refusal.error}{state}."


_EXPLAIN: Mapping[ErrorCode, Callable[[Refused], str]] = {
    E.PRODUCER_FENCED: Refused.fenced,
    E.INVALID_PRODUCER_EPOCH: Refused.fenced,
    E.INVALID_PRODUCER_ID_MAPPING: Refused.mapping,
    E.CONCURRENT_TRANSACTIONS: Refused.busy,
    E.INVALID_TXN_STATE: Refused.wrong_state,
    E.TRANSACTION_ABORTABLE: Refused.not_added,
    E.INVALID_TRANSACTION_TIMEOUT: Refused.timeout,
    E.COORDINATOR_LOAD_IN_PROGRESS: Refused.elsewhere,
    E.COORDINATOR_NOT_AVAILABLE: Refused.elsewhere,
    E.NOT_COORDINATOR: Refused.elsewhere,
    E.OUT_OF_ORDER_SEQUENCE_NUMBER: Refused.sequence,
    E.UNKNOWN_PRODUCER_ID: Refused.sequence,
}
