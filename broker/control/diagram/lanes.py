"""The lanes of a diagram: clients, coordinators, brokers, logs.

A client has several connections, and two clients may have the same client id. Connections belong to the same client if
they use the same producer id and epoch, or the same group member; a connection with neither belongs to the client with
the same client id and host whose request is nearest.

If there are many clients, consecutive ones with the same client id and host share a lane, such as an application that
restarts again and again: otherwise coordinators and logs would be out of view.
"""

from collections.abc import Sequence
from typing import Any

from broker.control.diagram.calls import Call
from control_api.answers.diagrams import Lane, LaneKind
from control_api.spelling import plain

MOST_CLIENTS, MOST_LOGS, MOST_APART = 10, 6, 4
"""Lanes that fit beside each other on a screen; up to MOST_APART client ids are shown apart by connection."""
_TRANSACTION = frozenset({"InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn"})
_GROUP = frozenset(
    {
        "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch", "TxnOffsetCommit",
        "ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat", "DeleteGroups", "OffsetDelete",
    }
)  # fmt: skip
_LEADER = frozenset({"Produce", "Fetch", "ListOffsets", "ShareFetch", "ShareAcknowledge", "OffsetForLeaderEpoch"})
_NAMES = {"transaction": "transaction coordinator", "group": "group coordinator"}
Key = tuple[str, Any]


def role_of(api: str) -> str:
    """Return the role of the broker for an API: transaction, group, leader or broker."""
    for role, apis in (("transaction", _TRANSACTION), ("group", _GROUP), ("leader", _LEADER)):
        if api in apis:
            return role
    return "broker"


class _Clients:
    """Sets of connections that belong to the same client (union-find)."""

    def __init__(self) -> None:
        self._above: dict[Key, Key] = {}

    def of(self, key: Key) -> Key:
        passed = []
        while (above := self._above.get(key, key)) != key:
            passed.append(key)
            key = above
        for each in passed:  # path compression: each new producer epoch makes the path longer
            self._above[each] = key
        return key

    def join(self, one: Key, other: Key) -> None:
        self._above.setdefault(one, one)
        self._above[self.of(other)] = self.of(one)


class Lanes:
    """The lanes of a diagram, in drawing order."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._clients = _in_turn(calls, _joined(calls))
        self._keys: dict[LaneKind, list[Key]] = {"client": [], "coordinator": [], "broker": [], "log": []}
        self._calls: dict[Key, list[Call]] = {}
        self._leaders: set[int] = set()
        for call in calls:
            key = self._clients[call.entry.connection]
            self._calls.setdefault(key, []).append(call)
            self._add("client", self._shown(key))
        self._last = {role_of(call.api): call.entry.broker for call in calls}
        for call in calls:
            self.broker(role_of(call.api), call.entry.broker)

    # --- keys: steps refer to lanes by them --------------------------------------------------------------------------

    def client(self, call: Call) -> Key:
        """Return the lane of the client that sent the request."""
        return self._shown(self._clients[call.entry.connection])

    def broker(self, role: str, broker: int | None = None) -> Key:
        """Return the lane of a broker in a role; without a broker, of the last one that got a request in this role."""
        if broker is None:
            broker = self._last.get(role, -1)
        if role in _NAMES:
            return self._add("coordinator", (role, broker))
        if role == "leader":
            self._leaders.add(broker)
        return self._add("broker", ("broker", broker))

    def log(self, place: str) -> Key:
        """Return the lane of a partition's log; beyond six logs, the shared lane of all others."""
        logs = self._keys["log"]
        key: Key = ("log", place)
        if key not in logs and len(logs) >= MOST_LOGS:
            key = ("log", None)
        return self._add("log", key)

    def _shown(self, key: Key) -> Key:
        shown = self._keys["client"]
        return key if key in shown or len(shown) < MOST_CLIENTS else ("others", None)

    def _add(self, kind: LaneKind, key: Key) -> Key:
        if key not in self._keys[kind]:
            self._keys[kind].append(key)
        return key

    # --- the lanes themselves ----------------------------------------------------------------------------------------

    def positions(self) -> dict[Key, int]:
        """Return the position of each lane."""
        return {key: at for at, key in enumerate(key for keys in self._keys.values() for key in keys)}

    def lanes(self) -> tuple[Lane, ...]:
        """Return all lanes."""
        brokers = ((_broker(each) or "broker", "partition leader" if each in self._leaders else "") for _, each in
                   self._keys["broker"])  # fmt: skip
        return (
            *map(self._client, self._keys["client"]),
            *(
                Lane(kind="coordinator", title=_NAMES[role], detail=_broker(broker))
                for role, broker in self._keys["coordinator"]
            ),
            *(Lane(kind="broker", title=title, detail=detail) for title, detail in brokers),
            *(
                Lane(kind="log", title="other logs" if place is None else plain(place), detail="log")
                for _, place in self._keys["log"]
            ),
        )

    def _client(self, key: Key) -> Lane:
        if key[0] == "others":
            return Lane(kind="client", title="other clients", detail="")
        calls = self._calls[key]
        software = {
            f"{call.connection.software_name} {call.connection.software_version}"
            for call in calls
            if call.connection is not None and call.connection.software_name != "unknown"
        }
        epochs = sorted({epoch for call in calls if call.error is None for _, epoch in call.producers if epoch >= 0})
        numbers = sorted({call.entry.connection for call in calls})
        detail = [
            *sorted(software)[:1],
            *([_span("epoch", epochs)] if epochs else []),
            # As many as fit into a lane's head.
            _span("connection", numbers) if len(numbers) < 3 else f"{len(numbers)} connections",
        ]
        title = plain(calls[0].client_id) or "no client id"
        return Lane(kind="client", title=title, detail=plain(", ".join(detail)))


def _broker(broker: int) -> str:
    return f"broker {broker}" if broker >= 0 else ""


def _span(noun: str, numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"{noun} {numbers[0]}"
    joined = f" to {numbers[-1]}" if len(numbers) > 2 else f" and {numbers[1]}"
    return f"{noun}s {numbers[0]}{joined}"


def _joined(calls: Sequence[Call]) -> dict[int, Key]:
    """Return connection -> client."""
    clients, named = _Clients(), set()
    for call in calls:
        connection: Key = ("connection", call.entry.connection)
        member = getattr(call.known.request, "member_id", None) or getattr(call.known.response, "member_id", None)
        for key in (*call.producers, *([member] if member else [])):
            clients.join(("identity", (call.client_id, key)), connection)
            named.add(call.entry.connection)
    actors = {call.entry.connection: clients.of(("connection", call.entry.connection)) for call in calls}
    for at, call in enumerate(calls):
        number = call.entry.connection
        if number in named:
            continue
        alike = next(
            (
                each.entry.connection
                for each in (*calls[at:], *reversed(calls[:at]))
                if each.entry.connection in named and each.client_id == call.client_id and _host(each) == _host(call)
            ),
            None,
        )
        if alike is not None:
            actors[number] = actors[alike]
    return actors


def _in_turn(calls: Sequence[Call], clients: dict[int, Key]) -> dict[int, Key]:
    """Return connection -> client, with consecutive clients merged if there are many."""
    if len(set(clients.values())) <= MOST_APART:
        return clients
    last = {clients[call.entry.connection]: at for at, call in enumerate(calls)}
    free: dict[tuple[str | None, str], dict[Key, int]] = {}
    shared: dict[Key, Key] = {}
    for at, call in enumerate(calls):
        key = clients[call.entry.connection]
        if key in shared:
            continue
        ends = free.setdefault((call.client_id, _host(call)), {})
        shared[key] = next((each for each, end in ends.items() if end < at), key)
        ends[shared[key]] = last[key]
    return {connection: shared[key] for connection, key in clients.items()}


def _host(call: Call) -> str:
    return "" if call.connection is None else call.connection.client_host
