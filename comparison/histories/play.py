"""Plays a history on both clusters, step by step, until it ends or a difference shows."""

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from comparison.connection import Closed
from comparison.difference import Difference
from comparison.exchange import Exchange
from comparison.histories import (
    admin,
    admin_batches,
    admin_reads,
    clients,
    consumers,
    end_state,
    fields,
    groups,
    records,
    security,
    share_ends,
    shares,
    streams,
    tokens,
    transactions,
    uncommon,
)
from comparison.histories.drawn_ids import drawn_alike
from comparison.histories.multi_broker import broker_of, wait_in_sync
from comparison.histories.quiescence import (
    STUCK_ALIKE_S,
    Restless,
    coordinator,
    deadline_for,
    requests_done,
    transactions_ended,
    wait_alike,
    wait_internal_topics,
    wait_metadata,
    wait_ms,
    wait_reassigned,
    wait_restarted,
)
from comparison.histories.quiet_shares import wait_shares, warm_shares
from comparison.histories.replicas import wait_caught_up, wait_replicated
from comparison.histories.step_request import Builder, Settle, Step, StepRequest
from comparison.histories.topic_ids import hash_alike
from comparison.target import Target
from protocol.apis import ApiKey
from protocol.client.sasl import AuthenticationError, Rejected
from protocol.errors import ErrorCode
from protocol.messages.describe_groups import DescribeGroupsRequest

BUILDERS: Mapping[str, Builder] = {
    **admin.STEPS,
    **records.STEPS,
    **transactions.STEPS,
    **groups.STEPS,
    **consumers.STEPS,
    **shares.STEPS,
    **share_ends.STEPS,
    **streams.STEPS,
    **admin_batches.STEPS,
    **admin_reads.STEPS,
    **security.STEPS,
    **tokens.STEPS,
    **uncommon.STEPS,
    **clients.STEPS,
    **fields.STEPS,
}
CLOSED, SILENT = "(connection closed)", "(no answer)"
LOST = (CLOSED, SILENT)
HOUR_MS = 3_600_000
WAITING = {ApiKey.JOIN_GROUP: "PreparingRebalance", ApiKey.SYNC_GROUP: "CompletingRebalance"}
"""Request -> state of the group in which its response is delayed."""


@dataclass
class Played:
    """Result of a history: the differences of the first step that has any (or of the end state, as step -1)."""

    prefix: str
    step: int = -1
    differences: list[Difference] = field(default_factory=list)
    steps: int = 0
    skipped: int = 0


@dataclass
class _Parked:
    number: int  # of the step
    requests: Sequence[StepRequest]


class Player:
    """Plays histories, each with its own names."""

    def __init__(self, exchange: Exchange, run: str) -> None:
        self.exchange, self._run, self._count = exchange, run, 0
        self._parked: dict[str, _Parked] = {}
        self._since: end_state.Ends = {}
        self._shares = self._shares_are_warm = False

    def play(self, steps: Sequence[Step], name: str | None = None) -> Played:
        """Play the steps, then compare the end state. With a `name`, resource names are the same in every run."""
        self._count += 1
        self._shares = any("share" in f"{step['do']} {step.get('api', '')}".lower() for step in steps)
        if self._shares and not self._shares_are_warm:
            self._shares_are_warm = True
            for target in self.exchange.targets:
                warm_shares(target)
        prefix, base_ms = f"{name or f'{self._run}.{self._count}'}.", int(time.time()) * 1000 - HOUR_MS
        for target in self.exchange.targets:
            target.begin(prefix, base_ms)
        self._parked.clear()
        self.exchange.answers = {}
        self.exchange.recompressed.clear()
        played = Played(prefix)
        self._since = since = end_state.ends_of_internal_topics(self.exchange)
        try:
            for number, step in enumerate(steps):
                played.step = number
                try:
                    played.differences = self._step(number, step, played)
                except Restless as restless:
                    played.differences = [Difference("Settle", str(restless), "restless", "restless")]
                if played.differences:
                    return played
            played.step = len(steps)
            played.differences = end_state.compare(self.exchange, since)
        finally:
            for target in self.exchange.targets:
                security.clean_up(target, steps)
                tokens.clean_up(target, steps)
                clients.clean_up(target, steps)
            end_state.clean_up(self.exchange)
        return played

    # --- one step ----------------------------------------------------------------------------------------------------

    def _step(self, number: int, step: Step, played: Played) -> list[Difference]:
        if step["do"] == "restart":
            return self._restart(step)
        if step["do"] == "disconnect":
            share_ends.disconnect(self.exchange.targets, self._since, step["c"])
            return []
        if step["do"] == "wait":
            wait_ms(self.exchange.targets, step["ms"])
            groups = dict.fromkeys(parked.requests[0].about for parked in self._parked.values())
            return [difference for group in groups for difference in self._group_settled(group)]
        requests = [BUILDERS[step["do"]](target, step) for target in self.exchange.targets]
        if self.exchange.targets[0].others:
            self._address(broker_of(self.exchange.targets[0], step), step, requests)
        first = requests[0]
        self.exchange.note(first.request)
        late = self._collect(first.connection)
        if late or first.connection in self._parked:
            played.skipped += 1
            return late
        played.steps += 1
        if first.reads:
            return self._read(number, requests)
        if not drawn_alike(self.exchange.targets, requests):
            self._send(requests)
        if first.parks:
            self._parked[first.connection] = _Parked(number, requests)
            return self._group_settled(first.about)
        differences = self._compare(number, requests) if first.answered else []
        if self._shares and step["do"] == "create_topic" and not differences and self._created(number):
            hash_alike(self.exchange.targets, requests)
        return differences or self._settled(number, first)

    def _created(self, number: int) -> bool:
        """Whether a CreateTopics of one topic has created it: an existing one may have records."""
        answer = self.exchange.answers[str(number)]
        return isinstance(answer, dict) and answer["topics"][0]["error_code"] == ErrorCode.NONE.name

    def _send(self, requests: Sequence[StepRequest]) -> None:
        """Send the requests; if a cluster rejects the login, that is its response."""
        for target, each in zip(self.exchange.targets, requests, strict=True):
            with contextlib.suppress(AuthenticationError, Closed):
                target.connection(each.connection).send(each.key, each.version, each.request, answered=each.answered)

    def _address(self, broker: int, step: Step, requests: Sequence[StepRequest]) -> None:
        """Address the requests to a broker; before a fetch session, wait until its replicas have caught up."""
        for request in requests:
            request.connection = f"{request.connection}@{broker}"
        if step["do"] == "fetch_session":
            for target in self.exchange.targets:
                wait_caught_up(target, broker)

    def _restart(self, step: Step) -> list[Difference]:
        """Restart both clusters, if they can be restarted; pending requests get no response."""
        if all(target.restart is not None for target in self.exchange.targets):
            self._parked.clear()
            for target in self.exchange.targets:
                target.close()
                target.sessions.clear()
                target.restart(step["clean"], step.get("broker", 1))  # type: ignore[misc]
                wait_restarted(target)
                if target.others:
                    wait_in_sync(target)
                if self._shares:
                    share_ends.restarted(target)
        return []

    def _read(self, number: int, requests: Sequence[StepRequest]) -> list[Difference]:
        by_target = {id(target): each for target, each in zip(self.exchange.targets, requests, strict=True)}

        def ask(target: Target) -> object:
            return _answer(target, by_target[id(target)], send=True)

        api = requests[0].key.title
        differences = self.exchange.agree(str(number), api, ask)
        self.exchange.coverage.note(api, requests[0].version, self.exchange.answers[str(number)])
        return differences

    def _compare(self, number: int, requests: Sequence[StepRequest]) -> list[Difference]:
        api = requests[0].key.title
        answers = [_answer(target, each) for target, each in zip(self.exchange.targets, requests, strict=True)]
        differences = self.exchange.compare(str(number), api, answers)
        self.exchange.coverage.note(api, requests[0].version, self.exchange.answers[str(number)])
        for each, answer in zip(requests, answers, strict=True):
            if each.after is not None and not isinstance(answer, str):  # lost, or refused
                each.after(answer)
        return differences

    def _settled(self, number: int, request: StepRequest) -> list[Difference]:
        if request.settle is Settle.GROUP:
            return self._group_settled(request.about)
        if request.settle is Settle.CONSUMERS:
            wait_alike(self.exchange.targets, request.about)
            return []
        if request.settle is Settle.SHARES:
            wait_shares(self.exchange.targets, self._since, request.about)
            return []
        if request.settle is Settle.TRANSACTION:
            return transactions_ended(self.exchange.targets, request.about)
        differences: list[Difference] = []
        if request.settle is Settle.CONNECTION:
            served = [{"served": requests_done(target, request.connection)} for target in self.exchange.targets]
            differences = self.exchange.compare(str(number), request.key.title, served)
        for target in self.exchange.targets:
            _at_rest(target, request.settle)
        return differences

    # --- responses that wait for other members -----------------------------------------------------------------------

    def _group_settled(self, group: str) -> list[Difference]:
        """Collect responses until all clusters are in the same state, with no response due in it."""
        deadline = deadline_for(f"the group {group}")
        alike_until = time.monotonic() + STUCK_ALIKE_S
        settled = False
        while True:
            differences = [difference for name in list(self._parked) for difference in self._collect(name)]
            if differences:
                return differences
            states = [_state(target, group) for target in self.exchange.targets]
            waiting = [WAITING[parked.requests[0].key] for parked in self._of(group)]
            if len(set(states)) == 1 and all(state == states[0] for state in waiting):
                if not waiting or settled:
                    return []
                settled = True  # check again: a rebalance that waits for no member ends soon
                deadline.check()
                continue
            settled = False
            if len(set(states)) == 1 and time.monotonic() > alike_until:
                return []  # a request that was replaced by a later one never gets a response, on neither cluster
            deadline.check(f"{states}, waiting: {waiting}")

    def _of(self, group: str) -> list[_Parked]:
        return [parked for parked in self._parked.values() if parked.requests[0].about == group]

    def _collect(self, connection: str) -> list[Difference]:
        """If one cluster has responded, wait for the other, and compare."""
        parked = self._parked.get(connection)
        if parked is None or not any(target.connection(connection).has_answer() for target in self.exchange.targets):
            return []
        del self._parked[connection]
        return self._compare(parked.number, parked.requests)


def _at_rest(target: Target, settle: Settle) -> None:
    """Wait for work of the brokers that continues after the response."""
    if settle is Settle.STREAMS:
        wait_internal_topics(target)
    if settle is Settle.METADATA:
        if target.others:
            wait_reassigned(target)
        wait_metadata(target)
    elif settle in (Settle.CONNECTION, Settle.REPLICAS) and target.others:
        wait_replicated(target)


def _reason(error: AuthenticationError) -> str:
    """Return the error code, and the broker's own message; without a code, the error itself."""
    if error.code is None:
        return str(error)
    message = error.broker_message if isinstance(error, Rejected) else None
    return error.code.name if message is None else f"{error.code.name}: {message}"


def _answer(target: Target, request: StepRequest, *, send: bool = False) -> object:
    try:
        connection = target.connection(request.connection)
    except AuthenticationError as error:
        return f"(login refused: {_reason(error)})"
    except Closed:
        return CLOSED
    try:
        if send:
            connection.send(request.key, request.version, request.request)
        answer: object = connection.answer()
        if request.view is not None:
            answer = request.view(answer)
    except Closed:
        target.connections.pop(request.connection).close()
        target.shared.clear()  # a share group is unloaded when its last session ends
        return CLOSED
    except TimeoutError:
        target.connections.pop(request.connection).close()
        return SILENT
    return answer


def _state(target: Target, group: str) -> str:
    name = target.called(group)
    request = DescribeGroupsRequest([name])
    (group_description,) = target.call(ApiKey.DESCRIBE_GROUPS, 5, request, coordinator(target, name, 0)).groups
    state: str = group_description.group_state
    return state
