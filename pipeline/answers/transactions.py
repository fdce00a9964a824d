"""Compares what coordinators report of transactional ids with what their producers requested and were granted."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pipeline.answers.calls import NONE, Body, Call, Fault, listed

_EXPIRED_MS: Final = 3_600_000
"""If the cluster's clock was advanced by more, a transaction may have timed out, or its id may have expired.

Ours, more than transaction.max.timeout.ms, and less than an id is kept.
"""
_LAST_EPOCH: Final = 32_000
"""Near the last epoch a transactional id gets a new producer id: ours, some hundreds below it."""
_IMPLICIT: Final = 5
"""Version of EndTxn since which Produce adds partitions itself (KIP-890): the next transaction may have started."""
_BATCHED: Final = 4
"""Version of AddPartitionsToTxn since which brokers send it, for several transactions."""
_COMMITTED: Final = frozenset({"PrepareCommit", "CompleteCommit"})
_ABORTED: Final = frozenset({"PrepareAbort", "CompleteAbort"})
_ONGOING: Final = frozenset({"Ongoing"})


class _Known(NamedTuple):
    """What is known of a transactional id after a successful request."""

    call: Call
    states: frozenset[str] | None
    """None: any state."""
    partitions: frozenset[tuple[str, int]] = frozenset()


class _Granted(NamedTuple):
    producer_id: int
    epoch: int
    at_ms: int


@dataclass
class Transactions:
    """The transactional ids of one run and era."""

    _known: dict[str, _Known] = field(default_factory=dict)
    _changing: dict[str, list[Call]] = field(default_factory=lambda: defaultdict(list))
    """By id: the requests that may change it."""
    _granted: dict[str, _Granted] = field(default_factory=dict)
    """By id: the last InitProducerId or EndTxn response with a producer id."""
    _ended: dict[str, Call] = field(default_factory=dict)
    """By id: the last EndTxn that succeeded."""
    _timeouts: dict[str, int] = field(default_factory=dict)
    _reports: list[tuple[Call, Body, _Known]] = field(default_factory=list)

    def note(self, call: Call) -> Iterator[Fault]:
        """Record a call, and yield the faults that earlier calls prove."""
        for name in _names(call):
            self._changing[name].append(call)
            if call.is_accepted and call.response.get("producer_id", -1) >= 0:
                yield from self._grant(name, call)
            if call.api == "EndTxn" and call.is_accepted:
                yield from self._end(name, call)
            self._known[name] = self._after(name, call)
        if call.api in {"DescribeTransactions", "ListTransactions"} and call.is_answered:
            yield from self._report(call)

    def _grant(self, name: str, call: Call) -> Iterator[Fault]:
        """Check that a transactional id keeps its producer id until its epochs are used up (KIP-360, KIP-890)."""
        producer_id, epoch = call.response["producer_id"], call.response["producer_epoch"]
        if call.api == "InitProducerId":
            self._timeouts[name] = call.request["transaction_timeout_ms"]
        before = self._granted.get(name)
        holds = before is not None and call.at_ms - before.at_ms < _EXPIRED_MS and before.epoch < _LAST_EPOCH
        if before is not None and holds and producer_id != before.producer_id:
            what = f"producer id {producer_id} for {name}, which had {before.producer_id}"
            yield Fault(call.id, "transaction-report", what)
        self._granted[name] = _Granted(producer_id, epoch, call.at_ms)

    def _end(self, name: str, call: Call) -> Iterator[Fault]:
        """Check that a transaction is not both committed and aborted: the second EndTxn is INVALID_TXN_STATE.

        With the epoch of the first one it is about the same transaction if it was sent behind it; before version 5 also
        only if no request has begun another one since.
        """
        before, self._ended[name] = self._ended.get(name), call
        if before is None or before.end_us >= call.start_us or before.request["committed"] == call.request["committed"]:
            return
        same = all(before.request[each] == call.request[each] for each in ("producer_id", "producer_epoch"))
        if same and (call.version >= _IMPLICIT or self._changing[name][-2:] == [before, call]):
            ends = ("aborted", "committed")
            what = f"{name} is {ends[call.request['committed']]}, and was {ends[before.request['committed']]} before"
            yield Fault(call.id, "transaction-report", what)

    def _after(self, name: str, call: Call) -> _Known:
        before = self._known.get(name)
        if call.api == "EndTxn" and call.is_accepted:
            states = _COMMITTED if call.request["committed"] else _ABORTED
            return _Known(call, states | _ONGOING if call.version >= _IMPLICIT else states)
        if call.api == "AddPartitionsToTxn" and call.is_accepted and call.version < _BATCHED:
            goes_on = before is not None and before.states == _ONGOING
            added = {
                (each["name"], one)
                for each in listed(call.request, "v3_and_below_topics")
                for one in each["partitions"]
            }
            return _Known(call, _ONGOING, frozenset(added | (before.partitions if before and goes_on else frozenset())))
        if call.api == "AddOffsetsToTxn" and call.is_accepted:
            goes_on = before is not None and before.states == _ONGOING
            return _Known(call, _ONGOING, before.partitions if before and goes_on else frozenset())
        return _Known(call, None)

    def _report(self, call: Call) -> Iterator[Fault]:
        for each in listed(call.response, "transaction_states"):
            name = each["transactional_id"]
            known = self._known.get(name)
            if known is not None and each.get("error_code", NONE) == NONE:
                self._reports.append((call, each, known))
        if call.api == "ListTransactions" and call.is_accepted and not _is_filtered(call.request):
            there = {each["transactional_id"] for each in listed(call.response, "transaction_states")}
            for name in sorted(self._known.keys() - there):
                known = self._known[name]
                if known.states == _ONGOING and known.call.broker == call.broker and self._holds(name, known, call):
                    yield Fault(call.id, "transaction-report", f"{name} is missing, though its transaction is ongoing")

    def faults(self) -> Iterator[Fault]:
        """Yield reports that contradict the producer's requests, if all requests around them are known."""
        for call, reported, known in self._reports:
            name = reported["transactional_id"]
            if not self._holds(name, known, call):
                continue
            if known.states is not None and reported["transaction_state"] not in known.states:
                what = f"{name} is {reported['transaction_state']}, not {' or '.join(sorted(known.states))}"
                yield Fault(call.id, "transaction-report", what)
            elif call.api == "DescribeTransactions":
                there = {(each["topic"], one) for each in listed(reported, "topics") for one in each["partitions"]}
                for topic, partition in sorted(known.partitions - there):
                    yield Fault(call.id, "transaction-report", f"{name} without this partition", topic, partition)

    def _holds(self, name: str, known: _Known, at: Call) -> bool:
        """Return whether no other request may have changed an id between a request and a report of it."""
        timeout_ms = self._timeouts.get(name, 0)
        return (
            known.call.end_us < at.start_us
            and at.at_ms - known.call.at_ms < timeout_ms // 2
            and not any(
                each is not known.call and each.start_us <= at.end_us and each.end_us >= known.call.start_us
                for each in self._changing[name]
            )
        )


def _names(call: Call) -> list[str]:
    """Return the transactional ids that a request may change."""
    if call.api in {"InitProducerId", "AddOffsetsToTxn", "EndTxn"}:
        return [call.request["transactional_id"]] if call.request["transactional_id"] else []
    if call.api == "AddPartitionsToTxn":
        if call.version < _BATCHED:
            return [call.request["v3_and_below_transactional_id"]]
        return [each["transactional_id"] for each in listed(call.request, "transactions") if not each["verify_only"]]
    return []


def _is_filtered(request: Body) -> bool:
    return (
        "state_filters" not in request
        or any(listed(request, name) for name in ("state_filters", "producer_id_filters"))
        or request.get("duration_filter", -1) >= 0
        or bool(request.get("transactional_id_pattern"))
    )
