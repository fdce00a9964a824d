"""A history played on both clusters, step by step, until it ends or a difference shows."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from comparison.connection import Closed
from comparison.difference import Difference
from comparison.exchange import Exchange
from comparison.histories import admin, final, groups, looks, records, transactions
from comparison.histories.asked import Asked, Builder, Settle, Step
from comparison.histories.replicas import caught_up, replicated
from comparison.histories.settle import (
    STUCK_ALIKE_S,
    Restless,
    came_back,
    coordinator,
    metadata_followed,
    nothing_moves,
    patiently,
    requests_done,
    transactions_ended,
)
from comparison.histories.spread import broker_of, in_sync
from comparison.side import Side
from protocol.apis import ApiKey
from protocol.messages.describe_groups import DescribeGroupsRequest

BUILDERS: Mapping[str, Builder] = {**admin.STEPS, **records.STEPS, **transactions.STEPS, **groups.STEPS, **looks.STEPS}
CLOSED, SILENT = "(connection closed)", "(no answer)"
LOST = (CLOSED, SILENT)
HOUR_MS = 3_600_000
WAITING = {ApiKey.JOIN_GROUP: "PreparingRebalance", ApiKey.SYNC_GROUP: "CompletingRebalance"}
"""The state in which a group lets that request wait."""


@dataclass
class Played:
    """How it went: the differences of the step that showed any (or of the final look, as step -1)."""

    prefix: str
    step: int = -1
    differences: list[Difference] = field(default_factory=list)
    asked: int = 0
    skipped: int = 0


@dataclass
class _Parked:
    number: int  # of the step that asked
    asked: Sequence[Asked]


class Player:
    """Plays histories; each gets names of its own."""

    def __init__(self, exchange: Exchange, run: str) -> None:
        self.exchange, self._run, self._count = exchange, run, 0
        self._parked: dict[str, _Parked] = {}

    def play(self, steps: Sequence[Step], name: str | None = None) -> Played:
        """Play the steps, then compare what they left behind. With a name, names hash alike each time it is played."""
        self._count += 1
        prefix, base_ms = f"{name or f'{self._run}.{self._count}'}.", int(time.time()) * 1000 - HOUR_MS
        for side in self.exchange.sides:
            side.begin(prefix, base_ms)
        self._parked.clear()
        self.exchange.answers = {}
        played = Played(prefix)
        since = final.ends_of_internal_topics(self.exchange)
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
            played.differences = final.look(self.exchange, since)
        finally:
            final.clean_up(self.exchange)
        return played

    # --- one step ----------------------------------------------------------------------------------------------------

    def _step(self, number: int, step: Step, played: Played) -> list[Difference]:
        if step["do"] == "restart":
            return self._restart(step)
        asked = [BUILDERS[step["do"]](side, step) for side in self.exchange.sides]
        if self.exchange.sides[0].others:
            self._sent_to(broker_of(self.exchange.sides[0], step), step, asked)
        first = asked[0]
        late = self._collect(first.connection)
        if late or first.connection in self._parked:
            played.skipped += 1
            return late
        played.asked += 1
        if first.reads:
            return self._read(number, asked)
        for side, each in zip(self.exchange.sides, asked, strict=True):
            side.connection(each.connection).send(each.key, each.version, each.request, answered=each.answered)
        if first.parks:
            self._parked[first.connection] = _Parked(number, asked)
            return self._group_settled(first.about)
        found = self._compare(number, asked) if first.answered else []
        return found or self._settled(number, first)

    def _sent_to(self, broker: int, step: Step, asked: Sequence[Asked]) -> None:
        """A broker of several; before what tells how far replicas are, those of both are as far as they get."""
        for each in asked:
            each.connection = f"{each.connection}@{broker}"
        if step["do"] == "fetch_session":
            for side in self.exchange.sides:
                caught_up(side, broker)

    def _restart(self, step: Step) -> list[Difference]:
        """Restart both, if that can be done; whoever waited for an answer gets none."""
        if all(side.restart is not None for side in self.exchange.sides):
            self._parked.clear()
            for side in self.exchange.sides:
                side.close()
                side.sessions.clear()
                side.restart(step["clean"], step.get("broker", 1))  # type: ignore[misc]
                came_back(side)
                if side.others:
                    in_sync(side)
        return []

    def _read(self, number: int, asked: Sequence[Asked]) -> list[Difference]:
        made = {id(side): each for side, each in zip(self.exchange.sides, asked, strict=True)}

        def ask(side: Side) -> object:
            return _answer(side, made[id(side)], send=True)

        api = asked[0].key.title
        found = self.exchange.agree(str(number), api, ask)
        self.exchange.coverage.note(api, asked[0].version, self.exchange.answers[str(number)])
        return found

    def _compare(self, number: int, asked: Sequence[Asked]) -> list[Difference]:
        api = asked[0].key.title
        answers = [_answer(side, each) for side, each in zip(self.exchange.sides, asked, strict=True)]
        found = self.exchange.judged(str(number), api, answers)
        self.exchange.coverage.note(api, asked[0].version, self.exchange.answers[str(number)])
        for each, answer in zip(asked, answers, strict=True):
            if each.after is not None and answer not in LOST:
                each.after(answer)
        return found

    def _settled(self, number: int, asked: Asked) -> list[Difference]:
        if asked.settle is Settle.GROUP:
            return self._group_settled(asked.about)
        if asked.settle is Settle.TRANSACTION:
            return transactions_ended(self.exchange.sides, asked.about)
        found: list[Difference] = []
        if asked.settle is Settle.CONNECTION:
            served = [{"served": requests_done(side, asked.connection)} for side in self.exchange.sides]
            found = self.exchange.judged(str(number), asked.key.title, served)
        for side in self.exchange.sides:
            _at_rest(side, asked.settle)
        return found

    # --- answers that wait for other members -------------------------------------------------------------------------

    def _group_settled(self, group: str) -> list[Difference]:
        """Take the answers that came, until all clusters are in the same state and owe none in it."""
        deadline = patiently(f"the group {group}")
        alike_until = time.monotonic() + STUCK_ALIKE_S
        settled = False
        while True:
            found = [each for name in list(self._parked) for each in self._collect(name)]
            if found:
                return found
            states = [_state(side, group) for side in self.exchange.sides]
            waiting = [WAITING[parked.asked[0].key] for parked in self._of(group)]
            if len(set(states)) == 1 and all(state == states[0] for state in waiting):
                if not waiting or settled:
                    return []
                settled = True  # look once more: a rebalance that nobody is missing from ends in a moment
                deadline.check()
                continue
            settled = False
            if len(set(states)) == 1 and time.monotonic() > alike_until:
                return []  # a request that was replaced by a later one is never answered, here and there
            deadline.check(f"{states}, waiting: {waiting}")

    def _of(self, group: str) -> list[_Parked]:
        return [parked for parked in self._parked.values() if parked.asked[0].about == group]

    def _collect(self, connection: str) -> list[Difference]:
        """If one side has answered, wait for the other, and compare."""
        parked = self._parked.get(connection)
        if parked is None or not any(side.connection(connection).has_answer() for side in self.exchange.sides):
            return []
        del self._parked[connection]
        return self._compare(parked.number, parked.asked)


def _at_rest(side: Side, settle: Settle) -> None:
    """Wait for what the other brokers, or the only one, have to do still."""
    if settle is Settle.METADATA:
        if side.others:
            nothing_moves(side)
        metadata_followed(side)
    elif settle in (Settle.CONNECTION, Settle.REPLICAS) and side.others:
        replicated(side)


def _answer(side: Side, asked: Asked, *, send: bool = False) -> object:
    connection = side.connection(asked.connection)
    try:
        if send:
            connection.send(asked.key, asked.version, asked.request)
        answer: object = connection.answer()
        if asked.view is not None:
            answer = asked.view(answer)
    except Closed:
        side.connections.pop(asked.connection).close()
        return CLOSED
    except TimeoutError:
        side.connections.pop(asked.connection).close()
        return SILENT
    return answer


def _state(side: Side, group: str) -> str:
    name = side.called(group)
    asked = DescribeGroupsRequest([name])
    (found,) = side.call(ApiKey.DESCRIBE_GROUPS, 5, asked, coordinator(side, name, 0)).groups
    state: str = found.group_state
    return state
