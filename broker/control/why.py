"""The last refusal of a transactional id, told in words: who fenced whom, when, by which request, by which rule."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from broker.control.asked import Asked
from broker.control.coordinators import coordinator_of, runtimes
from broker.control.problems import Problem, nearest, not_found
from broker.control.sentences import actor, clock_time, move, place, request
from broker.coordination.runtime import State
from broker.coordination.transaction.epochs import ProducerIdAndEpoch
from broker.middleware.timeline import Event
from broker.node import TRANSACTION_TOPIC
from protocol.errors import ErrorCode

E = ErrorCode
_TOLD = ("at_ms", "event", "state_before", "state_after", "producer_id", "epoch_before", "epoch_after", "client_id",
         "connection", "broker", "api", "version", "wants", "error", "rule", "detail", "fault")  # fmt: skip


def told(event: Event) -> dict[str, Any]:
    """An event as JSON."""
    return {name: getattr(event, name) for name in _TOLD}


async def why(asked: Asked) -> dict[str, Any]:
    """The last refusal told in words."""
    name = asked.names["transactional_id"]
    events = asked.cluster.timelines.of(name)
    last = next((at for at in reversed(range(len(events))) if events[at].error), None)
    if last is None:
        found = coordinator_of(asked.cluster, TRANSACTION_TOPIC, name)
        if not events and (found is None or name not in found[1].machine.transactions):
            raise unused(asked, name)
        return {"why": f"nothing was refused to {name!r} yet", "error": None, "at_ms": None, "rule": ""}
    return _refusal(asked, name, events, last)


def unused(asked: Asked, name: str) -> Problem:
    """Nobody has used the id; what was used."""
    found = runtimes(asked.cluster, TRANSACTION_TOPIC)
    known = [str(each) for _, runtime in found for each in runtime.machine.transactions]
    return not_found(f"nobody has used the transactional id {name!r}{nearest(name, known)}")


def last_refusal(asked: Asked, name: str, producer_id: int, *, since_ms: int) -> dict[str, Any] | None:
    """The last refusal of a transactional id, if it was of this producer and not before that time."""
    events = asked.cluster.timelines.of(name)
    last = next((at for at in reversed(range(len(events))) if events[at].error), None)
    if last is None or events[last].at_ms < since_ms or events[last].said.producer_id != producer_id:
        return None
    return _refusal(asked, name, events, last)


def _refusal(asked: Asked, name: str, events: Sequence[Event], at: int) -> dict[str, Any]:
    refused = events[at]
    words = Refused(asked, name, events[:at], refused).in_words()
    return {"why": words, "error": refused.error, "at_ms": refused.at_ms, "rule": refused.rule}


def faults(asked: Asked, ids: str) -> str:
    """What faults there were, by their ids."""
    known = asked.cluster.faults.faults
    return " and ".join(
        f"fault {each}, {known[each].said['do']}" if each in known else f"fault {each}, taken back meanwhile"
        for each in ids.split(",")
    )


class Refused:
    """A refusal, and the events before it."""

    def __init__(self, asked: Asked, name: str, before: Sequence[Event], refused: Event) -> None:
        self._asked, self._name, self._before, self._it = asked, name, before, refused
        self._moves = [event for event in before if event.error is None and event.state_after]

    def in_words(self) -> str:
        """The cause first, then what was refused."""
        it = self._it
        told = f"Refused was {request(it)}, at {clock_time(it.at_ms)}, with {it.error}"
        told += f" ({it.rule})." if it.rule else "."
        if it.fault is not None:
            return f"a fault: {faults(self._asked, it.fault)}; nothing of the transaction decided that. {told}"
        explain = _EXPLAIN.get(ErrorCode[it.error or "NONE"], Refused.plainly)
        return f"{explain(self)} {told}"

    # --- causes ------------------------------------------------------------------------------------------------------

    def fenced(self) -> str:
        """PRODUCER_FENCED and its older name."""
        mover = self._who_moved_past(self._it.said)
        if mover is not None:
            return f"fenced: {move(mover)}."
        said, now = self._it.said, self._it.stands
        if said.producer_epoch > now.producer_epoch >= 0 and said.producer_id == now.producer_id:
            return f"an epoch that nobody was given: the producer is at {place(now)}, the request says {place(said)}."
        if self._it.detail:
            return f"fenced: {self._it.detail}."
        return f"fenced: the request says {place(said)}, the id is at {place(now)}; what moved it is not remembered."

    def _who_moved_past(self, said: ProducerIdAndEpoch) -> Event | None:
        """What put the id beyond what a request says: the latest event that left exactly that behind."""
        for event in reversed(self._moves):
            if event.stood == said and event.stands != said:
                return event
        for event in self._moves:  # it was never exactly there: the first one beyond
            if event.producer_id == said.producer_id and event.epoch_after > said.producer_epoch:
                return event
        return None

    def mapping(self) -> str:
        """INVALID_PRODUCER_ID_MAPPING."""
        expired = next((event for event in reversed(self._before) if event.event == "expired"), None)
        known, name = self._it.stands, self._name
        if expired is not None and not self._known_since(expired):
            unused = "the id had not been used for transactional.id.expiration.ms"
            return f"forgotten: at {clock_time(expired.at_ms)} {unused}; {expired.rule}."
        if known.producer_id < 0:
            return f"unknown: nobody has called InitProducerId for {name!r} at this coordinator."
        mover = next(
            (event for event in reversed(self._moves) if event.stood.producer_id not in (-1, event.producer_id)), None
        )
        if mover is not None and mover.producer_before == self._it.said.producer_id:
            return f"another producer id: {move(mover)}."
        said = self._it.said.producer_id
        return f"another producer id: {name!r} belongs to {known.producer_id}, the request says {said}."

    def _known_since(self, expired: Event) -> bool:
        return any(event.at_ms >= expired.at_ms and event.event == "initialised" for event in self._moves)

    def busy(self) -> str:
        """CONCURRENT_TRANSACTIONS."""
        decided = next((event for event in reversed(self._moves) if event.state_after.startswith("Prepare")), None)
        since = "" if decided is None else f"at {clock_time(decided.at_ms)} {actor(decided)} ({decided.event}), and "
        held = self._asked.cluster.markers.holds.held(self._name)
        if decided is not None and decided.event == "aborted for a new producer" and held is None:
            return (
                f"busy: {since}the open transaction had to be aborted first; {decided.rule}; asked again, it is done."
            )
        holding = "" if held is None else f"; the control plane holds it at {held[0].value!r}"
        return f"busy: {since}the markers of that transaction were not all written{holding}."

    def wrong_state(self) -> str:
        """INVALID_TXN_STATE."""
        if not self._moves:
            return f"the wrong state: {self._it.detail or 'no transaction is open'}."
        last = self._moves[-1]
        since = f"since {clock_time(last.at_ms)}, when {actor(last)} ({last.event})"
        return f"the wrong state: the id is in {last.state_after} {since}."

    def elsewhere(self) -> str:
        """NOT_COORDINATOR and its like."""
        found = coordinator_of(self._asked.cluster, TRANSACTION_TOPIC, self._name)
        if found is None:
            return "the coordinator: nobody coordinates this id now."
        node, runtime = found
        if self._it.error == E.COORDINATOR_LOAD_IN_PROGRESS.name:
            loading = "is still loading" if runtime.state is State.LOADING else "was loading then, and has finished"
            return f"the coordinator: broker {node.id} {loading}."
        return f"the coordinator: broker {self._it.broker} was asked, broker {node.id} coordinates this id now."

    def not_added(self) -> str:
        """TRANSACTION_ABORTABLE."""
        state = f"; the id is in {self._it.state_before}" if self._it.state_before else ""
        return f"not in the transaction: {self._it.detail or 'a partition that was never added'}{state}."

    def timeout(self) -> str:
        """INVALID_TRANSACTION_TIMEOUT."""
        most_ms = self._asked.cluster.settings.int("transaction.max.timeout.ms")
        return f"the timeout: it has to be from 1 to transaction.max.timeout.ms, which is {most_ms}; transactions A9."

    def sequence(self) -> str:
        """OUT_OF_ORDER_SEQUENCE_NUMBER and UNKNOWN_PRODUCER_ID."""
        mover = self._who_moved_past(self._it.said)
        moved = "" if mover is None else f"; {move(mover)}"
        return f"the sequence: {self._it.detail or 'the partition expected another one'}{moved}; transactions D.4."

    def plainly(self) -> str:
        """Everything else."""
        state = f", in {self._it.state_before} at {place(self._it.stands)}" if self._it.state_before else ""
        return f"refused: {self._it.detail or self._it.error}{state}."


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
