"""Plays a script whose requests overlap on one cluster; its outcome is each response, when it came, and the end state.

The steps are those of histories. A step with `now` is sent at once, in the same burst as the step before it; before
every other one the play waits until the cluster is quiet. A request that waits stays pending meanwhile, and what is
sent on its connection is queued behind it. `cut` closes a connection, `await` waits
for the end of short waits. `pause` and `resume` halt a broker's process for a while; `stop` ends it in good order and
`kill` at once, until it is to `start`; `missed` waits until the controller has fenced it. `names` chooses names by
their coordinators, `move_coordinator` moves one. `controllers` does the same to controllers, `resigned` waits until
none is active, and `elected` until one is, and has what was forwarded to it; `exhaust_ids` uses up a broker's ids.
"""

import contextlib
import json
import select
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from comparison.connection import Closed, Connection
from comparison.histories import end_state, steering
from comparison.histories.multi_broker import broker_of
from comparison.histories.play import BUILDERS
from comparison.histories.quiescence import wait_metadata
from comparison.histories.quiet_shares import wait_initialized
from comparison.histories.step_request import Settle, Step, StepRequest
from comparison.rules import comparable
from comparison.target import Target
from comparison.values import plain
from protocol.apis import ApiKey
from protocol.client.sasl import AuthenticationError
from protocol.messages.describe_cluster import DescribeClusterRequest

QUIET_S = 0.05
"""A cluster is quiet when nothing has arrived for so long: ours, several times what a response takes."""
LAST_QUIET_S = 0.3
"""The same at the end of a script: what has not arrived by then waits.

Ours, six times QUIET_S.
"""
ANSWERED_WITHIN_S = 1.5
"""Limit of the time in which a request that need not wait is answered: ours, for a busy machine."""
NEARLY_OVER_MS = 200
"""A wait that ends within so long is waited for: whether a step comes before or after its end is chance.

Ours, longer than the steps between two looks take.
"""
LONG_MS = 5_000
"""From here on a request is not waited for at the end of a script.

Ours, longer than any wait of a script but the long ones.
"""
SOON_S = 0.5
"""What was queued behind a wait that is over is served within so long: ours, ten times QUIET_S."""
AT_ITS_END, THEN = "at the end of its wait", "then"
CLOSED, REFUSED, CUT, WAITS = "(connection closed)", "(connection refused)", "(cut)", "(waits)"
OWNERS = ("group", "group_id", "transactional_id")
Outcome = dict[str, Any]


@dataclass
class _Sent:
    """A request in flight: its step, its burst, and the request before it on its connection, if that is pending."""

    number: int
    burst: int
    request: StepRequest
    at: float
    wait_ms: int | None
    parks: bool
    behind: "_Sent | None"
    when: str = ""
    over: float = 0.0

    def left_ms(self) -> float:
        """Return the rest of its maximum wait; infinity if it has none."""
        return float("inf") if self.wait_ms is None else self.wait_ms - (time.monotonic() - self.at) * 1000

    @property
    def may_wait(self) -> bool:
        """Whether its response may wait for a later step."""
        return self.wait_ms is not None or self.parks or (self.behind is not None and not self.behind.when)


@dataclass
class Play:
    """One play of a script on one cluster."""

    target: Target
    pending: dict[str, list[_Sent]] = field(default_factory=dict)
    responses: dict[int, tuple[_Sent, Any]] = field(default_factory=dict)
    burst: int = 0
    since: end_state.Ends = field(default_factory=dict)

    def run(self, steps: Sequence[Step]) -> Outcome:
        """Play the steps, wait for what answers soon, and return the outcome."""
        self.since = end_state.ends_of_one(self.target)
        for number, step in enumerate(steps):
            if not step.get("now") or self._changes_metadata():
                self._settle()
                self.burst += 1
            self._do(number, step)
        self._await()
        while any(self._waiting()) and self._collect(LAST_QUIET_S):
            pass
        if self.target.leaderless:
            steering.restore_controllers(self.target)
        if self.target.away:  # the logs are read from their leaders
            steering.bring_back(self.target)
        at_end = self._at_end()  # before the connections close: then what is queued there would be served
        for connection in list(self.pending):
            self._over(connection, WAITS)
        return {**self._responses(), **at_end()}

    def _do(self, number: int, step: Step) -> None:
        """Perform a step: most send a request."""
        target, do = self.target, step["do"]
        if do == "cut":
            self._cut(step["c"])
        elif do == "await":
            self._await()
        elif do in steering.AWAY:
            self._steer(partial(steering.steer, target, do, step["broker"]))
        elif do == "controllers":
            self._steer(partial(steering.steer_controllers, target, step["how"], step["which"]))
        elif do in steering.WAITS:
            steering.WAITS[do](target)
        elif do == "exhaust_ids":
            steering.exhaust_ids(target, step["b"])
        elif do == "missed":
            steering.wait_missed(target, step["broker"])
        elif do == "names":
            steering.choose_names(target, step["coordinators"])
        elif do == "move_coordinator":
            steering.move_coordinator(target, step)
        else:
            self._send(number, step)

    # --- requests ----------------------------------------------------------------------------------------------------

    def _send(self, number: int, step: Step) -> None:
        target = self.target
        if "from" in step:  # an offset relative to the end of the log
            end = end_state.offset(target, target.called(step["topic"]), step["partition"], end_state.LATEST)
            step = {**step, "offset": max(end, 0) + step["from"]}
        request = BUILDERS[step["do"]](target, step)
        if target.others:
            request.connection = f"{request.connection}@{broker_of(target, step)}"
        line = self.pending.setdefault(request.connection, [])
        sent = _Sent(
            number,
            self.burst,
            request,
            time.monotonic(),
            step.get("max_wait", step.get("timeout")),
            request.parks or step.get("waits", False),
            line[-1] if line else None,
        )
        try:
            connection = target.connection(request.connection)
            connection.send(request.key, request.version, request.request, answered=request.answered)
        except AuthenticationError as error:
            self.responses[number] = (sent, f"(login refused: {error})")
            return
        except ConnectionError:
            self.responses[number] = (sent, REFUSED)
            return
        except Closed:
            line.append(sent)
            self._over(request.connection, CLOSED)
            return
        if request.answered:
            line.append(sent)

    def _steer(self, steer: Callable[[], None]) -> None:
        """Steer a node, and read what arrives meanwhile: a Kafka stops for a second and more."""
        with ThreadPoolExecutor(1) as pool:
            steered = pool.submit(steer)
            while not steered.done():
                self._collect(QUIET_S)
            steered.result()

    def _cut(self, name: str) -> None:
        """Cut a connection, unless Kafka, which then reads none, would notice it only when a wait is over (GAPS.md)."""
        for connection in [each for each in self.target.connections if each.partition("@")[0] == name]:
            line = self.pending.get(connection, [])
            if len(line) < 2 and not any(each.request.key is ApiKey.SHARE_FETCH for each in line):
                self._over(connection, CUT)

    def _over(self, name: str, why: str) -> None:
        """Close a connection; what is pending gets no response."""
        if name in self.target.connections:
            self.target.connections.pop(name).close()
        for sent in self.pending.pop(name, ()):
            self._arrived(sent, why)

    def _arrived(self, sent: _Sent, response: Any) -> None:
        now = time.monotonic()
        behind = sent.behind
        if response in (WAITS, CUT):
            sent.when = str(response)
        elif behind is not None and behind.when in (AT_ITS_END, THEN) and now - behind.over < SOON_S:
            sent.when = THEN
        elif sent.left_ms() <= 0:
            sent.when = AT_ITS_END
        else:
            bursts = self.burst - sent.burst
            sent.when = f"after {bursts} bursts" if bursts else "at once"
        sent.over = now
        self.responses[sent.number] = (sent, response)
        if sent.request.after is not None and not isinstance(response, str):
            sent.request.after(response)

    # --- waiting -----------------------------------------------------------------------------------------------------

    def _waiting(self) -> Iterator[_Sent]:
        return (sent for line in self.pending.values() for sent in line)

    def _settle(self) -> None:
        """Wait until the cluster is quiet."""
        self._collect_until(lambda: all(each.may_wait for each in self._waiting()), ANSWERED_WITHIN_S)
        if self._changes_metadata():
            wait_metadata(self.target)
        for group in self._share_groups():
            wait_initialized(self.target, self.since, group)
        self._quiet()
        while any(0 < each.left_ms() < NEARLY_OVER_MS for each in self._waiting()):
            self._collect(NEARLY_OVER_MS / 1000)
            self._quiet()

    def _of_this_burst(self) -> list[StepRequest]:
        sent = [*self._waiting(), *(each for each, _ in self.responses.values())]
        return [each.request for each in sent if each.burst == self.burst]

    def _changes_metadata(self) -> bool:
        """Whether a request of this burst changes metadata: a broker applies it soon after the response."""
        changes = any(request.settle is Settle.METADATA for request in self._of_this_burst())
        return changes and not self.target.leaderless

    def _share_groups(self) -> set[str]:
        """Return the share groups whose members this burst changes: Kafka initializes their state afterwards."""
        beats = (each for each in self._of_this_burst() if each.key is ApiKey.SHARE_GROUP_HEARTBEAT)
        return {each.about for each in beats}

    def _await(self) -> None:
        """Wait until every wait that ends soon is over."""
        self._settle()
        self._collect_until(lambda: all(each.left_ms() > LONG_MS for each in self._waiting()), 2 * LONG_MS / 1000)

    def _quiet(self) -> None:
        """Wait until nothing arrives, though the brokers had the processor since."""
        arrived = True
        while arrived:
            for broker in self.target.present:
                self.target.call(ApiKey.DESCRIBE_CLUSTER, 0, DescribeClusterRequest(), broker)
            arrived = self._collect(QUIET_S)

    def _collect_until(self, is_over: Callable[[], bool], within_s: float) -> None:
        deadline = time.monotonic() + within_s
        while not is_over() and time.monotonic() < deadline:
            self._collect(QUIET_S)

    def _collect(self, within_s: float) -> bool:
        """Read what has arrived; return False if nothing arrives in that time."""
        waiting: dict[Connection, str] = {
            self.target.connections[name]: name
            for name, line in self.pending.items()
            if line and name in self.target.connections
        }
        sockets = {connection.socket: connection for connection in waiting}
        if not sockets:
            time.sleep(within_s)
            return False
        ready, _, _ = select.select(list(sockets), [], [], within_s)
        for each in ready:
            connection = sockets[each]
            name = waiting[connection]
            try:
                response = connection.answer()
            except (Closed, TimeoutError):
                self._over(name, CLOSED)
                continue
            sent = self.pending[name].pop(0)
            self._arrived(sent, response if sent.request.view is None else sent.request.view(response))
        return bool(ready)

    # --- outcome -----------------------------------------------------------------------------------------------------

    def _responses(self) -> Outcome:
        """Return the responses by step; ids get their names in the order of the steps."""
        shown: Outcome = {}
        for number, (sent, response) in sorted(self.responses.items()):
            title, version = sent.request.key.title, sent.request.version
            value = comparable(self.target.names, title, _without_epochs(plain(response)))
            shown[f"{number} {title}"] = {"when": sent.when, "version": version, "response": value}
        return shown

    def _at_end(self) -> Callable[[], Outcome]:
        """Read logs and the coordinators' records; return a function that makes them comparable."""
        logs = end_state.of_one(self.target)
        written: dict[tuple[str, str], list[Any]] = {}
        for _, topic, partition in self.since:
            for record in end_state.coordinators_log(self.target, self.since, topic, partition):
                written.setdefault((topic, _owner(record)), []).append(record)

        def shown() -> Outcome:
            names = self.target.names
            values = {what: comparable(names, "Log", _without_epochs(plain(value))) for what, value in logs.items()}
            for (topic, owner), records in written.items():
                values[f"{topic} {names.text(owner)}"] = comparable(names, topic, plain(records))
            return values

        return shown


def _without_epochs(value: Any) -> Any:
    """Remove the coordinator's epochs from markers: a busy Kafka elects its coordinators now and then."""
    if isinstance(value, dict):
        return {name: _without_epochs(inner) for name, inner in value.items() if name != "coordinator_epoch"}
    return [_without_epochs(each) for each in value] if isinstance(value, list) else value


def _owner(record: Mapping[str, Any]) -> str:
    about = record.get("is")
    while isinstance(about, dict):
        for name in OWNERS:
            if isinstance(about.get(name), str):
                return str(about[name])
        about = about.get("key")
    return "markers"


def play(target: Target, steps: Sequence[Step], prefix: str, base_ms: int) -> Outcome:
    """Play a script under names of its own, and delete its topics. Raises Restless."""
    target.begin(prefix, base_ms)
    try:
        return Play(target).run(steps)
    finally:
        if any(step["do"] in steering.LASTING for step in steps):
            steering.restore_controllers(target)
            steering.bring_back(target)
            steering.restore_coordinators(target)
        for broker in sorted(target.away):
            steering.steer(target, "resume", broker)
        with contextlib.suppress(Closed, OSError):
            end_state.clean_up_one(target)


def text(outcome: Any) -> str:
    """Return a text that is equal for equal outcomes."""
    return json.dumps(outcome, sort_keys=True, default=str)
