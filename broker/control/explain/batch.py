"""Explains a refused batch by the partition's producer state, and by who changed it."""

from collections.abc import Callable, Mapping, Sequence

from broker.control.event_text import citation, refused, span
from broker.control.explain.answers import faults
from broker.control.request import ControlRequest
from broker.settings.specification import cite
from broker.steering.timelines.producer_events import FORGOTTEN, REFUSED, ProducerEvent, loss, mover_past, writer_of
from control_api.times import local_time
from protocol.errors import ErrorCode
from storage.producers.rules import REMEMBERED_BATCHES, S1

E = ErrorCode


class Refused:
    """A refused batch of a producer, and the events before it."""

    def __init__(self, request: ControlRequest, before: Sequence[ProducerEvent], refusal: ProducerEvent) -> None:
        self._request, self._refusal = request, refusal
        self._here = [event for event in reversed(before) if event.place == refusal.place]  # the newest first

    def explain(self) -> str:
        """Return the cause first, then the refused request."""
        refusal = self._refusal
        batch = f"{_request(refusal)} to {refusal.partition}, {_sequences(refusal)} at epoch {refusal.producer_epoch},"
        source = cite(refusal.rule, refusal.source)
        return f"{self.cause()} {refused(batch, refusal.until_ms, refusal.error, source, refusal.count)}"

    def cause(self) -> str:
        """Return the cause without the refused request."""
        refusal = self._refusal
        if refusal.fault is not None:
            written = "" if refusal.event == REFUSED else "; the batch was written nevertheless"
            fault = faults(self._request, refusal.fault)
            return f"a fault: {fault}; the error is not the partition's{written}."
        return _EXPLAIN.get(ErrorCode[refusal.error or "NONE"], Refused.plainly)(self)

    # --- causes ------------------------------------------------------------------------------------------------------

    def fenced(self) -> str:
        """Explain INVALID_PRODUCER_EPOCH and PRODUCER_FENCED."""
        refusal = self._refusal
        mover = mover_past(refusal.producer_epoch, self._here)
        if mover is None:
            here = f"{refusal.partition} knows this producer at epoch {refusal.epoch_after}"
            return f"fenced: {here}, the request has {refusal.producer_epoch}; the log no longer has the cause."
        by = f" by {mover.api} v{mover.version}" if mover.api is not None else ""
        who = f"{span(mover.at_ms, mover.until_ms)} {_client(mover)} wrote to {refusal.partition}{by}"
        at = "unknown here" if mover.epoch_before < 0 else f"at epoch {mover.epoch_before}"
        became = f"while this producer was {at}; the epoch became {mover.epoch_after}"
        return f"fenced: {who}, {_sequences(mover)}, {became}{citation(mover.rule, mover.source)}."

    def sequence(self) -> str:
        """Explain OUT_OF_ORDER_SEQUENCE_NUMBER."""
        refusal = self._refusal
        if refusal.epoch_after not in (-1, refusal.producer_epoch):
            epochs = f"{refusal.partition} has the producer at epoch {refusal.epoch_after}"
            moved = f"{epochs}, the batch starts epoch {refusal.producer_epoch}"
            return f"the sequence: {moved}, and a new epoch starts at sequence 0, not {refusal.first_sequence}."
        if refusal.known_sequence < 0:
            return f"the sequence: {refusal.detail or f'{refusal.partition} expected another sequence'}.{self._lost()}"
        had = f"{refusal.partition} has the producer's sequences up to {refusal.known_sequence}{self._written_by()}"
        if refusal.first_sequence > refusal.known_sequence + 1:
            missing = f"{_from_to(refusal.known_sequence + 1, refusal.first_sequence - 1)} missing{self._missed()}"
            return f"the sequence: {had}; the batch starts at {refusal.first_sequence}, with {missing}."
        old = f"only an exact resend of one of the last {REMEMBERED_BATCHES} batches is accepted as a duplicate"
        rule = citation(S1.rule, S1.source)
        return f"the sequence: {had}; the batch starts at {refusal.first_sequence} again, and {old}{rule}."

    def _written_by(self) -> str:
        """Name the client that wrote the partition's last sequence of this producer."""
        run = writer_of(self._refusal.known_sequence, self._here)
        return "" if run is None else f", written by {_client(run)} at {local_time(run.until_ms)}"

    def _missed(self) -> str:
        """Describe the refusal of the batch with the missing sequence, if there was one."""
        refusal = self._refusal
        first = next((event for event in self._here if event.error is not None
                      and event.first_sequence == refusal.known_sequence + 1), None)  # fmt: skip
        if first is None:
            return ""
        by = "" if first.fault is None else ", by a fault"
        return f" (refused at {local_time(first.at_ms)} with {first.error}{by})"

    def _lost(self) -> str:
        """Describe when the partition removed the producer's state, if it did."""
        lost = loss(self._here)
        if lost is None:
            return ""
        how = "by the control plane" if lost.event == FORGOTTEN else "after producer.id.expiration.ms"
        return f" The partition removed the producer's state at {local_time(lost.at_ms)}, {how}."

    def unknown(self) -> str:
        """Explain UNKNOWN_PRODUCER_ID."""
        refusal = self._refusal
        reasons = "its records were deleted, or it wrote nothing for producer.id.expiration.ms, or it never wrote there"
        lost = self._lost() or f" {reasons[0].upper()}{reasons[1:]}."
        state = f"{refusal.partition} has no state of this producer"
        return f"unknown: {state}, and the batch does not start at sequence 0.{lost}"

    def transaction(self) -> str:
        """Explain INVALID_TXN_STATE."""
        return f"the wrong state: {self._refusal.detail or 'the batch is not part of an open transaction'}."

    def elsewhere(self) -> str:
        """Explain NOT_LEADER_OR_FOLLOWER."""
        if self._request.source.own is None:
            broker, partition_name = self._refusal.broker, self._refusal.partition
            return f"the leader: the request went to broker {broker}, which does not lead {partition_name}."
        partition = self._request.source.partitions.get(self._refusal.place or ("", -1))
        leader = (
            "no broker leads"
            if partition is None or partition.state.leader < 0
            else f"broker {partition.state.leader} leads"
        )
        return f"the leader: the request went to broker {self._refusal.broker}; {leader} {self._refusal.partition} now."

    def replicas(self) -> str:
        """Explain NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND and REQUEST_TIMED_OUT."""
        partition = self._request.source.partitions.get(self._refusal.place or ("", -1))
        written = (
            "the batch was not written" if self._refusal.event == REFUSED else "the batch was written nevertheless"
        )
        if partition is None:
            return f"the replicas: too few are in sync; {written}."
        isr = ", ".join(map(str, partition.state.isr))
        return f"the replicas: the ISR is {isr} now, min.insync.replicas is {partition.min_isr}; {written}."

    def plainly(self) -> str:
        """Describe any other error."""
        return f"refused: {self._refusal.detail or self._refusal.error}."


def _client(event: ProducerEvent) -> str:
    if event.client_id is None:
        return "several clients"
    on = "several connections" if event.connection is None else f"connection {event.connection}"
    return f"client `{event.client_id}` ({on})"


def _request(event: ProducerEvent) -> str:
    return f"{event.api} v{event.version} from {_client(event)}"


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
