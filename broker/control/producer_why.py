"""The last refusal of a producer told in words: which batch it was, what the partition had, who had written that."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from broker.control import why as transactional
from broker.control.asked import Asked
from broker.control.producers import known
from broker.control.sentences import clock_time
from broker.middleware.producer_timeline import ACCEPTED, ProducerEvent
from protocol.errors import ErrorCode
from storage.producer_rules import REMEMBERED_BATCHES

E = ErrorCode
_OF_SEQUENCES = frozenset({E.OUT_OF_ORDER_SEQUENCE_NUMBER.name, E.UNKNOWN_PRODUCER_ID.name})


async def why(asked: Asked) -> dict[str, Any]:
    """The last refusal of a producer told in words."""
    producer_id, life, _ = known(asked)
    events = [] if life is None else list(life.events)
    last = next((at for at in reversed(range(len(events))) if events[at].error), None)
    refused = None if last is None else events[last]
    name = None if life is None else life.transactional_id
    if name is not None and (refused is None or refused.error not in _OF_SEQUENCES):
        told = transactional.last_refusal(asked, name, producer_id, since_ms=0 if refused is None else refused.at_ms)
        if told is not None:
            return told
    if refused is None or last is None:
        words = f"nothing was refused to the producer id {producer_id} yet"
        return {"why": words, "error": None, "at_ms": None, "rule": ""}
    words = Refused(asked, events[:last], refused).in_words()
    return {"why": words, "error": refused.error, "at_ms": refused.at_ms, "rule": refused.rule}


class Refused:
    """A refusal, and the events before it."""

    def __init__(self, asked: Asked, before: Sequence[ProducerEvent], refused: ProducerEvent) -> None:
        self._asked, self._it = asked, refused
        self._here = [event for event in before if event.place == refused.place]

    def in_words(self) -> str:
        """The cause first, then what was refused."""
        it = self._it
        told = f"Refused was {_request(it)} to {it.partition}, {_sequences(it)} at epoch {it.producer_epoch}, "
        told += f"at {clock_time(it.at_ms)}, with {it.error}" + (f" ({it.rule})." if it.rule else ".")
        if it.fault is not None:
            written = "" if it.event == "refused" else "; the batch was written all the same"
            return f"a fault: {transactional.faults(self._asked, it.fault)}; nothing else decided that{written}. {told}"
        return f"{_EXPLAIN.get(ErrorCode[it.error or 'NONE'], Refused.plainly)(self)} {told}"

    # --- causes ------------------------------------------------------------------------------------------------------

    def fenced(self) -> str:
        """INVALID_PRODUCER_EPOCH."""
        it = self._it
        past = (each for each in reversed(self._here) if each.epoch_before <= it.producer_epoch < each.epoch_after)
        mover = next(past, None)
        if mover is None:
            here = f"{it.partition} knows this producer at epoch {it.epoch_after}"
            return f"fenced: {here}, the request says {it.producer_epoch}; what moved it is not remembered."
        who = f"at {clock_time(mover.at_ms)} {_client(mover)} wrote to {it.partition} by {mover.api} v{mover.version}"
        at = "unknown here" if mover.epoch_before < 0 else f"at epoch {mover.epoch_before}"
        became = f"while this producer was {at}; the epoch became {mover.epoch_after}; {mover.rule}"
        return f"fenced: {who}, {_sequences(mover)}, {became}."

    def sequence(self) -> str:
        """OUT_OF_ORDER_SEQUENCE_NUMBER."""
        it = self._it
        if it.epoch_after not in (-1, it.producer_epoch):
            moved = f"{it.partition} knows it at epoch {it.epoch_after}, the request begins epoch {it.producer_epoch}"
            return f"the sequence: {moved}, and a new epoch begins with sequence 0, not {it.first_sequence}."
        if it.known_sequence < 0:
            return f"the sequence: {it.detail or f'{it.partition} expected another one'}.{self._lost()}"
        had = f"{it.partition} has its sequences up to {it.known_sequence}{self._written_by()}"
        if it.first_sequence > it.known_sequence + 1:
            missing = f"{_from_to(it.known_sequence + 1, it.first_sequence - 1)} did not come before{self._missed()}"
            return f"the sequence: {had}; the request begins with {it.first_sequence}, {missing}."
        old = f"what is not one of the last {REMEMBERED_BATCHES} batches as it was is not known for a repetition (S1)"
        return f"the sequence: {had}; the request begins with {it.first_sequence} again, and {old}."

    def _written_by(self) -> str:
        """Who wrote the last one that the partition has."""
        it = self._it
        run = next((each for each in reversed(self._here) if each.event == ACCEPTED
                    and each.first_sequence <= it.known_sequence <= each.last_sequence), None)  # fmt: skip
        return "" if run is None else f", written by {_client(run)} at {clock_time(run.until_ms)}"

    def _missed(self) -> str:
        """What became of the batch that had to come first, if it was refused."""
        it = self._it
        first = next((each for each in reversed(self._here) if each.error is not None
                      and each.first_sequence == it.known_sequence + 1), None)  # fmt: skip
        if first is None:
            return ""
        return f": they were refused at {clock_time(first.at_ms)} with {first.error}"

    def _lost(self) -> str:
        """When the partition forgot the producer."""
        lost = next((each for each in reversed(self._here) if each.event in ("forgotten", "expired")), None)
        if lost is None:
            return ""
        how = "by the control plane" if lost.event == "forgotten" else "after producer.id.expiration.ms"
        return f" It was forgotten there at {clock_time(lost.at_ms)} {how}."

    def unknown(self) -> str:
        """UNKNOWN_PRODUCER_ID."""
        it = self._it
        reasons = "its records were deleted, or it was silent for producer.id.expiration.ms, or it never wrote there"
        lost = self._lost() or f" {reasons[0].upper()}{reasons[1:]}."
        return f"unknown: {it.partition} knows nothing of this producer, and it does not begin with sequence 0.{lost}"

    def transaction(self) -> str:
        """INVALID_TXN_STATE."""
        return f"the wrong state: {self._it.detail or 'the batch is not part of an open transaction'}."

    def elsewhere(self) -> str:
        """NOT_LEADER_OR_FOLLOWER."""
        found = self._asked.cluster.partitions.get(self._it.place or ("", -1))
        leader = "nobody leads" if found is None or found.state.leader < 0 else f"broker {found.state.leader} leads"
        return f"the leader: broker {self._it.broker} was asked, {leader} {self._it.partition} now."

    def replicas(self) -> str:
        """NOT_ENOUGH_REPLICAS and what comes after the append."""
        found = self._asked.cluster.partitions.get(self._it.place or ("", -1))
        written = "the batch was not written" if self._it.event == "refused" else "the batch was written all the same"
        if found is None:
            return f"the replicas: too few are in sync; {written}."
        isr = ", ".join(map(str, found.state.isr))
        return f"the replicas: in sync are {isr} now, min.insync.replicas is {found.min_isr}; {written}."

    def plainly(self) -> str:
        """Everything else."""
        return f"refused: {self._it.detail or self._it.error}."


def _client(event: ProducerEvent) -> str:
    return f"client `{event.client_id}` (connection {event.connection})"


def _request(event: ProducerEvent) -> str:
    return f"{event.api} v{event.version} of {_client(event)}"


def _sequences(event: ProducerEvent) -> str:
    return _from_to(event.first_sequence, event.last_sequence)


def _from_to(first: int, last: int) -> str:
    return f"sequence {first}" if first == last else f"sequences {first} to {last}"


_EXPLAIN: Mapping[ErrorCode, Callable[[Refused], str]] = {
    E.INVALID_PRODUCER_EPOCH: Refused.fenced,
    E.PRODUCER_FENCED: Refused.fenced,
    E.OUT_OF_ORDER_SEQUENCE_NUMBER: Refused.sequence,
    E.UNKNOWN_PRODUCER_ID: Refused.unknown,
    E.INVALID_TXN_STATE: Refused.transaction,
    E.NOT_LEADER_OR_FOLLOWER: Refused.elsewhere,
    E.NOT_ENOUGH_REPLICAS: Refused.replicas,
    E.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Refused.replicas,
    E.REQUEST_TIMED_OUT: Refused.replicas,
}
